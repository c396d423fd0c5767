#pragma once
#include <cstddef>

#include "runtime/core/buffer.hpp"
#include "sched/tasks/cut.hpp"

namespace tutti::internal {

/// The part of a buffer at one end of a transfer that chunk `chunk` of `chunks` moves.
[[nodiscard]] inline BufferView chunk_view(const BufferView& whole, const Transfer& transfer, std::size_t chunk,
                                           std::size_t chunks) {
  if (transfer.is_strided()) return chunk == 0 ? whole : whole.first(Bytes{0});
  const Bytes start = chunk_start(transfer, chunk, chunks);
  return whole.part(start, chunk_start(transfer, chunk + 1, chunks) - start);
}

}  // namespace tutti::internal
