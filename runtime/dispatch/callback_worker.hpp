#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/core/clock.hpp"
#include "runtime/core/spsc_ring.hpp"
#include "runtime/core/thread_role.hpp"
#include "runtime/core/waker.hpp"

namespace tutti::internal {

/// Does work beside a dispatcher, one piece after the other in the order of posting.
///
/// Where time passes by itself it is a thread. Elsewhere the work is done at once in the caller's thread, and ends when
/// a thread would have ended it: the dispatcher's time does not pass meanwhile.
class CallbackWorker {
 public:
  /// A piece of work that is done.
  struct Done {
    std::size_t piece = 0;
    Duration began{}, ended{};
  };
  using Work = std::function<void(std::size_t piece)>;

  /// @param capacity  pieces that can wait or be under way
  /// @param work      does a piece; throws nothing
  /// @param role      of the thread
  /// @param waker     called where a piece is done; clock and waker outlive the worker
  CallbackWorker(Clock& clock, std::size_t capacity, Work work, const ThreadRole& role, Waker& waker);
  CallbackWorker(const CallbackWorker&) = delete;  // its thread knows it by its address
  CallbackWorker& operator=(const CallbackWorker&) = delete;
  /// Ends the thread behind the piece that it is at.
  ~CallbackWorker();

  /// @pre fewer than the capacity are posted and not taken. Allocates nothing, as those below.
  void post(std::size_t piece);
  /// Takes the next piece that is done by now.
  [[nodiscard]] std::optional<Done> take_done(Duration now);
  /// When that is, where it is known ahead; `kNever` where it is not.
  [[nodiscard]] Duration next_done();
  /// Whether all that was posted is taken.
  [[nodiscard]] bool is_idle() const { return posted_ == taken_; }

  /// Requests of its thread that the host refused, once the thread has done something. @pre `is_idle`
  [[nodiscard]] std::vector<std::string> notes() const { return posted_ > 0 ? notes_ : std::vector<std::string>{}; }

 private:
  void lead();
  void do_piece(std::size_t piece);
  bool find_next();

  Clock& clock_;
  Work work_;
  ThreadRole role_;
  Waker& waker_;
  Waker own_;
  SpscRing<std::size_t> todo_;
  SpscRing<Done> done_;
  std::optional<Done> next_;  // taken out of `done_`
  std::uint64_t posted_ = 0, taken_ = 0;
  Duration free_at_{};  // without a thread: the end of the last piece
  std::vector<std::string> notes_;
  std::atomic<bool> leaving_ = false;
  std::thread thread_;
};

}  // namespace tutti::internal
