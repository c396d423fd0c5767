#include "sched/tasks/cut.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>

#include "model/base/expects.hpp"
#include "model/base/wide.hpp"

namespace tutti::internal {
namespace {

/// What a chunk has of each transfer.
std::vector<Bytes> sizes_in(const Batch& batch, std::size_t chunk, std::size_t chunks) {
  std::vector<Bytes> sizes;
  for (const CommandStream& stream : batch.streams())
    if (const auto& transfer = stream.transfer)
      sizes.push_back(chunk_start(*transfer, chunk + 1, chunks) - chunk_start(*transfer, chunk, chunks));
  return sizes;
}

std::vector<CommandStream> streams_of(const Batch& batch, std::size_t chunk, std::size_t chunks) {
  std::vector<CommandStream> streams;
  for (CommandStream stream : batch.streams()) {
    const bool is_last = chunk + 1 == chunks;
    if (!is_last) stream.kernel.reset();
    if (stream.transfer) {
      Transfer& transfer = *stream.transfer;
      if (!transfer.is_strided()) transfer.rows = {};  // rows that follow each other are cut anywhere
      const Bytes begin = chunk_start(transfer, chunk, chunks), end = chunk_start(transfer, chunk + 1, chunks);
      transfer.size = end - begin;
    }
    if (stream.transfer || stream.kernel) streams.push_back(std::move(stream));
  }
  return streams;
}

Batch make_chunk(const Batch& batch, std::size_t chunk, std::size_t chunks) {
  const auto made = Batch::make(batch.machine(), streams_of(batch, chunk, chunks), batch.merging());
  TUTTI_EXPECTS(made.has_value(), "a piece of a valid batch is one");
  return made->within(batch.application());
}

constexpr std::int64_t kWhole = std::numeric_limits<std::int64_t>::max();

std::int64_t ceil_of(std::int64_t dividend, std::int64_t divisor) {
  return static_cast<std::int64_t>(ceil_div(dividend, divisor));
}

}  // namespace

std::int64_t CutRange::rounded() const {
  if (most == kWhole) return least;
  std::int64_t unit = 1;
  while (unit <= most / 10'000) unit *= 10;
  return std::max(least, most - most % unit);
}

CutRange sizes_with_equal_cuts(std::span<const std::int64_t> largest, std::int64_t size) {
  CutRange range{1, kWhole};
  for (const std::int64_t bytes : largest) {
    const auto chunks = static_cast<std::int64_t>(chunks_of(bytes, size));
    // n chunks: bytes / n <= size < bytes / (n - 1). Larger counts are capped at `kMostChunks`.
    if (chunks < static_cast<std::int64_t>(kMostChunks)) range.least = std::max(range.least, ceil_of(bytes, chunks));
    if (chunks > 1) range.most = std::min(range.most, ceil_of(bytes, chunks - 1) - 1);
  }
  return range;
}

std::vector<std::int64_t> transfers_to_cut(const Task& task) {
  std::vector<std::int64_t> largest;
  for (const Batch* batch : batches_of(task))
    if (const Bytes bytes = largest_transfer(*batch); bytes > Bytes{0}) largest.push_back(bytes.count);
  return largest;
}

std::vector<std::int64_t> transfers_to_cut(const TaskSet& set) {
  std::vector<std::int64_t> largest;
  for (const Task& task : set.tasks)
    if (!task.cut) std::ranges::copy(transfers_to_cut(task), std::back_inserter(largest));
  return largest;
}

std::size_t chunks_of(std::int64_t bytes, std::int64_t most) {
  return static_cast<std::size_t>(std::clamp<Wide>(ceil_div(bytes, most), 1, kMostChunks));
}

Bytes largest_transfer(const Batch& batch) {
  Bytes largest{0};
  for (const CommandStream& stream : batch.streams())
    if (stream.transfer) largest = std::max(largest, stream.transfer->size);
  return largest;
}

std::size_t chunks_of(const Batch& batch, Bytes most) {
  return most > Bytes{0} ? chunks_of(largest_transfer(batch).count, most.count) : 1;
}

Bytes chunk_start(const Transfer& transfer, std::size_t chunk, std::size_t chunks) {
  if (transfer.is_strided()) return chunk == 0 ? Bytes{0} : transfer.size;
  const Wide size{transfer.size.count};
  return Bytes{static_cast<std::int64_t>(size * static_cast<Wide>(chunk) / static_cast<Wide>(chunks))};
}

Chunks cut(const Batch& batch, Bytes most) {
  const std::size_t chunks = chunks_of(batch, most);
  if (chunks == 1) return {{batch}, {0}};
  Chunks cut;
  std::map<std::vector<Bytes>, std::size_t> of_sizes;
  for (std::size_t chunk = 0; chunk + 1 < chunks; ++chunk) {
    const auto [known, is_new] = of_sizes.try_emplace(sizes_in(batch, chunk, chunks), cut.batches.size());
    if (is_new) cut.batches.push_back(make_chunk(batch, chunk, chunks));
    cut.order.push_back(known->second);
  }
  cut.order.push_back(cut.batches.size());
  cut.batches.push_back(make_chunk(batch, chunks - 1, chunks));
  return cut;
}

}  // namespace tutti::internal
