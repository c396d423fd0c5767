#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/batch/batch.hpp"
#include "sched/tasks/task.hpp"

namespace tutti::internal {

/// Number of chunks, each of at most `most` bytes, of a batch with a largest transfer of `bytes`; at most
/// `kMostChunks`.
/// @pre  bytes >= 0, most >= 1.
[[nodiscard]] std::size_t chunks_of(std::int64_t bytes, std::int64_t most);

/// Number of chunks of a batch; 1 where `most` is 0.
[[nodiscard]] std::size_t chunks_of(const Batch& batch, Bytes most);

/// Range of chunk sizes that cut every batch into equally many chunks.
struct CutRange {
  std::int64_t least = 0;  ///< bytes
  std::int64_t most = 0;   ///< the largest number where no batch is cut

  /// The size of them to report: the largest multiple of a power of ten of at most their 1000th.
  [[nodiscard]] std::int64_t rounded() const;

  friend bool operator==(const CutRange&, const CutRange&) = default;
};

/// All sizes that cut as `size` does.
/// @param largest  the largest transfer of each batch, bytes > 0.
/// @pre  size >= 1.
[[nodiscard]] CutRange sizes_with_equal_cuts(std::span<const std::int64_t> largest, std::int64_t size);

/// The largest transfer of each batch of a task, bytes > 0; of a set, of the tasks that have no `cut` of their own.
[[nodiscard]] std::vector<std::int64_t> transfers_to_cut(const Task& task);
[[nodiscard]] std::vector<std::int64_t> transfers_to_cut(const TaskSet& set);

/// The largest transfer of a batch; 0 where it has none.
[[nodiscard]] Bytes largest_transfer(const Batch& batch);

/// Where chunk `chunk` of `chunks` of a transfer begins, in bytes; chunk `chunks` is its end. A copy of rows is whole,
/// in the first chunk.
[[nodiscard]] Bytes chunk_start(const Transfer& transfer, std::size_t chunk, std::size_t chunks);

/// A batch in chunks that run one after the other. Chunks of equal sizes are one batch, which is made, planned and
/// bounded once: a thousand chunks are mostly two or three batches.
struct Chunks {
  std::vector<Batch> batches;      ///< in the order of their first chunks; the last chunk has one of its own
  std::vector<std::size_t> order;  ///< [chunks] position in `batches`

  [[nodiscard]] std::size_t size() const { return order.size(); }
  [[nodiscard]] const Batch& operator[](std::size_t chunk) const { return batches[order[chunk]]; }
};

/// Cuts a batch into chunks, each with at most `most` bytes of every stream: so a more urgent job need not wait for the
/// whole batch. Every chunk pays the set-up again. Kernels run in the last chunk, when all their bytes are there.
///
/// @param most  0: not cut
/// @return  at most `kMostChunks`, with larger transfers then; the batch itself where it is small enough.
[[nodiscard]] Chunks cut(const Batch& batch, Bytes most);

/// Most chunks of a batch; more plans would take too long to make.
inline constexpr std::size_t kMostChunks = 1000;

}  // namespace tutti::internal
