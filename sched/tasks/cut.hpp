#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/batch.hpp"

namespace tutti {

/// Into how many chunks of at most `most` bytes a batch falls whose largest transfer has so many; at most
/// `kMostChunks`.
/// @pre  bytes >= 0, most >= 1.
[[nodiscard]] std::size_t chunks_of(std::int64_t bytes, std::int64_t most);

/// The same of a batch; 1 where `most` is 0.
[[nodiscard]] std::size_t chunks_of(const Batch& batch, Bytes most);

/// The largest transfer of a batch; 0 where it has none.
[[nodiscard]] Bytes largest_transfer(const Batch& batch);

/// Where chunk `chunk` of `chunks` of a transfer begins, in bytes; chunk `chunks` is its end.
[[nodiscard]] Bytes chunk_start(Bytes size, std::size_t chunk, std::size_t chunks);

/// A batch as batches that run one after the other, each of which moves at most `most` bytes of every stream: so a more
/// urgent job need not wait for all of it. Every chunk pays the set-up again. Kernels come with the last chunk, when
/// all their bytes are there.
///
/// @param most  0: not cut
/// @return  at most `kMostChunks`, whose transfers then are larger; the batch itself where it is small enough.
[[nodiscard]] std::vector<Batch> cut(const Batch& batch, Bytes most);

/// More plans would take too long to make.
inline constexpr std::size_t kMostChunks = 1000;

}  // namespace tutti
