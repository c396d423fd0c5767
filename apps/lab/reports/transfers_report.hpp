#pragma once
#include <string>
#include <vector>

#include "apps/lab/benches/measured_methods.hpp"
#include "apps/lab/measuring/bus_rates.hpp"
#include "apps/lab/measuring/load_threads.hpp"
#include "apps/lab/measuring/measuring_thread.hpp"
#include "apps/lab/measuring/samples.hpp"
#include "apps/tutti/reports/report.hpp"

namespace tutti::internal {

/// Under what copies were timed.
struct CopyCondition {
  LoadKind load = LoadKind::None;
  Scheduling scheduling = Scheduling::Virtual;
  std::string load_by = {};  ///< as `Load::by`

  /// "idle, SCHED_FIFO", "cpu, SCHED_OTHER"
  [[nodiscard]] std::string name() const;
};

/// Times of copies under one condition.
struct CopyTimesUnder {
  CopyCondition condition;
  std::vector<std::vector<SampleSummary>> cells;  ///< [sizes][lines]; a count of 0: left out
};

/// Times until two copies that start together are both complete.
struct PairTimes {
  std::size_t first = 0, second = 0;  ///< lines
  Bytes size;                         ///< of each
  SampleSummary times;
};

/// Result of `bench transfers`.
struct TransfersRecord {
  std::string machine, backend, clock;
  std::string date, host;  ///< empty on the virtual clock, whose results do not depend on either
  std::vector<std::string> notes;
  CopyEnds ends;
  std::vector<CopyLine> lines;
  std::vector<Bytes> sizes;
  std::vector<CopyTimesUnder> conditions;
  std::vector<PairTimes> pairs;
  Bytes bus_copy{};
  std::vector<BusSet> bus;
  std::vector<std::vector<std::string>> bus_gpus;  ///< [bus] names
  std::vector<BusRates> bus_rates;                 ///< [bus]
};

/// What load makes of one copy: its time under load over its time on the idle host.
struct LoadFactor {
  std::size_t condition = 0, size = 0, line = 0;
  double p999 = 0, worst = 0;
};

/// Factors of all cells under load that were timed on the idle host too.
[[nodiscard]] std::vector<LoadFactor> load_factors(const TransfersRecord& record);

[[nodiscard]] Json transfers_json(const TransfersRecord& record);
[[nodiscard]] std::string transfers_text(const TransfersRecord& record);
/// Average and worst over size: a row of drawings for each condition, copies up and down side by side.
/// @pre a condition was measured.
[[nodiscard]] std::string transfers_svg(const TransfersRecord& record);

}  // namespace tutti::internal
