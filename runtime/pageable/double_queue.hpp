#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace tutti::internal {

/// The pieces of one copy on their way through pinned buffers, in two stages: the first fills a buffer, the second
/// empties it. Between them lie two bounded queues, of free and of full buffers. Upwards threads of the host fill and a
/// copy engine empties; downwards the engine fills and threads empty.
///
/// It is a value without locks. `Copier` guards it with a mutex; a test tries every order of its steps.
///
/// @source [MDQ19] Algorithms 1 and 2
class DoubleQueue {
 public:
  /// A buffer in the hands of a stage, and the piece in it.
  struct Held {
    std::size_t piece;
    std::uint32_t buffer;

    friend bool operator==(const Held&, const Held&) = default;
  };

  /// @param buffers  > 0; all are free
  explicit DoubleQueue(std::uint32_t buffers);

  /// Begins a copy of so many pieces. Buffers that the second stage still holds come back by `give_back`.
  /// @pre `is_handed_over()`
  void begin(std::size_t pieces);

  /// Takes the next piece and a free buffer for it; none where no piece is left or no buffer free.
  [[nodiscard]] std::optional<Held> begin_fill();
  void end_fill(const Held& filled);
  /// Takes the buffer that has been full for longest; none where none is full.
  [[nodiscard]] std::optional<Held> begin_empty();
  void end_empty(const Held& emptied);
  /// Ends the emptying of a buffer that an earlier copy has filled.
  void give_back(std::uint32_t buffer) { free_.push_back(buffer); }
  /// Begins no further piece: full buffers are free, others are when their stage ends them.
  void abort();

  /// The second stage has taken every piece, or the copy was aborted and the first stage holds nothing.
  [[nodiscard]] bool is_handed_over() const { return next_ == pieces_ && filling_ == 0 && full_.empty(); }
  /// No buffer with a piece of this copy is in the hands of a stage, and none will be.
  [[nodiscard]] bool is_over() const { return is_handed_over() && emptying_ == 0; }
  [[nodiscard]] bool was_aborted() const { return aborted_; }
  [[nodiscard]] std::size_t free_buffers() const { return free_.size(); }
  [[nodiscard]] std::size_t full_buffers() const { return full_.size(); }
  /// Buffers that the second stage has, or can take.
  [[nodiscard]] std::size_t ahead() const { return full_.size() + emptying_; }

  friend bool operator==(const DoubleQueue&, const DoubleQueue&) = default;

 private:
  std::deque<std::uint32_t> free_;
  std::deque<Held> full_;
  std::size_t pieces_ = 0;
  std::size_t next_ = 0;  // piece
  std::uint32_t filling_ = 0, emptying_ = 0;
  bool aborted_ = false;
};

}  // namespace tutti::internal
