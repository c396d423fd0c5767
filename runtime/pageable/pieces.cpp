#include "runtime/pageable/pieces.hpp"

#include <algorithm>

#include "model/base/expects.hpp"

namespace tutti::internal {
namespace {

constexpr std::size_t kPage = 4096;
/// Pieces that each thread has of a copy at least, as far as they are not smaller than this.
constexpr std::size_t kPiecesEach = 4;
constexpr std::size_t kSmall = 1 << 20;

std::size_t rounded_up(std::size_t bytes, std::size_t step) { return (bytes + step - 1) / step * step; }

}  // namespace

Pieces::Pieces(std::size_t bytes, std::size_t buffer, std::size_t threads) : bytes_(bytes), threads_(threads) {
  TUTTI_EXPECTS(bytes > 0 && buffer > 0 && threads > 0, "a copy has bytes, buffers and threads");
  // A copy that is smaller than a whole first round is one, of smaller pieces.
  const std::size_t steps = threads * (threads + 1) / 2;
  piece_ = std::min(buffer, std::max(kSmall, rounded_up(bytes / (kPiecesEach * threads), kPage)));
  unit_ = std::clamp<std::size_t>(piece_ / threads, 1, rounded_up((bytes + steps - 1) / steps, kPage));
  while (count_ < threads && first_bytes(count_) < bytes) ++count_;
  if (first_bytes(threads) < bytes) count_ += (bytes - first_bytes(threads) + piece_ - 1) / piece_;
}

Pieces::Range Pieces::operator[](std::size_t piece) const {
  const bool first_round = piece < threads_;
  const std::size_t offset = first_round ? first_bytes(piece) : first_bytes(threads_) + (piece - threads_) * piece_;
  return {offset, std::min(first_round ? unit_ * (piece + 1) : piece_, bytes_ - offset)};
}

}  // namespace tutti::internal
