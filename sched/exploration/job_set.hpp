#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/error.hpp"
#include "sched/tasks/policy.hpp"
#include "sched/tasks/task_timing.hpp"

namespace tutti {

/// One job of a job set, in plain nanoseconds from the start of all time.
///
/// Of two ready jobs the one with the smaller priority goes first; of two equal ones that of the smaller task, then the
/// smaller id.
struct JobTiming {
  Duration earliest{};  ///< >= 0; release, which is the arrival
  Duration latest{};    ///< >= earliest; release
  Duration least{};     ///< >= 0; cost
  Duration most{};      ///< >= least; cost
  Duration deadline{};  ///< absolute
  std::int64_t priority = 0;
  std::int64_t task = 0;
  std::int64_t id = 0;  ///< unique in its task

  friend bool operator==(const JobTiming&, const JobTiming&) = default;
};

/// Where times stop being in reach, 146 years: what is below can be doubled without wrapping.
inline constexpr Duration kTimeInReach{(std::int64_t{1} << 62) - 1};

/// How often a strictly periodic set does the same again.
struct Repetition {
  std::size_t startup = 0;    ///< jobs that arrive before the largest offset
  std::size_t per_round = 0;  ///< jobs of a hyperperiod
  Duration hyperperiod{};
};

/// @return  a sentence where that is out of reach: the hyperperiod is above 2^62 ns, or has, or the start has, more
///          than `most_jobs`.
[[nodiscard]] Expected<Repetition> repetition_of(std::span<const TaskTiming> tasks, std::size_t most_jobs);

/// The endless jobs of strictly periodic tasks, in the order of their arrivals, at the same time in that of the tasks.
///
/// Priorities are absolute deadlines (EDF), periods (RM) or relative deadlines (DM); `task` counts from 0 in the order
/// of the file and `id` from 0 in the order of the arrivals, so that ties fall as everywhere else.
class PeriodicJobs {
 public:
  /// @pre  at least one task; every number is in reach (`kTimeInReach`).
  PeriodicJobs(std::span<const TaskTiming> tasks, Policy policy);

  /// @return  nothing once arrivals are out of reach.
  [[nodiscard]] std::optional<JobTiming> next();

 private:
  struct Source {
    std::int64_t arrival;
    std::uint32_t task;
  };
  static bool later(const Source& a, const Source& b);
  void sift_down();

  std::vector<TaskTiming> tasks_;
  std::vector<std::int64_t> ids_;  ///< [n] of the next job
  std::vector<Source> heap_;       ///< the soonest first
  Policy policy_;
};

/// Whether every number of the tasks is in reach.
[[nodiscard]] bool in_reach(std::span<const TaskTiming> tasks);

/// The first `count` jobs of strictly periodic tasks, in the order of their arrivals.
/// @return  fewer where arrivals leave what is in reach.
/// @pre     every number is in reach.
[[nodiscard]] std::vector<JobTiming> expand(std::span<const TaskTiming> tasks, Policy policy, std::size_t count);

}  // namespace tutti
