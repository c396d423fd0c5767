#include "runtime/dispatch/dispatcher.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <ranges>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <time.h>

#include "model/base/expects.hpp"
#include "runtime/core/notes.hpp"
#include "runtime/dispatch/blocking_log.hpp"
#include "runtime/dispatch/callback_worker.hpp"
#include "runtime/dispatch/job_execution.hpp"
#include "runtime/dispatch/job_ledger.hpp"
#include "runtime/dispatch/job_scheduler.hpp"
#include "runtime/dispatch/task_state.hpp"
#include "runtime/host/real_time.hpp"
#include "runtime/trace/journal.hpp"
#include "runtime/triggers/trigger_source.hpp"

namespace tutti::internal {

namespace {

constexpr std::uint64_t kUntilItLeaves = std::numeric_limits<std::uint64_t>::max();
/// Callbacks of dropped jobs that can wait; further ones are left out.
constexpr std::size_t kMostDropped = 64;
/// Longest sleep where time passes by itself: an interrupt waits no longer, however far away the next job is.
constexpr Duration kLongestSleep = std::chrono::milliseconds{50};

/// Processor time of the calling thread.
Duration processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds{time.tv_sec} + Duration{time.tv_nsec};
}

/// The tasks of a run for its scheduler.
/// @param states  [tasks]
/// @param jobs    [tasks] to release
std::vector<ScheduledTask> scheduled(const PlannedTaskSet& planned, std::span<const TaskState> states,
                                     std::span<const std::uint64_t> jobs) {
  std::vector<ScheduledTask> tasks;
  for (std::size_t i = 0; i < states.size(); ++i) {
    ScheduledTask& task = tasks.emplace_back();
    task.timing = planned.timings[i];
    task.overrun = states[i].task->overrun;
    task.release = states[i].task->release;
    task.buffer_sets = states[i].chunks.size();
    task.jobs = jobs[i];
    task.first_arrival = states[i].task->offset;
  }
  return tasks;
}

/// Does what a scheduler decides: has buffers filled, runs batches, waits, and hands the ends of jobs to the ledger.
class DispatchedRun final : public PreparedRun {
 public:
  DispatchedRun(Executor& executor, const PlannedTaskSet& planned, const std::atomic<bool>* interrupted)
      : executor_(executor),
        owned_(executor),
        planned_(planned),
        interrupted_(interrupted),
        ledger_(executor, record_, tasks_) {}

  /// Prepares the batches of all tasks, and where the backend starts cold runs each once.
  /// @param jobs  [tasks] most jobs to release
  Expected<void> prepare(std::span<TaskProgram* const> programs, std::span<const std::uint64_t> jobs);
  /// Releases jobs by the clock, or by their triggers. @param jobs  [tasks] to release
  void release_jobs(std::span<const std::uint64_t> jobs, const RunOptions& options);
  /// Releases the jobs of a scenario instead. @pre prepared for as many
  void follow(const Scenario& scenario);
  /// Reports the end of every job.
  void report_to(const RunOptions& options);
  /// Makes room for the records. @param jobs  [tasks] to release @pre after `report_to`
  void make_room(std::span<const std::uint64_t> jobs);
  /// Compares jobs and batches with their bounds.
  /// @param bounds  [tasks] of responses, where there are any; empty: batches alone have bounds
  void hold_to(std::span<const std::optional<Duration>> bounds) { ledger_.hold_to(bounds); }
  /// Lets tasks come and go as requested, until `end`. @pre prepared for all tasks of the set
  void change_on_request(ChangingTaskSet& set, ChangeRequests& requests, Duration end, const RunOptions& options);
  using PreparedRun::run;
  RunRecord run(std::optional<Duration> start) override;

 private:
  /// A job that has the machine, or has lent it.
  struct Running {
    JobExecution execution;
    Duration waited{};                ///< until it started, with no job before it
    std::optional<Error> error = {};  ///< why it failed
  };
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

  /// Chunks of all batches, of all buffer sets, of all tasks.
  auto all_chunks() { return tasks_ | std::views::transform(&TaskState::chunks) | std::views::join | std::views::join; }
  Expected<void> warm_up();

  void begin(std::optional<Duration> start);
  void run_jobs();
  /// Does an action. @return what has happened; nothing: the run is over
  std::optional<Event::Kind> perform(const Action& action);
  /// What comes in from outside: an interrupt, a request. As above.
  std::optional<Event::Kind> between_jobs();
  void release(const Action& action);
  void drop(const Action& action);
  Event::Kind do_region();
  void start(const ReadyJob& ready);
  void finish();
  /// Waits for the next job, trigger, callback or request; whether there may be one.
  bool idle(Duration until);
  /// Waits until an instant, or for part of that time.
  void wait_for(Duration instant);
  [[nodiscard]] Job job_of(const ReadyJob& ready) const;
  /// The record of a job that has not started.
  [[nodiscard]] JobRecord record_of(const ReadyJob& job, JobVerdict verdict) const;

  /// Tells the scheduler of triggers and callbacks that have come.
  void take_news();
  void take_triggers();
  void take_callbacks();
  /// Waits for the callbacks that are under way.
  void finish_callbacks();
  [[nodiscard]] bool hears_of_end(TaskId task) const;
  /// @return the place of a callback to be posted; nothing: none is free
  std::optional<std::size_t> free_callback();
  void post(std::size_t place);
  /// Calls the user's code. In the worker's thread.
  void call(Callback& callback);
  void call_at_end(Callback& callback);
  /// A callback has ended. In the dispatcher's thread.
  void close(Callback& callback, const CallbackWorker::Done& done);

  /// Arms the first batch of the job that is probably next: arming takes longer than starting an armed batch.
  void arm_next();
  /// Ends the run: no other job begins.
  void end_by(const Error& error);
  /// Does work of the user's code. @return what it threw
  template <class Work>
  [[nodiscard]] std::optional<Error> caught(std::string_view what, TaskId task, const Work& work) const;

  /// Answers the next request that is due.
  void answer_request();
  /// Refuses the requests that the run left open.
  void refuse_requests();
  ChangeAnswer answer(const TaskChange& change, Duration now);

  /// How much later than its task's jitter allows the input of a job was there, since callbacks took so long.
  [[nodiscard]] Duration lateness_of_input(const ReadyJob& job, const Release& release) const;
  /// Excesses of a finished job, by cause.
  [[nodiscard]] Excesses excesses_of(const Running& running, const RunningJob& job, const JobRecord& record) const;

  Executor& executor_;
  Executor::AdmittedRun owned_;
  const PlannedTaskSet& planned_;
  const std::atomic<bool>* interrupted_;
  std::function<void(const JobRecord&)> on_job_end_;
  std::vector<TaskState> tasks_;
  std::optional<JobScheduler> scheduler_;
  std::vector<Running> running_;  // as in the scheduler
  RunRecord record_;
  JobLedger ledger_;
  std::optional<EarlierRun> earlier_;
  Duration epoch_{};       // the clock's reading at the start of the run
  Duration decided_at_{};  // of the action that is being done
  ChangingTaskSet* changing_ = nullptr;
  ChangeRequests* requests_ = nullptr;
  Duration end_ = kNever;  // nothing arrives from then on

  Waker waker_;                              // ends the wait of the dispatcher
  std::span<TriggerSource* const> sources_;  // [tasks] null: the clock releases its jobs; empty: so of all tasks
  std::vector<TaskId> external_;             // tasks with a source
  Duration arrivals_end_ = kNever;           // from the start
  Duration triggers_end_ = kNever;           // that, on the clock
  std::vector<Callback> callbacks_;
  std::vector<std::size_t> free_callbacks_;
  std::size_t dropped_called_ = 0;  // of the callbacks, those of dropped jobs: the others are for jobs that are alive
  std::optional<CallbackWorker> worker_;  // where a program has callbacks

  Duration free_since_{};               // the dispatcher is free since then
  Duration slept_since_{}, woke_at_{};  // its last sleep: free since, and until
  Duration overslept_{};                // so much longer than it was to be
  BlockingLog blocking_;                // since the run was idle last
  Duration late_inputs_{};              // since then, of jobs whose input came later than their task's jitter allows
};

// ---- preparing

Expected<void> DispatchedRun::prepare(std::span<TaskProgram* const> programs, std::span<const std::uint64_t> jobs) {
  for (std::size_t i = 0; i < planned_.tasks.tasks.size(); ++i) {
    auto state = prepare_task(executor_, owned_, planned_, TaskId{i}, *programs[i], jobs[i]);
    if (!state) return tl::unexpected(std::move(state.error()));
    tasks_.push_back(*std::move(state));
  }
  blocking_ = BlockingLog(tasks_.size());
  return executor_.backend().starts_cold() ? warm_up() : Expected<void>{};
}

/// Runs every batch once, on whatever its buffers hold. A kernel that fails on that says nothing about jobs.
Expected<void> DispatchedRun::warm_up() {
  for (PreparedBatch& chunk : all_chunks()) {
    auto result = executor_.issue(chunk).and_then([&] { return executor_.synchronize(chunk); });
    if (!result && result.error().code != ErrorCode::Kernel) return tl::unexpected(std::move(result.error()));
  }
  return {};
}

void DispatchedRun::report_to(const RunOptions& options) {
  on_job_end_ = options.on_job_end;
  ledger_.report_to(options);
}

/// The pages of the memory that the loop uses are there afterwards.
void DispatchedRun::make_room(std::span<const std::uint64_t> jobs) {
  std::size_t alive = 0;
  bool calls = on_job_end_ != nullptr;
  for (const TaskState& task : tasks_) {
    alive += task.chunks.size();
    calls = calls || task.program->fills_input() || task.program->hears_of_end();
  }
  running_.reserve(alive);
  ledger_.make_room(std::accumulate(jobs.begin(), jobs.end(), std::uint64_t{0}), alive);
  if (!calls) return;
  callbacks_.resize(alive + kMostDropped);
  for (std::size_t place = callbacks_.size(); place > 0; --place) free_callbacks_.push_back(place - 1);
  ThreadRole role = executor_.role();
  role.spins = false;
  if (role.priority > 1) --role.priority;  // the dispatcher goes before it
  worker_.emplace(
      executor_.clock(), callbacks_.size(), [this](std::size_t place) { call(callbacks_[place]); }, role, waker_);
}

void DispatchedRun::release_jobs(std::span<const std::uint64_t> jobs, const RunOptions& options) {
  auto tasks = scheduled(planned_, tasks_, jobs);
  earlier_ = options.earlier;
  for (std::size_t i = 0; earlier_ && i < tasks.size(); ++i) tasks[i].first_job = earlier_->released[i];
  scheduler_.emplace(planned_.tasks.policy, planned_.tasks.arrivals, std::move(tasks), options.seed);
  for (std::size_t i = 0; i < tasks_.size(); ++i)
    if (tasks_[i].task->release.is_external()) external_.emplace_back(i);
  sources_ = options.triggers;
  for (const TaskId task : external_)
    TUTTI_EXPECTS(task.index() < sources_.size() && sources_[task.index()] != nullptr,
                  "a task that triggers release has a source of them");
  if (!external_.empty()) waker_.be_urgent();
  arrivals_end_ = options.arrivals_before.value_or(kNever);
  scheduler_->end_arrivals(arrivals_end_);
}

void DispatchedRun::follow(const Scenario& scenario) {
  auto tasks = scheduled(planned_, tasks_, std::vector<std::uint64_t>(tasks_.size()));
  for (const ScenarioJob& job : scenario.jobs) {
    ScheduledTask& task = tasks[job.task.index()];
    task.script.push_back(job);
    ++task.jobs;
  }
  for (ScheduledTask& task : tasks) {  // its jobs come when the scenario says, and take what it says
    task.overrun = {};
    task.release = {};
  }
  scheduler_.emplace(planned_.tasks.policy, planned_.tasks.arrivals, std::move(tasks), 0);
}

void DispatchedRun::change_on_request(ChangingTaskSet& set, ChangeRequests& requests, Duration end,
                                      const RunOptions& options) {
  changing_ = &set;
  requests_ = &requests;
  end_ = end;
  std::vector<std::uint64_t> jobs;
  for (std::size_t i = 0; i < tasks_.size(); ++i) jobs.push_back(set.runs(TaskId{i}) ? kUntilItLeaves : 0);
  release_jobs(jobs, options);
  scheduler_->end_arrivals(end);
}

// ---- the loop

RunRecord DispatchedRun::run(std::optional<Duration> start) {
  std::optional<RealTimeThread> thread;
  if (executor_.clock().runs_by_itself()) thread.emplace(executor_.role());
  const auto processor = [&] { return processor_time() + executor_.backend().processor_time(); };
  const Duration processor_before = processor();
  begin(start);
  run_jobs();
  if (thread) {
    add_notes(record_.notes, thread->notes());
    record_.processor = processor() - processor_before;
  }
  return std::move(record_);
}

/// The scheduler counts from now on; records count from the start of the earlier run, if there is one.
void DispatchedRun::begin(std::optional<Duration> start) {
  if (start) executor_.clock().wait_until(*start);
  const Duration now = start.value_or(executor_.clock().now());
  record_.start = epoch_ = earlier_ ? earlier_->start : now;
  ledger_.begin(epoch_);
  executor_.backend().begin_run(epoch_);
  triggers_end_ = arrivals_end_ > kNever - epoch_ ? kNever : epoch_ + arrivals_end_;
  if (earlier_ && arrivals_end_ != kNever) scheduler_->end_arrivals(triggers_end_ - now);
  scheduler_->begin(now);
  for (const TaskId task : external_) {
    TriggerSource& source = *sources_[task.index()];
    earlier_ ? source.resume(executor_.clock(), now, waker_) : source.begin(executor_.clock(), now, waker_);
  }
}

void DispatchedRun::run_jobs() {
  for (auto happened = between_jobs(); happened;) {
    take_news();
    decided_at_ = executor_.clock().now();
    happened = perform(scheduler_->step({*happened, decided_at_}));
  }
  for (const TaskId task : external_) sources_[task.index()]->end();
  finish_callbacks();
  ledger_.finish();
  while (const auto job = scheduler_->take_unstarted())
    ledger_.keep(record_of(*job, JobVerdict::NeverRun), ledger_.claim());
  for (const auto& [task, at] : scheduler_->suspensions()) record_.suspensions.push_back({task, at - epoch_});
  record_.triggers.resize(tasks_.size());
  for (const TaskId task : external_) {
    record_.triggers[task.index()] = scheduler_->triggers_of(task);
    record_.triggers[task.index()].lost = sources_[task.index()]->lost();
  }
  if (changing_ != nullptr) refuse_requests();
  record_.length = executor_.clock().now() - epoch_;
  for (PreparedBatch& chunk : all_chunks()) executor_.disarm(chunk);
}

std::optional<Event::Kind> DispatchedRun::perform(const Action& action) {
  switch (action.kind) {
    case Action::Kind::Release: release(action); return Event::Kind::Time;
    case Action::Kind::Drop: drop(action); return Event::Kind::Time;
    case Action::Kind::Start: start(action.job); return do_region();
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
  if (interrupted_ != nullptr && interrupted_->load(std::memory_order_relaxed)) {
    record_.interrupted = true;
    return std::nullopt;
  }
  if (changing_ != nullptr) answer_request();
  return Event::Kind::Time;
}

void DispatchedRun::release(const Action& action) {
  TaskState& state = tasks_[action.job.task.index()];
  const Duration seen = executor_.clock().now();
  Release& release = state.releases[scheduler_->buffer_set_of(action.job)];
  const Hold& hold = state.holds[scheduler_->buffer_set_of(action.job)];
  const Duration held = std::max(hold.until - std::max(action.ready, hold.from), Duration{0});
  // Of several jobs that a late awakening finds, each is as late as the dispatcher slept beyond its ready instant.
  const Duration late = std::max(seen - std::max({action.ready, free_since_, hold.until}),
                                 woke_at_ - std::max({action.ready, slept_since_, hold.until}));
  release = {action.ready, late, seen, seen, held};
  if (!state.program->fills_input()) {
    late_inputs_ += lateness_of_input(action.job, release);
    scheduler_->input_ready(action.job);
  } else {
    const auto place = free_callback();
    TUTTI_EXPECTS(place, "there is a callback for each job that is alive");
    Callback& callback = callbacks_[*place];
    callback.kind = Callback::Kind::Input;
    callback.ready = action.job;
    callback.job = job_of(action.job);
    post(*place);
  }
  free_since_ = executor_.clock().now();
}

JobRecord DispatchedRun::record_of(const ReadyJob& job, JobVerdict verdict) const {
  JobRecord record;
  record.task = job.task;
  record.index = job.index;
  record.arrival = record.start = record.ready = job.arrival - epoch_;
  record.deadline = job.deadline - epoch_;
  record.verdict = verdict;
  return record;
}

void DispatchedRun::drop(const Action& action) {
  const bool skipped = action.reason == DropReason::Skipped;
  EndedJob ended;
  ended.record = record_of(action.job, skipped ? JobVerdict::Skipped : JobVerdict::Dropped);
  ended.record.ready = action.ready - epoch_;
  ended.record.error =
      Error{ErrorCode::Machine,
            skipped ? "skipped: the job before it took longer than its budget"
                    : "no buffer set was free; the jobs before took longer than admitted, or were seen late",
            {}};
  ended.place = ledger_.claim();
  ended.late = true;
  ended.excesses.add(BoundCause::Release, overslept_);  // jobs that were seen late then have the buffers
  ended.excesses.add(BoundCause::Blocking, blocking_.total());
  const Hold& hold = tasks_[action.job.task.index()].holds[scheduler_->buffer_set_of(action.job)];
  if (!skipped && hold.until == kNever) ended.excesses.add(BoundCause::Host, decided_at_ - hold.from);
  ended.blocker = blocking_.worst();
  const bool tells = hears_of_end(action.job.task) && dropped_called_ < kMostDropped;
  const auto place = tells ? free_callback() : std::nullopt;
  if (!place) return ledger_.add(std::move(ended));
  ++dropped_called_;
  Callback& callback = callbacks_[*place];
  callback.kind = Callback::Kind::EndOfDropped;
  callback.ready = action.job;
  callback.job = job_of(action.job);
  callback.ended = std::move(ended);
  post(*place);
}

void DispatchedRun::start(const ReadyJob& ready) {
  TaskState& state = tasks_[ready.task.index()];
  ledger_.review();  // its batches may have been those of a job before
  const Job job = job_of(ready);
  const Duration ready_since = std::max(state.releases[job.buffer_set].done, free_since_);
  running_.push_back({JobExecution(job, *state.program, state.chunks[job.buffer_set], state.first_chunk),
                      executor_.clock().now() - ready_since});
}

Event::Kind DispatchedRun::do_region() {
  Running& running = running_.back();
  Expected<void> done;
  if (const auto thrown = caught("the job", scheduler_->running().job.task, [&] {
        done = running.execution.do_region([&] {
          ledger_.review();
          take_news();
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
  TaskState& state = tasks_[ready.task.index()];
  const std::size_t set = scheduler_->buffer_set_of(ready);
  const Release& release = state.releases[set];
  EndedJob ended;
  JobRecord& record = ended.record = record_of(ready, JobVerdict::Met);
  record.ready = release.ready - epoch_;
  record.start = job.start - epoch_;
  record.finish = *job.finish - epoch_;
  if (*record.finish > record.deadline) record.verdict = JobVerdict::Missed;
  record.late = release.late;
  record.programs = release.held + release.done - release.seen;
  record.error = running.error ? std::move(running.error) : record_.fatal;
  if (record.error) record.verdict = JobVerdict::Failed;
  if (job.aborted) {
    record.verdict = JobVerdict::Aborted;
    record.error = Error{ErrorCode::Kernel, "aborted: it took longer than its budget; its results are invalid", {}};
  }
  ended.place = ledger_.claim();
  ended.chunks = &state.chunks[set];
  ended.over = ledger_.over_bound(record);
  ended.late = ended.over > executor_.backend().tolerated_lag() || record.missed();
  ended.excesses = excesses_of(running, job, record);
  ended.blocker = blocking_.worst();
  blocking_.add(ready.task, job.own(*job.finish) - planned_.timings[ready.task.index()].wcet);
  const Job of_user = running.execution.job();
  const Duration finish = *job.finish;
  running_.pop_back();
  if (!hears_of_end(ready.task)) {
    scheduler_->buffers_free(ready);
    ledger_.add(std::move(ended));
  } else {
    const auto place = free_callback();
    TUTTI_EXPECTS(place, "there is a callback for each job that is alive");
    Callback& callback = callbacks_[*place];
    callback.kind = Callback::Kind::End;
    state.holds[set] = {finish, kNever};
    callback.ready = ready;
    callback.job = of_user;
    callback.ended = std::move(ended);
    post(*place);
  }
  free_since_ = executor_.clock().now();
}

// ---- news

void DispatchedRun::take_news() {
  waker_.look();
  take_triggers();
  take_callbacks();
}

void DispatchedRun::take_triggers() {
  if (external_.empty()) return;
  const Duration now = executor_.clock().now();
  for (const TaskId task : external_) {
    while (scheduler_->takes_trigger(task)) {
      const auto came = sources_[task.index()]->take(now);
      if (!came) break;
      scheduler_->trigger(task, *came);
    }
  }
}

void DispatchedRun::take_callbacks() {
  if (!worker_ || worker_->is_idle()) return;
  while (const auto done = worker_->take_done(executor_.clock().now())) {
    close(callbacks_[done->piece], *done);
    free_callbacks_.push_back(done->piece);
  }
}

void DispatchedRun::finish_callbacks() {
  if (!worker_) return;
  while (!worker_->is_idle()) {
    waker_.look();
    take_callbacks();
    if (!worker_->is_idle()) wait_for(worker_->next_done());
  }
  add_notes(record_.notes, worker_->notes());
}

bool DispatchedRun::hears_of_end(TaskId task) const {
  return on_job_end_ != nullptr || tasks_[task.index()].program->hears_of_end();
}

std::optional<std::size_t> DispatchedRun::free_callback() {
  if (free_callbacks_.empty()) return std::nullopt;
  const std::size_t place = free_callbacks_.back();
  free_callbacks_.pop_back();
  return place;
}

void DispatchedRun::post(std::size_t place) {
  callbacks_[place].thrown.reset();
  worker_->post(place);
}

void DispatchedRun::call(Callback& callback) {
  if (callback.kind != Callback::Kind::Input) return call_at_end(callback);
  const TaskId task = callback.ready.task;
  callback.thrown = caught("on_ready", task, [&] { tasks_[task.index()].program->on_ready(*callback.job); });
}

void DispatchedRun::call_at_end(Callback& callback) {
  const TaskId task = callback.ready.task;
  TaskProgram& program = *tasks_[task.index()].program;
  const Job& job = *callback.job;
  const JobRecord& record = callback.ended.record;
  const auto call = [&](std::string_view what, const auto& work) {
    if (auto thrown = caught(what, task, work); thrown && !callback.thrown) callback.thrown = std::move(thrown);
  };
  const JobVerdict verdict = record.verdict;
  if (!record.error) call("on_finished", [&] { program.on_finished(job); });
  callback.read = executor_.clock().now();
  if (verdict == JobVerdict::Missed) call("on_missed", [&] { program.on_missed(job, record); });
  if (callback.kind == Callback::Kind::EndOfDropped) call("on_dropped", [&] { program.on_dropped(job, record); });
  if (verdict == JobVerdict::Failed || verdict == JobVerdict::Aborted)
    call("on_failed", [&] { program.on_failed(job, record); });
  if (on_job_end_) call("on_job_end", [&] { on_job_end_(record); });
}

void DispatchedRun::close(Callback& callback, const CallbackWorker::Done& done) {
  if (callback.thrown) end_by(*callback.thrown);
  if (callback.kind == Callback::Kind::Input) {
    Release& release = tasks_[callback.ready.task.index()].releases[scheduler_->buffer_set_of(callback.ready)];
    release.done = done.ended;
    late_inputs_ += lateness_of_input(callback.ready, release);
    return scheduler_->input_ready(callback.ready);
  }
  EndedJob& ended = callback.ended;
  if (callback.kind == Callback::Kind::EndOfDropped) {
    --dropped_called_;
  } else {
    if (!ended.record.error) ended.record.after = callback.read - epoch_ - *ended.record.finish;
    tasks_[callback.ready.task.index()].holds[scheduler_->buffer_set_of(callback.ready)].until = done.ended;
    scheduler_->buffers_free(callback.ready);
  }
  ledger_.add(std::move(ended));
}

// ---- waiting

bool DispatchedRun::idle(Duration until) {
  if (record_.fatal) return false;
  Duration instant = until;
  if (changing_ != nullptr && executor_.clock().now() - epoch_ < end_) {
    const auto on_the_clock = [&](Duration time) { return time > kNever - epoch_ ? kNever : epoch_ + time; };
    instant = std::min(instant, on_the_clock(end_));
    if (const auto request = requests_->next()) instant = std::min(instant, on_the_clock(*request));
  }
  if (changing_ != nullptr) changing_->idle_at(decided_at_ - epoch_);
  if (worker_) instant = std::min(instant, worker_->next_done());
  const bool awaits = !external_.empty() && scheduler_->awaits_triggers(decided_at_);
  if (awaits) {
    for (const TaskId task : external_)
      if (scheduler_->takes_trigger(task)) instant = std::min(instant, sources_[task.index()]->next());
    instant = std::min(instant, triggers_end_);
  }
  const bool called = (worker_ && !worker_->is_idle()) || awaits;
  if (instant == kNever && !(called && executor_.clock().runs_by_itself())) return false;
  ledger_.review();
  arm_next();
  wait_for(instant);
  blocking_.clear();
  late_inputs_ = {};
  return true;
}

void DispatchedRun::wait_for(Duration instant) {
  Clock& clock = executor_.clock();
  const Duration until = clock.runs_by_itself() ? std::min(instant, clock.now() + kLongestSleep) : instant;
  clock.wait_until(until, waker_);
  slept_since_ = free_since_;
  woke_at_ = clock.now();
  overslept_ = woke_at_ - until;
}

Job DispatchedRun::job_of(const ReadyJob& ready) const {
  Job job(executor_, *tasks_[ready.task.index()].task);
  job.index = ready.index;
  job.arrival = ready.arrival;
  job.deadline = ready.deadline;
  job.buffer_set = scheduler_->buffer_set_of(ready);
  job.takes = scheduler_->takes_of(ready);
  return job;
}

void DispatchedRun::arm_next() {
  const auto next = scheduler_->next_job();
  if (!next) return;
  auto& chunks = tasks_[next->task.index()].chunks_of(next->index);
  if (!chunks.empty()) executor_.arm(chunks.front());
}

void DispatchedRun::end_by(const Error& error) {
  if (!record_.fatal) record_.fatal = error;
  scheduler_->stop();
}

template <class Work>
std::optional<Error> DispatchedRun::caught(std::string_view what, TaskId task, const Work& work) const {
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

// ---- changes

void DispatchedRun::answer_request() {
  const Duration now = executor_.clock().now() - epoch_;
  if (now >= end_) return;
  if (const auto change = requests_->take_due(now)) record_.changes.push_back({*change, now, answer(*change, now)});
}

void DispatchedRun::refuse_requests() {
  const Duration now = executor_.clock().now() - epoch_;
  while (const auto change = requests_->take_due(kNever))
    record_.changes.push_back({*change, now, {Answer::Unknown, "the run ended before"}});
}

ChangeAnswer DispatchedRun::answer(const TaskChange& change, Duration now) {
  if (change.comes && !changing_->runs(*change.comes) && scheduler_->is_alive(*change.comes))
    return {Answer::Unknown,
            fmt::format("a job of '{}' from before has not ended", planned_.tasks.tasks[change.comes->index()].name)};
  const auto last = change.leaves ? scheduler_->last_arrival(*change.leaves, now) : std::nullopt;
  const ChangeAnswer answered = changing_->ask(change, now, last);
  if (answered.answer != Answer::Schedulable) return answered;
  if (change.leaves) scheduler_->leave(*change.leaves, now);
  if (change.comes) scheduler_->come(*change.comes, now);
  return answered;
}

// ---- bounds

Duration DispatchedRun::lateness_of_input(const ReadyJob& job, const Release& release) const {
  const Duration latest = job.arrival + tasks_[job.task.index()].task->jitter;
  return std::max(release.done - std::max(latest, release.seen - release.held), Duration{0});
}

Excesses DispatchedRun::excesses_of(const Running& running, const RunningJob& ended, const JobRecord& record) const {
  const Job& job = running.execution.job();
  const TaskState& state = tasks_[record.task.index()];
  const Release& release = state.releases[job.buffer_set];
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

using PreparedOrError = Expected<std::unique_ptr<PreparedRun>>;

/// @param then  (run): what it does in place of periodic jobs
template <class Then>
PreparedOrError prepare(Executor& executor, const PlannedTaskSet& planned, std::span<TaskProgram* const> programs,
                        std::span<const std::uint64_t> jobs, const std::atomic<bool>* interrupted, const Then& then) {
  TUTTI_EXPECTS(programs.size() == planned.tasks.tasks.size(), "each task has its program");
  TUTTI_EXPECTS(planned.partitions.size() == 1, "an executor runs one partition");
  if (executor.busy())
    return invalid_input("a batch that was issued before is still under way; synchronize it before the run");
  auto run = std::make_unique<DispatchedRun>(executor, planned, interrupted);
  if (auto ok = run->prepare(programs, jobs); !ok) return tl::unexpected(std::move(ok.error()));
  try {
    then(*run);
  } catch (const std::system_error& error) {
    return machine_error(fmt::format("the host has no thread for callbacks: {}; end other programs", error.what()));
  }
  return run;
}

}  // namespace

PreparedOrError prepare_run(Executor& executor, const AdmittedTaskSet& admitted, std::span<TaskProgram* const> programs,
                            std::span<const std::uint64_t> jobs, const RunOptions& options) {
  return prepare(executor, admitted.planned(), programs, jobs, options.interrupted, [&](DispatchedRun& run) {
    run.release_jobs(jobs, options);
    run.hold_to(admitted.worst_responses());
    run.report_to(options);
    run.make_room(jobs);
  });
}

PreparedOrError prepare_run(Executor& executor, const PlannedTaskSet& planned, std::span<TaskProgram* const> programs,
                            const Scenario& scenario, const std::atomic<bool>* interrupted) {
  std::vector<std::uint64_t> jobs(planned.tasks.tasks.size(), 0);
  for (const ScenarioJob& job : scenario.jobs) ++jobs[job.task.index()];
  return prepare(executor, planned, programs, jobs, interrupted, [&](DispatchedRun& run) {
    run.follow(scenario);
    run.make_room(jobs);
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
                                 const std::atomic<bool>* interrupted) {
  return prepare_run(executor, planned, programs, scenario, interrupted)
      .map([](const std::unique_ptr<PreparedRun>& run) { return run->run(); });
}

Expected<RunRecord> run_changing_tasks(Executor& executor, ChangingTaskSet set, std::span<TaskProgram* const> programs,
                                       ChangeRequests& requests, const RunOptions& options) {
  TUTTI_EXPECTS(options.arrivals_before && !options.jobs, "a run whose tasks change ends at a time");
  TaskSet from_the_start = set.planned().tasks;  // each may come before its offset
  for (Task& task : from_the_start.tasks) task.offset = {};
  return jobs_per_task(from_the_start, options)
      .and_then([&](const std::vector<std::uint64_t>& jobs) {
        return prepare(executor, set.planned(), programs, jobs, options.interrupted, [&](DispatchedRun& run) {
          run.hold_to({});
          run.report_to(options);
          run.make_room(jobs);
          run.change_on_request(set, requests, *options.arrivals_before, options);
        });
      })
      .map([](const std::unique_ptr<PreparedRun>& run) { return run->run(); });
}

}  // namespace tutti::internal
