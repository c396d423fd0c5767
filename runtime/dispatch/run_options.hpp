#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "model/base/error.hpp"
#include "runtime/core/backend_options.hpp"
#include "sched/tasks/task.hpp"

namespace tutti::internal {

struct JobRecord;
class JobRecorder;
class SpareMachines;
class TriggerSource;

/// Where a run goes on that has run before, on other machines.
struct EarlierRun {
  Duration start{};                     ///< of the run, on its clock
  std::vector<std::uint64_t> released;  ///< [tasks] jobs
};

/// Length of a periodic run, and who hears of it.
struct RunOptions {
  std::optional<std::uint64_t> jobs;               ///< number of arrivals, all tasks together
  std::optional<Duration> arrivals_before;         ///< arrivals before this instant
  std::uint64_t seed = 1;                          ///< of the release jitter
  const std::atomic<bool>* interrupted = nullptr;  ///< set from outside: the job under way is the last one
  /// Called by the worker of the job's partition when a job has ended, before its batches are reviewed: overruns and
  /// broken bounds are not known yet. It may be empty.
  std::function<void(const JobRecord&)> on_job_end = {};
  std::span<JobRecorder* const> recorders = {};  ///< [partitions] of a journal; empty: none is written
  /// [tasks] their positions in the journal; empty: as in the set.
  std::span<const TaskId> names = {};
  /// [tasks] what releases their jobs; null where the clock does, and all may be left out where it releases all.
  std::span<TriggerSource* const> triggers = {};
  bool endless = false;  ///< until it is interrupted, whatever the limits say
  /// Whether the record of the run has each job. If not, its memory does not grow with the run, and its summaries have
  /// all. @pre true where it is not endless
  bool keeps_jobs = true;
  /// Makes machines for the tasks of a partition that need none of the GPUs that it has lost: they go on
  /// (`prepare_replanned_run`). Null: all tasks of a partition end with its first lost GPU.
  SpareMachines* spares = nullptr;
  /// What leads the jobs. @pre a GPU: `can_be_led`, and the bounds are those of the machine `led_by_gpu`
  ConductorKind conductor = ConductorKind::Host;
  Duration host_away{};  ///< how long the host may be away while a GPU leads: so much is armed ahead
  /// Times and indices of jobs count on from there, and so does `arrivals_before`.
  std::optional<EarlierRun> earlier = {};
};

/// Most jobs of a run with neither limit, which ends one hyperperiod behind the last offset.
inline constexpr std::uint64_t kDefaultJobs = 1000;
/// More jobs are refused where every job's record is kept.
inline constexpr std::uint64_t kMostJobs = 10'000'000;

/// How many jobs of each task a run releases, by arrival, ties by the order of the file; of an endless run the largest
/// number. A run ends before the first job whose deadline lies beyond the longest Duration (292 years).
/// @errors InvalidInput: more than `kMostJobs`; such a job is among those that are asked for.
[[nodiscard]] Expected<std::vector<std::uint64_t>> jobs_per_task(const TaskSet& tasks, const RunOptions& options);

}  // namespace tutti::internal
