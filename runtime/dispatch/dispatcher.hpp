#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/core/executor.hpp"
#include "runtime/dispatch/change_requests.hpp"
#include "runtime/dispatch/run_options.hpp"
#include "runtime/dispatch/task_program.hpp"
#include "sched/admission/admission.hpp"
#include "sched/whatif/scenario.hpp"

namespace tutti {

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
  /// Between arrival and finish the programs of the run, this job's and others', worked so long on the host beside what
  /// their tasks declare: filled buffers, read results. No bound covers that.
  Duration programs{};
  Duration after{};                     ///< from the finish until the job's program had read its result
  std::optional<BrokenBound> broken{};  ///< the job was over its bound, or one of its batches over its latest finish

  [[nodiscard]] bool missed() const { return !finish || *finish > deadline; }
  /// What a bound of responses is about: from the arrival to the finish, without what programs do beside it.
  /// @pre it was run.
  [[nodiscard]] Duration response() const { return *finish - arrival - programs; }
  /// From the arrival until its result is read. @pre it was run.
  [[nodiscard]] Duration end_to_end() const { return *finish - arrival + after; }
};

/// A request to a task set that ran, and what became of it.
struct ChangeRecord {
  TaskChange change;
  Duration answered{};  ///< when
  ChangeAnswer answer;
};

/// What a run did.
struct RunRecord {
  std::vector<JobRecord> jobs;  ///< in the order in which they ended; none for what never started
  bool interrupted = false;
  std::optional<Error> fatal;         ///< the machine's or the host's trouble that ended it early
  std::vector<ChangeRecord> changes;  ///< in the order of the answers
};

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
/// Every job is held against its bound, and each of its batches against its latest finish; one that was over says why
/// (`JobRecord::broken`).
///
/// Jobs arrive strictly periodically from their offsets and are ready after a jitter drawn from the seed. All buffers
/// and records are there before the first release, and where a backend starts cold every batch has been run once; the
/// loop allocates nothing but the error of a job that fails. While it waits, and while a batch is under way, the first
/// batches of the most urgent ready job and of the job that is ready next are armed.
///
/// @param programs  [tasks]
/// @pre the set is one partition; `partitioned_run` runs several.
/// @errors InvalidInput: a batch that was issued before is still under way. InvalidInput, Machine, Kernel: buffers or
///         batches could not be prepared. No job has run.
[[nodiscard]] Expected<RunRecord> run_tasks(Executor& executor, const AdmittedTaskSet& admitted,
                                            std::span<TaskProgram* const> programs, const RunOptions& options);

/// Releases the jobs of a set whose tasks come and go while it runs. Between two jobs the requests that are due are
/// answered; one that is granted counts from that moment: a task that leaves releases no job that has not arrived yet,
/// and a task that comes has its first arrival then, whatever its offset. The batches of all tasks are prepared before
/// the run, so a change takes the time of its test alone: one at most before a job. Only where it answers, the loop
/// takes a lock and memory. What is asked too late is refused.
///
/// @param requests  more may be posted while it runs, from any thread
/// @param options   the run ends with the jobs that arrive before `arrivals_before`, which must be given
/// @errors as `run_tasks`.
[[nodiscard]] Expected<RunRecord> run_changing_tasks(Executor& executor, ChangingTaskSet set,
                                                     std::span<TaskProgram* const> programs, ChangeRequests& requests,
                                                     const RunOptions& options);

/// Runs a scenario, whether the task set keeps its deadlines or not: what can happen, and did. Nothing was promised, so
/// no job is over its bound. A job that is done
/// before the time that the scenario gives it keeps the machine for the rest, and so does each of its regions.
/// @param scenario  its tasks are those of the set.
/// @errors as `run_tasks`.
[[nodiscard]] Expected<RunRecord> run_scenario(Executor& executor, const PlannedTaskSet& planned,
                                               std::span<TaskProgram* const> programs, const Scenario& scenario,
                                               const std::atomic<bool>* interrupted = nullptr);

}  // namespace tutti
