#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/base/error.hpp"
#include "sched/tasks/policy.hpp"
#include "sched/tasks/task_timing.hpp"

namespace tutti::internal {

/// One job of a job set, in nanoseconds from time 0.
///
/// Among ready jobs the smallest priority value runs first; ties go to the smaller task, then to the smaller id.
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

/// The largest time in reach, 146 years: times up to it can be doubled without overflow.
inline constexpr Duration kTimeInReach{(std::int64_t{1} << 62) - 1};

/// How the arrivals of a strictly periodic set repeat.
struct Repetition {
  std::size_t startup = 0;    ///< jobs that arrive before the largest offset
  std::size_t per_round = 0;  ///< jobs of a hyperperiod
  Duration hyperperiod{};
};

/// @return  an error where that is out of reach: the hyperperiod is above 2^62 ns, or the hyperperiod or the startup
///          has more than `most_jobs` jobs.
[[nodiscard]] Expected<Repetition> repetition_of(std::span<const TaskTiming> tasks, std::size_t most_jobs);

/// The infinite sequence of jobs of strictly periodic tasks, by arrival, then by task.
///
/// Priorities are absolute deadlines (EDF), periods (RM) or relative deadlines (DM); `task` counts from 0 in the order
/// of the file and `id` from 0 in the order of the arrivals, so that ties are broken as everywhere else.
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
  std::vector<Source> heap_;       ///< the earliest arrival on top
  Policy policy_;
};

/// Whether every number of the tasks is in reach.
[[nodiscard]] bool in_reach(std::span<const TaskTiming> tasks);

/// The first `count` jobs of strictly periodic tasks, in the order of their arrivals.
/// @return  fewer where arrivals leave what is in reach.
/// @pre     every number is in reach.
[[nodiscard]] std::vector<JobTiming> expand(std::span<const TaskTiming> tasks, Policy policy, std::size_t count);

}  // namespace tutti::internal
