#include "apps/lab/benches/transfer_bench.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "apps/terminal.hpp"

namespace tutti::internal {
namespace {

/// Times all groups in the place of the thread that measures, pass by pass, in one slice.
Expected<void> time_slice(InterleavedRuns& runs, std::size_t slice, std::size_t slices, const TransferBench& bench,
                          const MeasuringPlace& place, std::vector<InterleavedRuns::GroupTimes>& times,
                          programs::Progress& progress) {
  Expected<void> done;
  place.run([&] {
    for (std::size_t pass = 1; pass <= bench.passes; ++pass)
      for (std::size_t group = 0; group < times.size() && done; ++group) {
        done = runs.time(group, bench.limit.after(slice * bench.passes + pass, slices * bench.passes),
                         *bench.interrupted, times[group]);
        progress.step();
      }
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
  programs::Progress progress("copies", bench.slices * loads.size() * bench.passes * groups.size());
  for (std::size_t slice = 0; slice < bench.slices; ++slice) {
    for (LoadedTimes& loaded : timed.loads) {
      std::optional<Load> load;
      place.beside([&] { load.emplace(loaded.load, bench.programs); });
      loaded.by = load->by();
      auto done = time_slice(*runs, slice, bench.slices, bench, place, loaded.times, progress);
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

Expected<std::vector<InterleavedRuns::GroupTimes>> time_pairs(Executor& executor, const TransferBench& bench,
                                                              const MeasuringPlace& place,
                                                              const std::vector<Bytes>& sizes) {
  std::vector<std::vector<BatchSpec>> groups;  // [sizes][pairs]
  for (const Bytes size : sizes) {
    auto& group = groups.emplace_back();
    for (const auto& [first, second] : line_pairs(bench.lines.size()))
      group.push_back(pair_batch(bench.lines[first], bench.lines[second], bench.ends, size));
  }
  auto runs = InterleavedRuns::make(executor, groups);
  if (!runs) return tl::unexpected(std::move(runs.error()));
  auto times = runs->no_times();
  programs::Progress progress("pairs of copies", bench.passes * groups.size());
  auto done = time_slice(*runs, 0, 1, bench, place, times, progress);
  if (!done) return tl::unexpected(std::move(done.error()));
  return times;
}

}  // namespace tutti::internal
