#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/base/error.hpp"
#include "sched/tasks/task.hpp"

namespace tutti::internal {

/// Length of a periodic run.
struct RunOptions {
  std::optional<std::uint64_t> jobs;               ///< number of arrivals, all tasks together
  std::optional<Duration> arrivals_before;         ///< arrivals before this instant
  std::uint64_t seed = 1;                          ///< of the release jitter
  const std::atomic<bool>* interrupted = nullptr;  ///< set from outside: the job under way is the last one
};

/// Most jobs of a run with neither limit, which ends one hyperperiod behind the last offset.
inline constexpr std::uint64_t kDefaultJobs = 1000;
/// More jobs are refused, since every job's record is kept.
inline constexpr std::uint64_t kMostJobs = 10'000'000;

/// How many jobs of each task a run releases, by arrival, ties by the order of the file. A run ends before the first
/// job whose deadline lies beyond the longest Duration (292 years).
/// @errors InvalidInput: more than `kMostJobs`; such a job is among those that are asked for.
[[nodiscard]] Expected<std::vector<std::uint64_t>> jobs_per_task(const TaskSet& tasks, const RunOptions& options);

}  // namespace tutti::internal
