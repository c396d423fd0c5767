#include "sched/cut.hpp"

#include <algorithm>

#include "model/expects.hpp"
#include "sched/analyses/wide.hpp"

namespace tutti {
namespace {

std::vector<CommandStream> streams_of(const BatchOperation& batch, std::size_t piece, std::size_t pieces) {
  std::vector<CommandStream> streams;
  for (CommandStream stream : batch.streams()) {
    const bool is_last = piece + 1 == pieces;
    if (!is_last) stream.kernel.reset();
    if (stream.transfer) {
      const Bytes size = stream.transfer->size;
      stream.transfer->size = piece_start(size, piece + 1, pieces) - piece_start(size, piece, pieces);
    }
    if (stream.transfer || stream.kernel) streams.push_back(std::move(stream));
  }
  return streams;
}

}  // namespace

std::size_t pieces_of(std::int64_t bytes, std::int64_t most) {
  return static_cast<std::size_t>(std::clamp<Wide>(ceil_div(bytes, most), 1, kMostPieces));
}

Bytes largest_transfer(const BatchOperation& batch) {
  Bytes largest{0};
  for (const CommandStream& stream : batch.streams())
    if (stream.transfer) largest = std::max(largest, stream.transfer->size);
  return largest;
}

std::size_t pieces_of(const BatchOperation& batch, Bytes most) {
  return most > Bytes{0} ? pieces_of(largest_transfer(batch).count, most.count) : 1;
}

Bytes piece_start(Bytes size, std::size_t piece, std::size_t pieces) {
  return Bytes{static_cast<std::int64_t>(Wide{size.count} * static_cast<Wide>(piece) / static_cast<Wide>(pieces))};
}

std::vector<BatchOperation> cut(const BatchOperation& batch, Bytes most) {
  const std::size_t pieces = pieces_of(batch, most);
  if (pieces == 1) return {batch};
  std::vector<BatchOperation> cut;
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    auto made = BatchOperation::make(batch.machine(), streams_of(batch, piece, pieces), batch.merging());
    TUTTI_EXPECTS(made.has_value(), "a piece of a valid batch is one");
    cut.push_back(*std::move(made));
  }
  return cut;
}

}  // namespace tutti
