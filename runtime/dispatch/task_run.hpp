#pragma once
#include <cstdint>
#include <exception>
#include <optional>
#include <ranges>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "model/base/expects.hpp"
#include "runtime/dispatch/blocking_log.hpp"
#include "runtime/dispatch/callback_worker.hpp"
#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/dispatch/job_ledger.hpp"
#include "runtime/dispatch/job_releases.hpp"
#include "runtime/dispatch/task_state.hpp"

namespace tutti::internal {

/// A run of tasks, but for who has which part of the machine when: its jobs are released, their buffers filled, the
/// user's callbacks called, their ends recorded. Who has the machine is decided by what derives from it: one job at a
/// time, or operations of several.
class TaskRun : public PreparedRun {
 public:
  TaskRun(Executor& executor, const PlannedTaskSet& planned, const std::atomic<bool>* interrupted)
      : executor_(executor),
        owned_(executor),
        planned_(planned),
        interrupted_(interrupted),
        ledger_(executor, record_, tasks_) {}

  /// Releases jobs, compares them and their batches with their bounds, and reports the end of each.
  /// @param jobs    [tasks] to release
  /// @param most    [tasks] that can be released
  /// @param bounds  [tasks] of responses, where there are any; empty: batches alone have bounds
  void make_ready(std::span<const std::uint64_t> jobs, std::span<const std::uint64_t> most,
                  std::span<const std::optional<Duration>> bounds, const RunOptions& options);
  /// The same for tasks that come and go as they are asked to. @pre arrivals end at a time
  void make_ready_to_change(ChangingTaskSet& set, ChangeRequests& requests, std::span<const std::uint64_t> most,
                            const RunOptions& options);
  /// Who hears of its jobs. @pre before `make_room`
  void report_to(const RunOptions& options);
  /// Makes room for the records. @param jobs  [tasks] that can be released @pre it is known who gets the records
  virtual void make_room(std::span<const std::uint64_t> jobs);
  using PreparedRun::run;
  RunRecord run(std::optional<Duration> start) final;

 protected:
  [[nodiscard]] virtual JobReleases& releases() = 0;
  /// Releases jobs by the clock, or by their triggers. @param jobs  [tasks] to release
  virtual void release_jobs(std::span<const std::uint64_t> jobs, const RunOptions& options) = 0;
  virtual void input_ready(const ReadyJob& job) = 0;
  /// Nothing else begins.
  virtual void stop() = 0;
  [[nodiscard]] virtual std::optional<ReadyJob> take_unstarted() = 0;
  /// How long before its start a run wants to know of it.
  [[nodiscard]] virtual Duration lead_time() const { return {}; }
  /// The run will start at this instant of the clock, which is known so long before.
  virtual void expect_start(Duration /*epoch*/) {}
  /// The buffers of a job are free.
  virtual void buffers_freed(const ReadyJob& ready) { releases().buffers_free(ready); }
  /// Runs until no job comes any more, or the run cannot go on.
  virtual void run_jobs() = 0;
  /// How many priorities callbacks are below the dispatcher.
  [[nodiscard]] virtual int callbacks_below() const { return 1; }
  /// By how much jobs before a job were over their bounds, where that is known, and whose.
  [[nodiscard]] virtual const BlockingLog& blocking() const = 0;

  /// Chunks of all batches, of all buffer sets, of all tasks.
  auto all_chunks() { return tasks_ | std::views::transform(&TaskState::chunks) | std::views::join | std::views::join; }
  /// What comes between preparing and the first job: a first run where the backend starts cold, and what programs do.
  Expected<void> make_ready();
  /// The tasks for a scheduler. @param jobs  [tasks] to release
  [[nodiscard]] std::vector<ScheduledTask> scheduled(std::span<const std::uint64_t> jobs,
                                                     const std::optional<EarlierRun>& earlier = {}) const;
  /// The same for the jobs of a scenario, which come when it says and are never too long.
  [[nodiscard]] std::vector<ScheduledTask> scheduled(const Scenario& scenario) const;
  /// Releases jobs by the clock, or by their triggers. @pre there is a scheduler
  void release_by(const RunOptions& options);

  void release(const ReadyJob& job, Duration ready);
  /// The program is called for the input of a job.
  void call_for_input(const ReadyJob& job, const Job& of_user);
  void drop(const ReadyJob& job, Duration ready, DropReason reason);
  /// The end of a job whose results nobody can read is reported, unless too many of these wait.
  void report_unread(EndedJob&& ended, const ReadyJob& job);
  /// The record of a job that has not started.
  [[nodiscard]] JobRecord record_of(const ReadyJob& job, JobVerdict verdict) const;
  /// A job that ran, with its record, its batches and whether it was late; not yet why.
  [[nodiscard]] EndedJob ended_job(const ReadyJob& job, Duration start, Duration finish, std::optional<Error> error,
                                   bool aborted);
  /// Where the time of a job went that ran.
  /// @param release  of it
  /// @param length   from its start to its finish, without what it lent to others
  /// @param machine  of that, in batches
  /// @param host     of that, work was due and nothing in a queue
  [[nodiscard]] static JobLoad load_of(const Release& release, Duration length, Duration machine, Duration host);
  /// A job that ran has ended: its callbacks are called, its buffers become free, and the ledger has it.
  void end_job(EndedJob&& ended, const ReadyJob& ready, const Job& of_user, Duration finish);
  [[nodiscard]] Job job_of(const ReadyJob& ready);
  /// A job is released: it has a set of its task, and the newest slot of each ring.
  static void take_buffers(TaskState& state, JobBuffers& buffers);
  /// A job starts: it reads what the newest complete jobs of others left, and holds that to its end.
  void begin_reading(const ReadyJob& ready);
  /// The batches that the job of a task will have, as far as it is known now; null: they are not known yet.
  [[nodiscard]] std::vector<PreparedBatch>* expected_chunks(TaskId task, std::uint64_t job);
  /// A job is near its end.
  void expect_output(const ReadyJob& ready);
  [[nodiscard]] bool was_interrupted();
  /// Answers the next request that is due.
  void answer_request();
  /// Whether tasks may come and go.
  [[nodiscard]] bool takes_requests() const { return requests_ != nullptr; }
  /// No job was ready or running at the last decision.
  void note_idle();

  /// Tells the scheduler of triggers and callbacks that have come.
  void take_news();
  /// Whether callbacks or triggers may come, and the next instant of one that is known ahead.
  struct NextNews {
    bool may_come = false;
    Duration at = kNever;
  };
  [[nodiscard]] NextNews next_news();
  /// Waits until an instant, or for part of that time.
  void wait_for(Duration instant);
  /// Ends the run: no other job begins.
  void end_by(const Error& error);
  /// Does work of the user's code. @return what it threw
  template <class Work>
  [[nodiscard]] std::optional<Error> caught(std::string_view what, TaskId task, const Work& work) const;

  /// How much later than its task's jitter allows the input of a job was there, since callbacks took so long.
  [[nodiscard]] Duration lateness_of_input(const ReadyJob& job, const Release& release) const;

  Executor& executor_;
  Executor::AdmittedRun owned_;
  const PlannedTaskSet& planned_;
  const std::atomic<bool>* interrupted_;
  std::vector<TaskState> tasks_;
  RunRecord record_;
  JobLedger ledger_;
  Duration epoch_{};       // the clock's reading at the start of the run
  Duration decided_at_{};  // of the action that is being done
  Waker waker_;            // ends the wait of the dispatcher

  Duration free_since_{};   // the dispatcher is free since then
  Duration late_inputs_{};  // of jobs whose input came later than their task's jitter allows, since the run was idle

 private:
  /// Runs every batch once, on whatever its buffers hold. A kernel that fails on that says nothing about jobs.
  Expected<void> warm_up();
  /// A call of the user's code beside jobs, from its posting until its end is seen.
  struct Callback {
    enum class Kind : std::uint8_t { Input, End, EndOfDropped };
    Kind kind = Kind::Input;
    ReadyJob ready;
    std::optional<Job> job;
    EndedJob ended;   ///< of an end
    Duration read{};  ///< when the program had read the result
    std::optional<Error> thrown;
  };

  /// Refuses the requests that the run left open.
  void refuse_requests();
  ChangeAnswer answer(const TaskChange& change, Duration now);
  /// When the next request is due, or the last one; on the clock.
  [[nodiscard]] Duration next_request() const;

  void begin(std::optional<Duration> start);
  void wind_up();
  void take_triggers();
  void take_callbacks();
  /// Waits for the callbacks that are under way.
  void finish_callbacks();
  [[nodiscard]] bool hears_of_end(TaskId task) const;
  /// A job that has ended needs its buffers no more.
  void free_buffers(const ReadyJob& ready);
  /// @return the place of a callback to be posted; nothing: none is free
  std::optional<std::size_t> free_callback();
  void post(std::size_t place);
  /// Calls the user's code. In the worker's thread.
  void call(Callback& callback);
  void call_at_end(Callback& callback);
  /// A callback has ended. In the dispatcher's thread.
  void close(Callback& callback, const CallbackWorker::Done& done);

  std::function<void(const JobRecord&)> on_job_end_;
  std::optional<EarlierRun> earlier_;
  ChangingTaskSet* changing_ = nullptr;
  ChangeRequests* requests_ = nullptr;
  std::span<TriggerSource* const> sources_;  // [tasks] null: the clock releases its jobs; empty: so of all tasks
  std::vector<TaskId> external_;             // tasks with a source
  Duration arrivals_end_ = kNever;           // from the start
  Duration triggers_end_ = kNever;           // that, on the clock
  std::vector<Callback> callbacks_;
  std::vector<std::size_t> free_callbacks_;
  std::size_t dropped_called_ = 0;  // of the callbacks, those of dropped jobs: the others are for jobs that are alive
  std::optional<CallbackWorker> worker_;  // where a program has callbacks

  Duration slept_since_{}, woke_at_{};  // its last sleep: free since, and until
  Duration overslept_{};                // so much longer than it was to be
};

template <class Work>
std::optional<Error> TaskRun::caught(std::string_view what, TaskId task, const Work& work) const {
  const auto error = [&](std::string_view thrown) {
    return Error{
        ErrorCode::Kernel,
        fmt::format("{} of task '{}' threw: {}; catch it there", what, planned_.tasks.tasks[task.index()].name, thrown),
        {}};
  };
  try {
    work();
    return std::nullopt;
  } catch (const std::exception& exception) {
    return error(exception.what());
  } catch (...) {
    return error("something that is no std::exception");
  }
}

/// Makes a run and prepares it.
/// @param prepare  (run) -> Expected<void>: binds and prepares its batches
/// @param then     (run): says which jobs it releases, and makes room
/// @errors as `prepare`. InvalidInput: a batch that was issued before is still under way. Machine: no thread.
template <class Run, class Prepare, class Then>
Expected<std::unique_ptr<PreparedRun>> prepared_by(Executor& executor, const PlannedTaskSet& planned,
                                                   std::span<TaskProgram* const> programs,
                                                   const std::atomic<bool>* interrupted, const Prepare& prepare,
                                                   const Then& then) {
  TUTTI_EXPECTS(programs.size() == planned.tasks.tasks.size(), "each task has its program");
  TUTTI_EXPECTS(planned.partitions.size() == 1, "an executor runs one partition");
  if (executor.busy())
    return invalid_input("a batch that was issued before is still under way; synchronize it before the run");
  auto run = std::make_unique<Run>(executor, planned, interrupted);
  if (auto ok = prepare(*run); !ok) return tl::unexpected(std::move(ok.error()));
  try {
    then(*run);
  } catch (const std::system_error& error) {
    return machine_error(fmt::format("the host has no thread for callbacks: {}; end other programs", error.what()));
  }
  return run;
}

}  // namespace tutti::internal
