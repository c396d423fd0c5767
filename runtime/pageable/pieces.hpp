#pragma once
#include <cstddef>

namespace tutti::internal {

/// A copy cut into pieces of one size, but for a first round of one piece a thread, of 1/N, 2/N, ... N/N of that size:
/// the engine starts soon, and from then on the N threads end their pieces one after the other, not all at once.
/// Downwards the pieces go in the opposite order, so that little is left to copy when the engine has ended.
class Pieces {
 public:
  /// Of the memory at both ends.
  struct Range {
    std::size_t offset, bytes;

    friend bool operator==(const Range&, const Range&) = default;
  };

  /// @param bytes    of the copy, > 0
  /// @param buffer   bytes of a buffer, > 0; pieces of shorter copies are smaller, so that each thread has some
  /// @param threads  that fill or empty buffers, > 0
  Pieces(std::size_t bytes, std::size_t buffer, std::size_t threads);

  [[nodiscard]] std::size_t count() const { return count_; }
  /// @param piece  below `count()`
  [[nodiscard]] Range operator[](std::size_t piece) const;

 private:
  /// Bytes of the first `pieces` of the first round.
  [[nodiscard]] std::size_t first_bytes(std::size_t pieces) const { return unit_ * (pieces * (pieces + 1) / 2); }

  std::size_t bytes_, threads_;
  std::size_t piece_;  // size behind the first round
  std::size_t unit_;   // size of the first piece
  std::size_t count_ = 0;
};

}  // namespace tutti::internal
