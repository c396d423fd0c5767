#include "apps/tutti/lab/transfer_bench.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace tutti::internal {
namespace {

/// Times every group once, in the place of the thread that measures.
Expected<void> time_groups(InterleavedRuns& runs, const SampleLimit& limit, const TransferBench& bench,
                           const MeasuringPlace& place, InterleavedRuns::Times& times) {
  Expected<void> done;
  place.run([&] {
    for (std::size_t group = 0; group < times.size() && done; ++group)
      done = runs.time(group, limit, *bench.interrupted, times[group]);
  });
  return done;
}

}  // namespace

Expected<TimedCopies> time_copies(Executor& executor, const TransferBench& bench, const MeasuringPlace& place,
                                  const std::vector<LoadKind>& loads) {
  std::vector<std::vector<BatchSpec>> groups;  // [sizes][lines]
  for (const Bytes size : bench.sizes) {
    auto& group = groups.emplace_back();
    for (const CopyLine& line : bench.lines) group.push_back(line.batch(bench.ends, size));
  }
  auto runs = InterleavedRuns::make(executor, groups);
  if (!runs) return tl::unexpected(std::move(runs.error()));
  TimedCopies timed{{}, runs->refusals()};
  for (const LoadKind load : loads) timed.loads.push_back({load, {}, runs->no_times()});
  for (std::size_t slice = 0; slice < bench.slices; ++slice) {
    for (LoadedTimes& loaded : timed.loads) {
      std::optional<Load> load;
      place.beside([&] { load.emplace(loaded.load, bench.programs); });
      loaded.by = load->by();
      auto done = time_groups(*runs, bench.limit.part(bench.slices), bench, place, loaded.times);
      if (!done) return tl::unexpected(std::move(done.error()));
    }
  }
  return timed;
}

std::vector<LinePair> line_pairs(std::size_t lines) {
  std::vector<LinePair> pairs;
  for (std::size_t first = 0; first < lines; ++first)
    for (std::size_t second = first; second < lines; ++second) pairs.push_back({first, second});
  return pairs;
}

std::vector<Bytes> pair_sizes(const std::vector<Bytes>& sizes) {
  constexpr std::array kSizes{Bytes{4 << 10}, Bytes{64 << 10}, Bytes{1 << 20}, Bytes{16 << 20}};
  std::vector<Bytes> chosen;
  for (const Bytes size : kSizes)
    if (std::ranges::find(sizes, size) != sizes.end()) chosen.push_back(size);
  if (chosen.empty()) chosen.push_back(sizes.back());
  return chosen;
}

Expected<InterleavedRuns::Times> time_pairs(Executor& executor, const TransferBench& bench, const MeasuringPlace& place,
                                            const std::vector<Bytes>& sizes) {
  std::vector<std::vector<BatchSpec>> groups;  // [sizes][pairs]
  for (const Bytes size : sizes) {
    auto& group = groups.emplace_back();
    for (const auto& [first, second] : line_pairs(bench.lines.size()))
      group.push_back(pair_batch(bench.lines[first], bench.lines[second], bench.ends, size));
  }
  auto runs = InterleavedRuns::make(executor, groups);
  if (!runs) return tl::unexpected(std::move(runs.error()));
  InterleavedRuns::Times times = runs->no_times();
  auto done = time_groups(*runs, bench.limit, bench, place, times);
  if (!done) return tl::unexpected(std::move(done.error()));
  return times;
}

}  // namespace tutti::internal
