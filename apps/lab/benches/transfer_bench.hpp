#pragma once
#include <atomic>
#include <cstddef>
#include <vector>

#include "apps/lab/benches/interleaved_runs.hpp"
#include "apps/lab/benches/measured_methods.hpp"
#include "apps/lab/measuring/load.hpp"
#include "apps/lab/measuring/measuring_thread.hpp"

namespace tutti::internal {

/// What `bench transfers` measures, and how often.
struct TransferBench {
  CopyEnds ends;
  std::vector<CopyLine> lines;
  std::vector<Bytes> sizes;
  SampleLimit limit;        ///< of each line at each size
  std::size_t slices = 3;   ///< in which loads take turns
  std::size_t passes = 10;  ///< over all sizes, in each slice: a disturbance of the host then meets many
  bool programs = true;     ///< whether other programs may be the load
  const std::atomic<bool>* interrupted = nullptr;  ///< ends it early
};

/// Times under one load.
struct LoadedTimes {
  LoadKind load = LoadKind::None;
  std::string by = {};                             ///< as `Load::by`
  std::vector<InterleavedRuns::GroupTimes> times;  ///< [sizes]; members are lines
};

/// Copies under several loads.
struct TimedCopies {
  std::vector<LoadedTimes> loads;
  std::vector<InterleavedRuns::Refusal> refusals;  ///< by size and line
};

/// Times all lines at all sizes under each load, in slices: one load after the other, then all once more.
/// @errors as `InterleavedRuns`.
[[nodiscard]] Expected<TimedCopies> time_copies(Executor& executor, const TransferBench& bench,
                                                const MeasuringPlace& place, const std::vector<LoadKind>& loads);

/// Two lines whose copies start together.
struct LinePair {
  std::size_t first = 0, second = 0;
};
/// Every line beside itself and every later one.
[[nodiscard]] std::vector<LinePair> line_pairs(std::size_t lines);
/// The sizes at which pairs are measured: a few of the range; its last one where it has none of these.
[[nodiscard]] std::vector<Bytes> pair_sizes(const std::vector<Bytes>& sizes);

/// Times all pairs at these sizes on the idle host.
/// @return [sizes]; members are pairs, without times of those that are refused.
/// @errors as `InterleavedRuns`.
[[nodiscard]] Expected<std::vector<InterleavedRuns::GroupTimes>> time_pairs(Executor& executor,
                                                                            const TransferBench& bench,
                                                                            const MeasuringPlace& place,
                                                                            const std::vector<Bytes>& sizes);

}  // namespace tutti::internal
