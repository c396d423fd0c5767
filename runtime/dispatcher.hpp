#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/executor.hpp"
#include "runtime/task_program.hpp"
#include "sched/admission.hpp"
#include "sched/scenario.hpp"

namespace tutti {

/// How much of a periodic run to do.
struct RunOptions {
  std::optional<std::uint64_t> jobs;               ///< so many arrivals, all tasks together
  std::optional<Duration> arrivals_before;         ///< arrivals before this instant
  std::uint64_t seed = 1;                          ///< of the release jitter
  const std::atomic<bool>* interrupted = nullptr;  ///< set from outside: the job under way is the last one
};

/// Where neither is given: one hyperperiod behind the last offset, at most this many jobs.
inline constexpr std::uint64_t kDefaultJobs = 1000;
/// More are refused, since every job's record is kept.
inline constexpr std::uint64_t kMostJobs = 10'000'000;

/// What became of one job. Times from the start of the run.
struct JobRecord {
  TaskId task;
  std::uint64_t index = 0;
  Duration arrival{};
  Duration start{};
  std::optional<Duration> finish;  ///< absent: it was never run
  Duration deadline{};             ///< absolute
  std::optional<Error> error;      ///< its results are invalid
  int overruns = 0;                ///< kernels that took longer than their declared worst

  [[nodiscard]] bool missed() const { return !finish || *finish > deadline; }
};

/// What a run did.
struct RunRecord {
  std::vector<JobRecord> jobs;  ///< in the order in which they ended; none for what never started
  bool interrupted = false;
  std::optional<Error> fatal;  ///< the machine's or the host's trouble that ended it early
};

/// How many jobs of each task a run releases, by arrival, ties by the order of the file. Jobs whose deadlines lie
/// beyond the longest Duration (292 years) are not released.
/// @errors InvalidInput: more than `kMostJobs`.
[[nodiscard]] Expected<std::vector<std::uint64_t>> jobs_per_task(const TaskSet& tasks, const RunOptions& options);

/// A run that lacks nothing but its start: all buffers and records are there. When it goes, they go.
///
/// Whoever has several at once on one host, each with a thread of its own, prepares all before the first starts and
/// keeps all until the last has ended: memory that is taken or given back may wait for what runs.
class PreparedRun {
 public:
  virtual ~PreparedRun() = default;
  /// @pre it has not run.
  [[nodiscard]] virtual RunRecord run() = 0;
};

/// All of `run_tasks` before its first release.
/// @param jobs  [tasks] so many of each are released
/// @errors as `run_tasks`.
[[nodiscard]] Expected<std::unique_ptr<PreparedRun>> prepare_run(Executor& executor, const AdmittedTaskSet& admitted,
                                                                 std::span<TaskProgram* const> programs,
                                                                 std::span<const std::uint64_t> jobs,
                                                                 const RunOptions& options);
/// All of `run_scenario` before its first release.
/// @errors as `run_tasks`.
[[nodiscard]] Expected<std::unique_ptr<PreparedRun>> prepare_run(Executor& executor, const PlannedTaskSet& planned,
                                                                 std::span<TaskProgram* const> programs,
                                                                 const Scenario& scenario,
                                                                 const std::atomic<bool>* interrupted = nullptr);

/// Releases the jobs of an admitted task set and runs them in the order of its policy. A job gives up the machine only
/// between two of its batches, and only where the task set allows it.
///
/// Jobs arrive strictly periodically from their offsets and are ready after a jitter drawn from the seed. All buffers
/// and records are there before the first release; the loop allocates nothing but the error of a job that fails. While
/// it waits, the first batch of the job that is released next is armed.
///
/// @param programs  [tasks]
/// @pre the set is one partition; `partitioned_run` runs several.
/// @errors InvalidInput: a batch that was issued before is still under way. InvalidInput, Machine: buffers or batches
///         could not be prepared. Nothing has run.
[[nodiscard]] Expected<RunRecord> run_tasks(Executor& executor, const AdmittedTaskSet& admitted,
                                            std::span<TaskProgram* const> programs, const RunOptions& options);

/// Runs a scenario, whether the task set keeps its deadlines or not: what can happen, and did. A job that is done
/// before the time that the scenario gives it keeps the machine for the rest.
/// @param scenario  its tasks are those of the set.
/// @errors as `run_tasks`.
[[nodiscard]] Expected<RunRecord> run_scenario(Executor& executor, const PlannedTaskSet& planned,
                                               std::span<TaskProgram* const> programs, const Scenario& scenario,
                                               const std::atomic<bool>* interrupted = nullptr);

}  // namespace tutti
