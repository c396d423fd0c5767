#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "model/units.hpp"
#include "sched/tasks/arrivals.hpp"

namespace tutti {

/// Whether every job meets its deadline; `Unknown` where a test cannot say.
enum class Answer : std::uint8_t { Schedulable, NotSchedulable, Unknown };

/// The non-preemptive regions of a job: more urgent jobs may take the machine between them.
struct JobRegions {
  Duration longest{};               ///< the longest one
  Duration last{};                  ///< the last one, behind which there is no such place
  std::vector<Duration> each = {};  ///< all of them in order, where they are known: runs are made of these, no answers

  /// @pre  `each` is not empty.
  [[nodiscard]] static JobRegions of(std::vector<Duration> each) {
    return {*std::max_element(each.begin(), each.end()), each.back(), std::move(each)};
  }
  friend bool operator==(const JobRegions&, const JobRegions&) = default;
};

/// All that a schedulability test may look at, in plain nanoseconds. One entry a task, in the order of the file.
struct TaskTiming {
  Duration wcet{};       ///< >= 0
  Duration period{};     ///< > 0
  Duration deadline{};   ///< > 0, from the arrival
  Duration jitter{};     ///< >= 0, from the arrival to ready, at most
  int priority = 0;      ///< under `given`: smaller is more urgent, of equal ones the earlier in the file
  Duration offset{};     ///< >= 0, first arrival; counts where arrivals are periodic
  Duration best_case{};  ///< 0 <= best case <= wcet; counts where arrivals are periodic
  Arrivals arrivals = Arrivals::Sporadic;  ///< of the whole set
  std::optional<JobRegions> regions = {};  ///< absent: nobody takes the machine from its jobs

  /// For so long a job of the task can keep the machine from a more urgent one.
  [[nodiscard]] Duration longest_region() const { return regions ? regions->longest : wcet; }
  /// At its end a job has the machine for itself for so long.
  [[nodiscard]] Duration last_region() const { return regions ? regions->last : wcet; }

  friend bool operator==(const TaskTiming&, const TaskTiming&) = default;
};

}  // namespace tutti
