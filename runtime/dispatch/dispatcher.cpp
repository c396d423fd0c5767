#include "runtime/dispatch/dispatcher.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/base/expects.hpp"
#include "runtime/dispatch/blocking_log.hpp"
#include "runtime/dispatch/job_execution.hpp"
#include "runtime/dispatch/job_scheduler.hpp"
#include "runtime/dispatch/led_task_run.hpp"
#include "runtime/dispatch/overlapped_run.hpp"
#include "runtime/dispatch/scenario_machine.hpp"
#include "runtime/dispatch/task_run.hpp"

namespace tutti::internal {

namespace {

/// How long before its start a job is given to the GPUs: a thread that sleeps wakes some 50 us late, at times 200.
constexpr Duration kAhead = std::chrono::microseconds{500};

/// One job at a time: does what a `JobScheduler` decides.
class DispatchedRun final : public TaskRun {
 public:
  using TaskRun::TaskRun;

  /// Prepares the batches of all tasks, and where the backend starts cold runs each once.
  /// @param jobs  [tasks] most jobs to release
  Expected<void> prepare(std::span<TaskProgram* const> programs, std::span<const std::uint64_t> jobs);
  /// Releases the jobs of a scenario instead. @pre prepared for as many
  /// @param times  of the simulated machine; null: batches take what they take
  void follow(const Scenario& scenario, ScenarioTimes* times);
  void make_room(std::span<const std::uint64_t> jobs) override;

 protected:
  JobReleases& releases() override { return scheduler_->releases(); }
  void release_jobs(std::span<const std::uint64_t> jobs, const RunOptions& options) override;
  void input_ready(const ReadyJob& job) override { scheduler_->input_ready(job); }
  void stop() override { scheduler_->stop(); }
  std::optional<ReadyJob> take_unstarted() override { return scheduler_->take_unstarted(); }
  void run_jobs() override;
  const BlockingLog& blocking() const override { return blocking_; }

 private:
  /// A job that has the machine, or has lent it.
  struct Running {
    JobExecution execution;
    Duration waited{};                ///< until it started, with no job before it
    std::uint64_t shown = 0;          ///< as `DeviceBackend::begin_job`
    std::optional<Error> error = {};  ///< why it failed
  };
  /// Chunks of a job that was not ready yet.
  struct IssuedAhead {
    TaskId task;
    std::uint64_t index = 0;
    std::span<PreparedBatch> chunks;  ///< empty: none
  };

  /// Does an action. @return what has happened; nothing: the run is over
  std::optional<Event::Kind> perform(const Action& action);
  /// What comes in from outside: an interrupt, a request. As above.
  std::optional<Event::Kind> between_jobs();
  Event::Kind do_region();
  /// @param planned  when a time table has it; 0: none does
  void start(const ReadyJob& ready, Duration planned);
  void divide_into_regions(bool by_arrivals);
  void finish();
  /// Waits for the next job, trigger, callback or request; whether there may be one.
  bool idle(Duration until);
  /// Arms the first region of the job that is probably next: arming takes longer than starting an armed batch.
  void arm_next();
  /// Issues the first region of the next job, with its start at the instant at which the job will be ready, where that
  /// is certain: then the dispatcher may wake late.
  /// @param instant  until when it would sleep
  /// @return until when it is to sleep
  Duration issue_ahead(Duration instant);
  /// The number of chunks of a job that were issued ahead.
  [[nodiscard]] std::size_t take_issued(const ReadyJob& ready);

  /// Where the time of a finished job went. It has the machine for itself, so what is not in batches is the host's.
  [[nodiscard]] JobLoad load_of(const Running& running, const RunningJob& job) const;
  /// Excesses of a finished job, by cause.
  [[nodiscard]] Excesses excesses_of(const Running& running, const RunningJob& job, const JobRecord& record) const;

  std::optional<JobScheduler> scheduler_;
  std::vector<Running> running_;  // as in the scheduler
  BlockingLog blocking_;          // since the run was idle last
  IssuedAhead ahead_;
  ScenarioTimes* scenario_times_ = nullptr;  // null: jobs take what they take
};

// ---- preparing

Expected<void> DispatchedRun::prepare(std::span<TaskProgram* const> programs, std::span<const std::uint64_t> jobs) {
  auto states = make_memory(executor_, planned_, programs, jobs);
  if (!states) return tl::unexpected(std::move(states.error()));
  tasks_ = *std::move(states);
  for (std::size_t i = 0; i < tasks_.size(); ++i)
    if (auto ok = prepare_task(executor_, owned_, planned_, TaskId{i}, tasks_[i]); !ok) return ok;
  divide_into_regions(true);
  blocking_ = BlockingLog(tasks_.size());
  return make_ready();
}

void DispatchedRun::release_jobs(std::span<const std::uint64_t> jobs, const RunOptions& options) {
  scheduler_.emplace(planned_.tasks.policy, planned_.tasks.arrivals, scheduled(jobs, options.earlier), options.seed);
  release_by(options);
}

void DispatchedRun::make_room(std::span<const std::uint64_t> jobs) {
  TaskRun::make_room(jobs);
  std::size_t alive = 0;
  for (const TaskState& task : tasks_) alive += task.releases.size();
  running_.reserve(alive);
}

void DispatchedRun::follow(const Scenario& scenario, ScenarioTimes* times) {
  scenario_times_ = times;
  divide_into_regions(false);
  scheduler_.emplace(planned_.tasks.policy, planned_.tasks.arrivals, scheduled(scenario), 0);
}

// ---- the loop

void DispatchedRun::run_jobs() {
  for (auto happened = between_jobs(); happened;) {
    take_news();
    decided_at_ = executor_.clock().now();
    happened = perform(scheduler_->step({*happened, decided_at_}));
  }
  for (PreparedBatch& chunk : ahead_.chunks) static_cast<void>(executor_.wait_for(chunk));  // of a job that never began
}

std::optional<Event::Kind> DispatchedRun::perform(const Action& action) {
  switch (action.kind) {
    case Action::Kind::Release: release(action.job, action.ready); return Event::Kind::Time;
    case Action::Kind::Drop: drop(action.job, action.ready, action.reason); return Event::Kind::Time;
    case Action::Kind::Start: start(action.job, action.until); return do_region();
    case Action::Kind::Continue: return do_region();
    case Action::Kind::Hold:
      executor_.clock().wait_until(action.until);
      free_since_ = executor_.clock().now();
      return Event::Kind::Time;
    case Action::Kind::Finish: finish(); return Event::Kind::JobClosed;
    case Action::Kind::Free: return between_jobs();
    case Action::Kind::Idle: break;
  }
  if (!idle(action.until)) return std::nullopt;
  return between_jobs();
}

std::optional<Event::Kind> DispatchedRun::between_jobs() {
  if (record_.fatal) return std::nullopt;
  if (was_interrupted()) return std::nullopt;
  answer_request();
  return Event::Kind::Time;
}

void DispatchedRun::start(const ReadyJob& ready, Duration planned) {
  TaskState& state = tasks_[ready.task.index()];
  ledger_.review();  // its batches may have been those of a job before
  begin_reading(ready);
  const Job job = job_of(ready);
  const Release& release = state.release_of(ready.index);
  const Duration ready_since = std::max({release.done, free_since_, planned});
  const Duration waited = executor_.clock().now() - ready_since;
  running_.emplace_back(JobExecution(job, *state.program, state.chunks[*job.choice], state.first_chunk,
                                     state.region_ends, take_issued(ready)),
                        waited, executor_.backend().begin_job({state.task->name, job.index}));
}

/// Batches need no decision between them where nothing may come in between, and the job is not aborted.
void DispatchedRun::divide_into_regions(bool by_arrivals) {
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    TaskState& state = tasks_[i];
    const bool linked = by_arrivals && executor_.backend().links_runs() && !planned_.timings[i].regions &&
                        state.task->overrun.policy != OverrunPolicy::Abort;
    state.region_ends = region_ends(*state.task, state.first_chunk, linked);
  }
}

Event::Kind DispatchedRun::do_region() {
  Running& running = running_.back();
  if (const auto end = scenario_times_ != nullptr ? scheduler_->region_end() : std::nullopt) {
    scenario_times_->end_by(end);
    running.execution.end_region_by(*end);
  }
  Expected<void> done;
  if (const auto thrown = caught("the job", scheduler_->running().job.task, [&] {
        done = running.execution.do_region([&] {
          ledger_.review();
          take_news();
          expect_output(scheduler_->running().job);
          arm_next();
        });
      })) {
    end_by(*thrown);
  }
  free_since_ = executor_.clock().now();
  if (done) return running.execution.has_ended() ? Event::Kind::JobEnded : Event::Kind::RegionEnded;
  running.error = done.error();
  if (done.error().code == ErrorCode::Machine) end_by(done.error());
  return Event::Kind::JobFailed;
}

void DispatchedRun::finish() {
  const RunningJob& job = scheduler_->running();
  Running& running = running_.back();
  const ReadyJob ready = job.job;
  const Duration finish = *job.finish;
  EndedJob ended =
      ended_job(ready, job.start, finish, running.error ? std::move(running.error) : record_.fatal, job.aborted);
  ended.excesses = excesses_of(running, job, ended.record);
  ended.record.load = load_of(running, job);
  ended.blocker = blocking_.worst();
  blocking_.add(ready.task, job.own(finish) - planned_.timings[ready.task.index()].wcet);
  const Job of_user = running.execution.job();
  executor_.backend().end_job(running.shown);
  running_.pop_back();
  end_job(std::move(ended), ready, of_user, finish);
}

// ---- waiting

bool DispatchedRun::idle(Duration until) {
  if (record_.fatal) return false;
  note_idle();
  const NextNews news = next_news();
  const Duration instant = std::min(until, news.at);
  if (instant == kNever && !(news.may_come && executor_.clock().runs_by_itself())) return false;
  ledger_.review();
  arm_next();
  wait_for(issue_ahead(instant));
  blocking_.clear();
  late_inputs_ = {};
  return true;
}

void DispatchedRun::arm_next() {
  const auto next = scheduler_->next_job();
  if (!next) return;
  TaskState& state = tasks_[next->task.index()];
  if (state.writes_kept) return;  // where another job comes, what is armed runs to its end and does not count
  auto* const chunks = expected_chunks(next->task, next->index);
  if (chunks != nullptr && !chunks->empty()) arm_region(executor_, std::span(*chunks).first(state.region_ends.front()));
}

Duration DispatchedRun::issue_ahead(Duration instant) {
  const auto next = executor_.backend().links_runs() && !takes_requests() ? scheduler_->certain_job() : std::nullopt;
  if (!next || !ahead_.chunks.empty() || instant != scheduler_->releases().next_instant()) return instant;
  TaskState& state = tasks_[next->task.index()];
  if (!state.knows_batches()) return instant;
  auto* const chunks = expected_chunks(next->task, next->index);
  const bool at_once = !state.program->fills_input() && chunks != nullptr && !chunks->empty() &&
                       std::holds_alternative<Batch>(state.task->steps.front());
  if (!at_once) return instant;
  const Duration now = executor_.clock().now();
  if (now < instant - kAhead) return instant - kAhead;
  ahead_ = {next->task, next->index, {}};
  const std::span region = std::span(*chunks).first(state.region_ends.front());
  for (std::size_t i = 0; i < region.size(); ++i) {
    if (!executor_.issue(region[i], {state.task->name, next->index}, i == 0 ? instant : Duration{})) break;
    ahead_.chunks = region.first(i + 1);
  }
  return instant;
}

std::size_t DispatchedRun::take_issued(const ReadyJob& ready) {
  if (ahead_.task != ready.task || ahead_.index != ready.index) return 0;
  return std::exchange(ahead_.chunks, {}).size();
}

// ---- bounds

JobLoad DispatchedRun::load_of(const Running& running, const RunningJob& ended) const {
  const Job& job = running.execution.job();
  const Duration length = running.waited + ended.own(*ended.finish);
  const Duration machine = job.times.batches - job.times.gates;
  return TaskRun::load_of(tasks_[ended.job.task.index()].release_of(ended.job.index), length, machine,
                          std::max(length - machine, Duration{0}));
}

Excesses DispatchedRun::excesses_of(const Running& running, const RunningJob& ended, const JobRecord& record) const {
  const Job& job = running.execution.job();
  const TaskState& state = tasks_[record.task.index()];
  const Release& release = state.release_of(ended.job.index);
  const SetupTimes& costs = executor_.machine().setup();
  const Duration dispatching = static_cast<std::int64_t>(job.times.runs) * costs.dispatch.guaranteed;
  Duration declared = state.task->declared_wcet.value_or(Duration{0});
  for (const JobStep& step : state.task->steps)
    if (const auto* host = std::get_if<HostStep>(&step)) declared += host->time;
  Excesses excesses;
  excesses.add(state.task->release.is_external() ? BoundCause::Trigger : BoundCause::Release, release.late);
  excesses.add(BoundCause::Blocking, blocking_.total());
  excesses.add(BoundCause::Host, ended.own(*ended.finish) - job.times.in_batches - declared);
  excesses.add(BoundCause::Host, late_inputs_ - lateness_of_input(ended.job, release));
  excesses.add(BoundCause::Dispatch, running.waited);
  excesses.add(BoundCause::Dispatch, job.times.in_batches - job.times.batches - dispatching);
  return excesses;
}

/// A run on a machine of its own.
class ScenarioRun final : public PreparedRun {
 public:
  ScenarioRun(std::unique_ptr<ScenarioMachine> machine, std::unique_ptr<PreparedRun> run)
      : machine_(std::move(machine)), run_(std::move(run)) {}

  [[nodiscard]] RunRecord run(std::optional<Duration> start) override { return run_->run(start); }

 private:
  std::unique_ptr<ScenarioMachine> machine_;  // outlives the run
  std::unique_ptr<PreparedRun> run_;
};

using PreparedOrError = Expected<std::unique_ptr<PreparedRun>>;

/// @param then  (run): what it does in place of periodic jobs
template <class Then>
PreparedOrError prepare(Executor& executor, const PlannedTaskSet& planned, std::span<TaskProgram* const> programs,
                        std::span<const std::uint64_t> jobs, const std::atomic<bool>* interrupted, const Then& then) {
  return prepared_by<DispatchedRun>(
      executor, planned, programs, interrupted, [&](DispatchedRun& run) { return run.prepare(programs, jobs); }, then);
}

}  // namespace

PreparedOrError prepare_run(Executor& executor, const AdmittedTaskSet& admitted, std::span<TaskProgram* const> programs,
                            std::span<const std::uint64_t> jobs, const RunOptions& options) {
  if (options.conductor == ConductorKind::Gpu && !options.earlier)
    return prepare_led_run(executor, admitted, programs, jobs, options);
  if (admitted.planned().overlap) return prepare_overlapped_run(executor, admitted, programs, jobs, options);
  return prepare(executor, admitted.planned(), programs, jobs, options.interrupted,
                 [&](DispatchedRun& run) { run.make_ready(jobs, jobs, admitted.worst_responses(), options); });
}

PreparedOrError prepare_run(Executor& executor, const PlannedTaskSet& planned, std::span<TaskProgram* const> programs,
                            const Scenario& scenario, const RunOptions& options) {
  if (planned.tasks.policy == Policy::CwEdf)
    return invalid_input(
        "under cw_edf jobs start by the table of all arrivals, which a scenario does not have; give --policy edf");
  std::vector<std::uint64_t> jobs(planned.tasks.tasks.size(), 0);
  for (const ScenarioJob& job : scenario.jobs) ++jobs[job.task.index()];
  if (planned.overlap) return prepare_overlapped_run(executor, planned, programs, jobs, scenario, options);
  auto machine = executor.backend().name() == "sim" ? std::make_unique<ScenarioMachine>(executor) : nullptr;
  Executor& on = machine ? machine->executor : executor;
  return prepare(on, planned, programs, jobs, options.interrupted,
                 [&](DispatchedRun& run) {
                   run.follow(scenario, machine ? &machine->times : nullptr);
                   run.report_to(options);
                   run.make_room(jobs);
                 })
      .map([&](std::unique_ptr<PreparedRun>&& run) -> std::unique_ptr<PreparedRun> {
        return std::make_unique<ScenarioRun>(std::move(machine), std::move(run));
      });
}

Expected<RunRecord> run_tasks(Executor& executor, const AdmittedTaskSet& admitted,
                              std::span<TaskProgram* const> programs, const RunOptions& options) {
  return jobs_per_task(admitted.tasks(), options)
      .and_then([&](const std::vector<std::uint64_t>& jobs) {
        return prepare_run(executor, admitted, programs, jobs, options);
      })
      .map([](const std::unique_ptr<PreparedRun>& run) { return run->run(); });
}

Expected<RunRecord> run_scenario(Executor& executor, const PlannedTaskSet& planned,
                                 std::span<TaskProgram* const> programs, const Scenario& scenario,
                                 const RunOptions& options) {
  return prepare_run(executor, planned, programs, scenario, options).map([](const std::unique_ptr<PreparedRun>& run) {
    return run->run();
  });
}

Expected<RunRecord> run_changing_tasks(Executor& executor, ChangingTaskSet set, std::span<TaskProgram* const> programs,
                                       ChangeRequests& requests, const RunOptions& options) {
  TUTTI_EXPECTS(options.arrivals_before && !options.jobs, "a run whose tasks change ends at a time");
  TaskSet from_the_start = set.planned().tasks;  // each may come before its offset
  for (Task& task : from_the_start.tasks) task.offset = {};
  return jobs_per_task(from_the_start, options)
      .and_then([&](const std::vector<std::uint64_t>& jobs) {
        if (set.planned().overlap)
          return prepare_changing_overlapped_run(executor, set, programs, jobs, requests, options);
        return prepare(executor, set.planned(), programs, jobs, options.interrupted,
                       [&](DispatchedRun& run) { run.make_ready_to_change(set, requests, jobs, options); });
      })
      .map([](const std::unique_ptr<PreparedRun>& run) { return run->run(); });
}

}  // namespace tutti::internal
