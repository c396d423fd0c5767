#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "model/base/units.hpp"
#include "sched/tasks/arrivals.hpp"

namespace tutti::internal {

/// Whether every job meets its deadline; `Unknown` where a test cannot say.
enum class Answer : std::uint8_t { Schedulable, NotSchedulable, Unknown };

/// The non-preemptive regions of a job: more urgent jobs may take the machine between them.
struct JobRegions {
  Duration longest{};               ///< the longest one
  Duration last{};                  ///< the last one; no preemption point follows it
  std::vector<Duration> each = {};  ///< all of them in order, where known: for runs, not for answers

  /// @pre  `each` is not empty.
  [[nodiscard]] static JobRegions of(std::vector<Duration> each) {
    return {*std::max_element(each.begin(), each.end()), each.back(), std::move(each)};
  }
  friend bool operator==(const JobRegions&, const JobRegions&) = default;
};

/// Parameters of one task for the schedulability tests, in nanoseconds; one entry per task, in the order of the file.
struct TaskTiming {
  Duration wcet{};       ///< >= 0
  Duration period{};     ///< > 0
  Duration deadline{};   ///< > 0, from the arrival
  Duration jitter{};     ///< >= 0, longest time from the arrival until the job is ready
  int priority = 0;      ///< under `given`: smaller is more urgent, of equal ones the earlier in the file
  Duration offset{};     ///< >= 0, first arrival; counts where arrivals are periodic
  Duration best_case{};  ///< 0 <= best case <= wcet; counts where arrivals are periodic
  Arrivals arrivals = Arrivals::Sporadic;  ///< of the whole set
  std::optional<JobRegions> regions = {};  ///< absent: jobs are non-preemptive
  /// Tasks with the same number arrive together. Absent: arrivals are independent of all others.
  std::optional<std::size_t> arrives_with = {};
  Duration held_up{};           ///< share of the wcet for which the machine may be held up
  Duration held_up_together{};  ///< such shares of the jobs of one busy period, at most; of the whole set. 0: not known

  /// Longest non-preemptive region: the blocking that this task causes.
  [[nodiscard]] Duration longest_region() const { return regions ? regions->longest : wcet; }
  /// Last non-preemptive region: once it starts, the job runs to its end.
  [[nodiscard]] Duration last_region() const { return regions ? regions->last : wcet; }

  friend bool operator==(const TaskTiming&, const TaskTiming&) = default;
};

}  // namespace tutti::internal
