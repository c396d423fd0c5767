#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/executor.hpp"
#include "runtime/dispatch/bound_by.hpp"
#include "runtime/dispatch/change_requests.hpp"
#include "runtime/dispatch/job_scheduler.hpp"
#include "runtime/dispatch/run_options.hpp"
#include "runtime/dispatch/task_program.hpp"
#include "runtime/trace/job_summary.hpp"
#include "sched/admission/admission.hpp"
#include "sched/whatif/scenario.hpp"

namespace tutti::internal {

/// Record of one job. Times are from the start of the run.
struct JobRecord {
  TaskId task;
  std::uint64_t index = 0;
  Duration arrival{};
  Duration start{};
  std::optional<Duration> finish;  ///< absent: it was never run
  Duration deadline{};             ///< absolute
  std::optional<Error> error;      ///< its results are invalid
  Duration late{};                 ///< from the instant at which it was ready and the dispatcher free until it was seen
  int overruns = 0;                ///< kernels that took longer than their declared worst
  Duration programs{};  ///< from when it was seen ready until its program had filled its buffers; no bound covers it
  Duration after{};     ///< from the finish until the job's program had read its result
  /// The job was over its bound or missed its deadline, or one of its batches was over its latest finish.
  std::optional<BrokenBound> broken{};
  JobVerdict verdict = JobVerdict::Met;
  Duration ready{};                ///< with its jitter
  JobLoad load{};                  ///< where its time went, once it has finished
  bool reused_input = false;       ///< its input was that of an earlier job (`LateInput::Reuse`)
  bool overwritten = false;        ///< its consumer did not have its results whole (`LateConsumer::Overwrite`)
  std::optional<Duration> seen{};  ///< when the host had its record; absent: the host led it, or it never ran

  /// Whether it met no deadline although it was released. A job that failed counts as that alone.
  [[nodiscard]] bool missed() const { return met_no_deadline(verdict); }
  /// Whether something broke: the machine, a kernel, a program, or jobs took so long that no buffers were left.
  [[nodiscard]] bool has_failed() const { return verdict == JobVerdict::Failed || verdict == JobVerdict::Dropped; }
  /// Response time that a bound limits: from the arrival to the finish, without `programs`.
  /// @pre it was run.
  [[nodiscard]] Duration response() const { return *finish - arrival - programs; }
  /// The same until the host had its record. @pre it was seen.
  [[nodiscard]] Duration response_at_host() const { return *seen - arrival - programs; }
  /// From the arrival until its result is read. @pre it was run.
  [[nodiscard]] Duration end_to_end() const { return *finish - arrival + after; }
};

/// A record as the journal and the summaries see it.
/// @param names  [tasks] their positions there; empty: the same
[[nodiscard]] JobEntry entry_of(const JobRecord& job, std::span<const TaskId> names = {});
/// The summaries of jobs. @return [tasks]
[[nodiscard]] std::vector<JobSummary> summaries_of(std::span<const JobRecord> jobs, std::size_t tasks);

/// A request to change a running task set, and its answer.
struct ChangeRecord {
  TaskChange change;
  Duration answered{};  ///< when
  ChangeAnswer answer;
};

/// What came of the tasks of a partition that has lost GPUs. Times are from the start of the run.
struct Replanning {
  Duration at{};                         ///< when its jobs had ended
  std::vector<VertexId> gpus;            ///< that are lost, ascending
  std::vector<TaskId> ended;             ///< tasks that need one of them
  std::vector<TaskId> resumed;           ///< tasks that were admitted anew
  std::optional<Duration> resumed_at{};  ///< with `resumed`: when they went on
  std::vector<TaskId> refused{};         ///< tasks that need none of them and do not go on
  std::string reason{};                  ///< why not
};

/// Record of a run.
struct RunRecord {
  /// Of all jobs that were released, in the order in which they ended; none where `RunOptions::keeps_jobs` is false.
  std::vector<JobRecord> jobs;
  std::vector<JobSummary> summaries;  ///< [tasks]
  std::vector<JobLoad> loads{};       ///< [tasks] of all jobs that finished with valid results
  bool interrupted = false;
  std::optional<Error> fatal;             ///< of the machine, the host or a program that threw: it ended the run
  std::vector<ChangeRecord> changes;      ///< in the order of the answers
  std::vector<Suspension> suspensions{};  ///< in order of time
  std::vector<TriggerCounts> triggers{};  ///< [tasks] nothing of those that the clock releases
  std::vector<Replanning> replanned{};    ///< in order of time; behind them the run went on
  std::vector<std::string> notes{};       ///< requests of its thread that the host refused, a sentence each
  /// How long the host could be away while the machine led the run; `kNever`: for all of it. Absent: the host led it.
  std::optional<Duration> host_away = {};
  std::optional<std::uint64_t> start_on_gpu = {};  ///< its start on the timer of the GPU that led; absent: none did
  Duration start{};                                ///< on its clock
  Duration length{};                               ///< from its start to its end
  Duration processor{};  ///< processor time of the threads that dispatched, and of those of their backends;
                         ///< 0 on a virtual clock
};

/// A run that is ready to start: its buffers and records are allocated. They are freed with it.
///
/// A caller with several runs at once on one host, each in a thread of its own, prepares all before the first starts
/// and keeps all until the last has ended: allocating or freeing memory may wait for a run.
class PreparedRun {
 public:
  virtual ~PreparedRun() = default;
  /// @param start  the moment to come from which all times count, on its clock; absent: now
  /// @pre it has not run.
  [[nodiscard]] virtual RunRecord run(std::optional<Duration> start) = 0;
  [[nodiscard]] RunRecord run() { return run({}); }
};

/// Does the part of `run_tasks` before the first release.
/// @param jobs  [tasks] number of jobs to release
/// @errors as `run_tasks`.
[[nodiscard]] Expected<std::unique_ptr<PreparedRun>> prepare_run(Executor& executor, const AdmittedTaskSet& admitted,
                                                                 std::span<TaskProgram* const> programs,
                                                                 std::span<const std::uint64_t> jobs,
                                                                 const RunOptions& options);
/// Does the part of `run_scenario` before the first release.
/// @param options  as there
/// @errors as `run_tasks`.
[[nodiscard]] Expected<std::unique_ptr<PreparedRun>> prepare_run(Executor& executor, const PlannedTaskSet& planned,
                                                                 std::span<TaskProgram* const> programs,
                                                                 const Scenario& scenario, const RunOptions& options);

/// Releases the jobs of an admitted task set and runs them in the order of its policy, as a `JobScheduler` decides. A
/// job gives up the machine only between two of its batches, and only where the task set allows it. Jobs past their
/// deadline go after those that can still be met; a job over its budget has the consequence that its task asks for
/// (`OverrunRule`).
///
/// Every job is compared with its bound, and each of its batches with its latest finish; the record of a job that
/// exceeded one names the cause (`JobRecord::broken`).
///
/// Jobs arrive strictly periodically from their offsets and are ready after a jitter drawn from the seed. All buffers
/// and records are allocated before the first release, and where a backend starts cold every batch has been run once;
/// the loop allocates nothing but the error of a job that fails. While it waits, and while a batch is under way, the
/// first batches of the most urgent ready job and of the job that is ready next are armed.
///
/// @param programs  [tasks]
/// @pre the set is one partition; `partitioned_run` runs several.
/// @errors InvalidInput: a batch that was issued before is still under way. InvalidInput, Machine, Kernel: buffers or
///         batches could not be prepared. No job has run.
[[nodiscard]] Expected<RunRecord> run_tasks(Executor& executor, const AdmittedTaskSet& admitted,
                                            std::span<TaskProgram* const> programs, const RunOptions& options);

/// Releases the jobs of a set whose tasks come and go while it runs. Due requests are answered between two jobs. A
/// granted request takes effect at once: a task that leaves releases no job that has not arrived yet, and a task that
/// comes has its first arrival then, whatever its offset. The batches of all tasks are prepared before the run, so a
/// change takes only the time of its test, one at most before a job. The loop takes a lock and memory only where it
/// answers. Requests that come too late are refused.
///
/// @param requests  more may be posted while it runs, from any thread
/// @param options   the run ends with the jobs that arrive before `arrivals_before`, which must be given
/// @errors as `run_tasks`.
[[nodiscard]] Expected<RunRecord> run_changing_tasks(Executor& executor, ChangingTaskSet set,
                                                     std::span<TaskProgram* const> programs, ChangeRequests& requests,
                                                     const RunOptions& options);

/// Runs a scenario, whether the task set keeps its deadlines or not. A scenario has no bounds, so no job exceeds one. A
/// job that ends before the time that the scenario gives it keeps the machine for the rest of that time, and so does
/// each of its regions.
/// @param scenario  its tasks are those of the set.
/// @param options   who hears of its jobs, and what interrupts it; the rest is the scenario's
/// @errors as `run_tasks`.
[[nodiscard]] Expected<RunRecord> run_scenario(Executor& executor, const PlannedTaskSet& planned,
                                               std::span<TaskProgram* const> programs, const Scenario& scenario,
                                               const RunOptions& options = {});

}  // namespace tutti::internal
