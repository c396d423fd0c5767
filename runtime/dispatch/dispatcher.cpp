#include "runtime/dispatch/dispatcher.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <ranges>
#include <utility>

#include <fmt/format.h>
#include <time.h>

#include "model/base/expects.hpp"
#include "runtime/dispatch/blocking_log.hpp"
#include "runtime/dispatch/job_execution.hpp"
#include "runtime/dispatch/job_scheduler.hpp"
#include "runtime/dispatch/task_state.hpp"
#include "runtime/dispatch/work_log.hpp"
#include "runtime/host/real_time.hpp"
#include "runtime/trace/journal.hpp"

namespace tutti::internal {

JobEntry entry_of(const JobRecord& job, std::span<const TaskId> names) {
  JobEntry entry;
  entry.task = names.empty() ? job.task : names[job.task.index()];
  entry.verdict = job.verdict;
  entry.index = job.index;
  entry.arrival = job.arrival;
  entry.ready = job.ready;
  if (job.finish) entry.start = job.start;
  entry.finish = job.finish;
  entry.deadline = job.deadline;
  entry.late = job.late;
  entry.programs = job.programs;
  entry.after = job.after;
  entry.overruns = static_cast<std::uint32_t>(job.overruns);
  entry.broken = job.broken;
  if (job.broken && job.broken->by && !names.empty()) entry.broken->by = names[job.broken->by->index()];
  return entry;
}

std::vector<JobSummary> summaries_of(std::span<const JobRecord> jobs, std::size_t tasks) {
  std::vector<JobSummary> summaries(tasks);
  for (const JobRecord& job : jobs) summaries[job.task.index()].add(entry_of(job));
  return summaries;
}

namespace {

constexpr std::uint64_t kUntilItLeaves = std::numeric_limits<std::uint64_t>::max();
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
    task.buffer_sets = states[i].chunks.size();
    task.jobs = jobs[i];
    task.first_arrival = states[i].task->offset;
  }
  return tasks;
}

/// Does what a scheduler decides: fills buffers, runs batches, waits, keeps records.
class DispatchedRun final : public PreparedRun {
 public:
  DispatchedRun(Executor& executor, const PlannedTaskSet& planned, const std::atomic<bool>* interrupted)
      : executor_(executor), owned_(executor), planned_(planned), interrupted_(interrupted) {}

  /// Prepares the batches of all tasks, and where the backend starts cold runs each once.
  /// @param jobs  [tasks] most jobs to release
  Expected<void> prepare(std::span<TaskProgram* const> programs, std::span<const std::uint64_t> jobs);
  /// Releases periodic jobs. @param jobs  [tasks] to release
  void release_periodic(std::span<const std::uint64_t> jobs, std::uint64_t seed);
  /// Releases the jobs of a scenario in place of periodic jobs. @pre prepared for as many
  void follow(const Scenario& scenario);
  /// Makes room for the records. @param jobs  [tasks] to release @pre after `report_to`
  void make_room(std::span<const std::uint64_t> jobs);
  /// Reports the end of every job.
  void report_to(const RunOptions& options);
  /// Compares jobs and batches with their bounds.
  /// @param bounds  [tasks] of responses, where there are any; empty: batches alone have bounds
  void hold_to(std::span<const std::optional<Duration>> bounds);
  /// Lets tasks come and go as requested, until `end`. @pre prepared for all tasks of the set
  void change_on_request(ChangingTaskSet& set, ChangeRequests& requests, Duration end, std::uint64_t seed);
  RunRecord run() override;

 private:
  /// A job that has the machine, or has lent it.
  struct Running {
    JobExecution execution;
    Duration waited{};                ///< until it started, with no job before it
    std::optional<Error> error = {};  ///< why it failed
  };
  /// A finished job whose batches' measured times are not read yet. They are read while another job runs or the run is
  /// idle.
  struct Unreviewed {
    JobRecord record;
    std::vector<PreparedBatch>* chunks;  // of its batches
    bool late;                           // over its bound, or its deadline
    Duration over;                       // excess over the bound
    Excesses excesses;
    std::optional<TaskId> blocker;
  };

  /// Chunks of all batches, of all buffer sets, of all tasks.
  auto all_chunks() { return tasks_ | std::views::transform(&TaskState::chunks) | std::views::join | std::views::join; }
  Expected<void> warm_up();

  void run_jobs();
  /// Does an action. @return what has happened; nothing: the run is over
  std::optional<Event::Kind> perform(const Action& action);
  /// What comes in from outside: an interrupt, a request. As above.
  std::optional<Event::Kind> between_jobs();
  Event::Kind release(const Action& action);
  /// How long the dispatcher slept on beyond the instant at which a job was ready: a late awakening may find several.
  [[nodiscard]] Duration overslept_by(Duration ready) const { return woke_at_ - std::max(ready, slept_since_); }
  /// The record of a job that has not started.
  [[nodiscard]] JobRecord record_of(const ReadyJob& job, JobVerdict verdict) const;
  void drop(const Action& action);
  Event::Kind do_region();
  void start(const ReadyJob& ready);
  void finish();
  /// Waits for the next job or request; whether there is one.
  bool idle(Duration until);
  /// Waits until an instant, or for part of that time.
  void wait_for(Duration instant);
  [[nodiscard]] Job job_of(const ReadyJob& ready) const;

  /// Arms the first batch of the job that is probably next: arming takes longer than starting an armed batch.
  void arm_next();
  /// Ends the run: no other job begins.
  void end_by(const Error& error);
  /// Does work of the user's code. What it throws ends the run. @return whether it threw nothing
  template <class Work>
  bool guarded(std::string_view what, TaskId task, const Work& work);
  /// Does and logs the work of a program beside its job's steps.
  /// @return when it was done.
  template <class Work>
  Duration beside(std::string_view what, TaskId task, const Work& work);
  /// Tells the user's code that a job has ended.
  void report_job_end(const JobRecord& job);
  /// Keeps the record of a job that needs no more review.
  /// @param streams  measured times of its streams
  void keep(JobRecord job, std::span<const StreamTime> streams = {});
  /// Adds the times of a chunk's streams to `streams_`.
  void note_streams(TaskId task, std::size_t chunk, Duration start, const Timeline& measured);

  /// Answers the next request that is due.
  void answer_request();
  /// Refuses the requests that the run left open.
  void refuse_requests();
  ChangeAnswer answer(const TaskChange& change, Duration now);

  /// Excesses of a finished job, by cause.
  [[nodiscard]] Excesses excesses_of(const Running& running, const RunningJob& job, const JobRecord& record) const;
  /// Completes the record of the last job: overruns, and whether it exceeded its bound, and why.
  void review();
  /// Attributes slow copies to other users of the devices, where there were any.
  void blame_others();

  Executor& executor_;
  Executor::AdmittedRun owned_;
  const PlannedTaskSet& planned_;
  const std::atomic<bool>* interrupted_;
  std::function<void(const JobRecord&)> on_job_end_;
  JobRecorder* recorder_ = nullptr;
  std::span<const TaskId> names_;  // [tasks] in the journal; empty: as here
  bool keeps_jobs_ = true;
  std::vector<StreamTime> streams_;  // of the job under review
  std::vector<TaskState> tasks_;
  std::optional<JobScheduler> scheduler_;
  std::vector<Running> running_;  // as in the scheduler
  RunRecord record_;
  Duration epoch_{};       // the clock's reading at the start of the run
  Duration decided_at_{};  // of the action that is being done
  ChangingTaskSet* changing_ = nullptr;
  ChangeRequests* requests_ = nullptr;
  Duration end_ = kNever;  // nothing arrives from then on

  bool promised_ = false;                        // jobs are held against their bounds
  std::vector<std::optional<Duration>> bounds_;  // [tasks] of responses; empty: none are known
  WorkLog beside_;                               // work of programs, beside what tasks declare
  Duration free_since_{};                        // the dispatcher is free since then
  Duration slept_since_{}, woke_at_{};           // its last sleep: free since, and until
  Duration overslept_{};                         // so much longer than it was to be
  BlockingLog blocking_;                         // since the run was idle last
  Duration beside_before_{};                     // total of `beside_` at that instant
  bool foreign_ = false;                         // others used the devices when the run was prepared
  std::optional<Unreviewed> unreviewed_;
};

// ---- preparing

Expected<void> DispatchedRun::prepare(std::span<TaskProgram* const> programs, std::span<const std::uint64_t> jobs) {
  std::size_t alive = 0;
  for (std::size_t i = 0; i < planned_.tasks.tasks.size(); ++i) {
    auto state = prepare_task(executor_, owned_, planned_, TaskId{i}, *programs[i], jobs[i]);
    if (!state) return tl::unexpected(std::move(state.error()));
    tasks_.push_back(*std::move(state));
    alive += tasks_.back().chunks.size();
  }
  running_.reserve(alive);
  record_.summaries.resize(tasks_.size());
  blocking_ = BlockingLog(tasks_.size());
  foreign_ = !executor_.backend().foreign_load().empty();
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
  recorder_ = options.recorders.empty() ? nullptr : options.recorders.front();
  names_ = options.names;
  keeps_jobs_ = options.keeps_jobs;
}

/// The pages of the memory that the loop uses are there afterwards.
void DispatchedRun::make_room(std::span<const std::uint64_t> jobs) {
  if (keeps_jobs_) {
    record_.jobs.resize(std::accumulate(jobs.begin(), jobs.end(), std::uint64_t{0}));
    record_.jobs.clear();
  }
  if (recorder_ != nullptr) streams_.reserve(kMostStreamTimes);
}

void DispatchedRun::release_periodic(std::span<const std::uint64_t> jobs, std::uint64_t seed) {
  scheduler_.emplace(planned_.tasks.policy, planned_.tasks.arrivals, scheduled(planned_, tasks_, jobs), seed);
}

void DispatchedRun::follow(const Scenario& scenario) {
  auto tasks = scheduled(planned_, tasks_, std::vector<std::uint64_t>(tasks_.size()));
  for (const ScenarioJob& job : scenario.jobs) {
    ScheduledTask& task = tasks[job.task.index()];
    task.script.push_back(job);
    ++task.jobs;
  }
  for (ScheduledTask& task : tasks) task.overrun = {};  // its jobs take what the scenario says
  scheduler_.emplace(planned_.tasks.policy, planned_.tasks.arrivals, std::move(tasks), 0);
}

void DispatchedRun::hold_to(std::span<const std::optional<Duration>> bounds) {
  promised_ = true;
  bounds_.assign(bounds.begin(), bounds.end());
}

void DispatchedRun::change_on_request(ChangingTaskSet& set, ChangeRequests& requests, Duration end,
                                      std::uint64_t seed) {
  changing_ = &set;
  requests_ = &requests;
  end_ = end;
  std::vector<std::uint64_t> jobs;
  for (std::size_t i = 0; i < tasks_.size(); ++i) jobs.push_back(set.runs(TaskId{i}) ? kUntilItLeaves : 0);
  release_periodic(jobs, seed);
  scheduler_->end_arrivals(end);
}

// ---- the loop

RunRecord DispatchedRun::run() {
  std::optional<RealTimeThread> thread;
  if (executor_.clock().runs_by_itself()) thread.emplace(executor_.role());
  const Duration processor_before = processor_time();
  run_jobs();
  if (thread) {
    record_.notes = thread->notes();
    record_.processor = processor_time() - processor_before;
  }
  return std::move(record_);
}

void DispatchedRun::run_jobs() {
  epoch_ = executor_.clock().now();
  executor_.backend().begin_run(epoch_);
  scheduler_->begin(epoch_);
  for (auto happened = between_jobs(); happened;) {
    decided_at_ = executor_.clock().now();
    happened = perform(scheduler_->step({*happened, decided_at_}));
  }
  review();
  while (const auto job = scheduler_->take_unstarted()) keep(record_of(*job, JobVerdict::NeverRun));
  for (const auto& [task, at] : scheduler_->suspensions()) record_.suspensions.push_back({task, at - epoch_});
  if (changing_ != nullptr) refuse_requests();
  record_.length = executor_.clock().now() - epoch_;
  for (PreparedBatch& chunk : all_chunks()) executor_.disarm(chunk);
  blame_others();
}

std::optional<Event::Kind> DispatchedRun::perform(const Action& action) {
  switch (action.kind) {
    case Action::Kind::Release: return release(action);
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

Event::Kind DispatchedRun::release(const Action& action) {
  TaskState& state = tasks_[action.job.task.index()];
  const Duration since_ready =
      std::max(executor_.clock().now() - std::max(action.ready, free_since_), overslept_by(action.ready));
  free_since_ = beside("on_ready", action.job.task, [&] { state.program->on_ready(job_of(action.job)); });
  state.releases[scheduler_->buffer_set_of(action.job)] = {action.ready, since_ready, free_since_};
  return Event::Kind::InputReady;
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
  JobRecord record = record_of(action.job, skipped ? JobVerdict::Skipped : JobVerdict::Dropped);
  record.ready = action.ready - epoch_;
  record.error = Error{ErrorCode::Machine,
                       skipped ? "skipped: the job before it took longer than its budget"
                               : "no buffer set was free; the jobs before took longer than admitted, or were seen late",
                       {}};
  Excesses excesses;
  excesses.add(BoundCause::Release, overslept_);  // jobs that were seen late then have the buffers
  excesses.add(BoundCause::Blocking, blocking_.total());
  excesses.add(BoundCause::Host, beside_.total() - beside_before_);
  if (promised_) record.broken = BrokenBound{excesses.largest(), {}, blocking_.worst()};
  report_job_end(record);
  review();
  keep(std::move(record));
}

void DispatchedRun::start(const ReadyJob& ready) {
  TaskState& state = tasks_[ready.task.index()];
  if (unreviewed_ && unreviewed_->chunks == &state.chunks_of(ready.index)) review();
  const Job job = job_of(ready);
  const Duration ready_since = std::max(state.releases[job.buffer_set].done, free_since_);
  running_.push_back({JobExecution(job, *state.program, state.chunks[job.buffer_set], state.first_chunk),
                      executor_.clock().now() - ready_since});
}

Event::Kind DispatchedRun::do_region() {
  Running& running = running_.back();
  Expected<void> done;
  const bool threw = !guarded("the job", scheduler_->running().job.task, [&] {
    done = running.execution.do_region([&] {
      review();
      arm_next();
    });
  });
  free_since_ = executor_.clock().now();
  if (threw) done = tl::unexpected(*record_.fatal);
  if (done) return running.execution.has_ended() ? Event::Kind::JobEnded : Event::Kind::RegionEnded;
  running.error = done.error();
  if (done.error().code == ErrorCode::Machine) end_by(done.error());
  return Event::Kind::JobFailed;
}

void DispatchedRun::finish() {
  const RunningJob& job = scheduler_->running();
  Running& running = running_.back();
  const ReadyJob& ready = job.job;
  TaskState& state = tasks_[ready.task.index()];
  const std::size_t set = scheduler_->buffer_set_of(ready);
  const Duration programs = beside_.since(ready.arrival);
  review();
  JobRecord record = record_of(ready, JobVerdict::Met);
  record.ready = state.releases[set].ready - epoch_;
  record.start = job.start - epoch_;
  record.finish = *job.finish - epoch_;
  if (*record.finish > record.deadline) record.verdict = JobVerdict::Missed;
  record.late = state.releases[set].late;
  record.programs = programs;
  record.error = running.error ? std::move(running.error) : record_.fatal;
  if (record.error) record.verdict = JobVerdict::Failed;
  if (job.aborted) {
    record.verdict = JobVerdict::Aborted;
    record.error = Error{ErrorCode::Kernel, "aborted: it took longer than its budget; its results are invalid", {}};
  }
  const auto bound = bounds_.empty() ? std::nullopt : bounds_[ready.task.index()];
  const Duration over = bound ? record.response() - *bound : Duration{0};
  const bool late = over > executor_.backend().tolerated_lag() || record.missed();
  const Excesses excesses = excesses_of(running, job, record);
  const std::optional<TaskId> blocker = blocking_.worst();
  blocking_.add(ready.task, job.own(*job.finish) - planned_.timings[ready.task.index()].wcet);
  if (!record.error)
    record.after =
        beside("on_finished", ready.task, [&] { state.program->on_finished(running.execution.job()); }) - *job.finish;
  running_.pop_back();
  report_job_end(record);
  unreviewed_.emplace(Unreviewed{std::move(record), &state.chunks[set], late, over, excesses, blocker});
  free_since_ = executor_.clock().now();
}

bool DispatchedRun::idle(Duration until) {
  if (record_.fatal) return false;
  Duration instant = until;
  if (changing_ != nullptr && executor_.clock().now() - epoch_ < end_) {
    const auto on_the_clock = [&](Duration time) { return time > kNever - epoch_ ? kNever : epoch_ + time; };
    instant = std::min(instant, on_the_clock(end_));
    if (const auto request = requests_->next()) instant = std::min(instant, on_the_clock(*request));
  }
  if (changing_ != nullptr) changing_->idle_at(decided_at_ - epoch_);
  if (instant == kNever) return false;
  review();
  arm_next();
  wait_for(instant);
  blocking_.clear();
  beside_before_ = beside_.total();
  return true;
}

void DispatchedRun::wait_for(Duration instant) {
  Clock& clock = executor_.clock();
  const Duration until = clock.runs_by_itself() ? std::min(instant, clock.now() + kLongestSleep) : instant;
  clock.wait_until(until);
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
bool DispatchedRun::guarded(std::string_view what, TaskId task, const Work& work) {
  const auto ended = [&](std::string_view thrown) {
    end_by({ErrorCode::Kernel,
            fmt::format("{} of task '{}' threw: {}; catch it there", what, planned_.tasks.tasks[task.index()].name,
                        thrown),
            {}});
    return false;
  };
  try {
    work();
    return true;
  } catch (const std::exception& exception) {
    return ended(exception.what());
  } catch (...) {
    return ended("something that is no std::exception");
  }
}

template <class Work>
Duration DispatchedRun::beside(std::string_view what, TaskId task, const Work& work) {
  const Duration start = executor_.clock().now();
  static_cast<void>(guarded(what, task, work));
  const Duration end = executor_.clock().now();
  beside_.add(start, end);
  return end;
}

void DispatchedRun::report_job_end(const JobRecord& job) {
  if (on_job_end_) beside("on_job_end", job.task, [&] { on_job_end_(job); });
}

void DispatchedRun::keep(JobRecord job, std::span<const StreamTime> streams) {
  const JobEntry entry = entry_of(job, names_);
  record_.summaries[job.task.index()].add(entry);
  if (recorder_ != nullptr) recorder_->record(entry, streams);
  if (keeps_jobs_) record_.jobs.push_back(std::move(job));
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
  excesses.add(BoundCause::Release, release.late);
  excesses.add(BoundCause::Blocking, blocking_.total());
  excesses.add(BoundCause::Host, ended.own(*ended.finish) - job.times.in_batches - declared);
  excesses.add(BoundCause::Host, beside_.total() - beside_before_ - record.programs);
  excesses.add(BoundCause::Dispatch, running.waited);
  excesses.add(BoundCause::Dispatch, job.times.in_batches - job.times.batches - dispatching);
  return excesses;
}

void DispatchedRun::review() {
  if (!unreviewed_) return;
  auto& [record, chunks, late, over, excesses, blocker] = *unreviewed_;
  streams_.clear();
  std::optional<BrokenBound> broken;  // of the batch that was furthest over its latest finish
  for (std::size_t chunk = 0; chunk < chunks->size(); ++chunk) {
    const Executor::Review one = executor_.review((*chunks)[chunk], recorder_ != nullptr);
    record.overruns += one.overruns;
    if (one.broken && (!broken || one.broken->excess > broken->excess)) broken = one.broken;
    if (one.measured != nullptr) note_streams(record.task, chunk, one.start, *one.measured);
  }
  if (broken) excesses.add(broken->cause, broken->excess);
  if (promised_ && (late || broken)) {
    record.broken = BrokenBound{excesses.largest(), std::max(over, broken ? broken->excess : Duration{0})};
    if (record.broken->cause == BoundCause::Blocking && blocker != record.task) record.broken->by = blocker;
    if (record.broken->cause == BoundCause::Transfer && foreign_) record.broken->cause = BoundCause::Foreign;
  }
  keep(std::move(record), streams_);
  unreviewed_.reset();
}

void DispatchedRun::note_streams(TaskId task, std::size_t chunk, Duration start, const Timeline& measured) {
  const auto& first_chunk = tasks_[task.index()].first_chunk;
  const auto batch = std::ranges::upper_bound(first_chunk, chunk) - first_chunk.begin() - 1;
  for (std::size_t s = 0; s < measured.streams.size() && streams_.size() < kMostStreamTimes; ++s)
    streams_.push_back({static_cast<std::uint32_t>(batch), static_cast<std::uint32_t>(s),
                        start - epoch_ + measured.streams[s].start(), start - epoch_ + measured.streams[s].end()});
}

/// A journal knows those alone that were there before the run.
void DispatchedRun::blame_others() {
  if (foreign_ || !keeps_jobs_ || executor_.backend().foreign_load().empty()) return;
  for (JobRecord& job : record_.jobs)
    if (job.broken && job.broken->cause == BoundCause::Transfer) job.broken->cause = BoundCause::Foreign;
  record_.summaries = summaries_of(record_.jobs, tasks_.size());
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
  then(*run);
  return run;
}

}  // namespace

PreparedOrError prepare_run(Executor& executor, const AdmittedTaskSet& admitted, std::span<TaskProgram* const> programs,
                            std::span<const std::uint64_t> jobs, const RunOptions& options) {
  return prepare(executor, admitted.planned(), programs, jobs, options.interrupted, [&](DispatchedRun& run) {
    run.release_periodic(jobs, options.seed);
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
          run.change_on_request(set, requests, *options.arrivals_before, options.seed);
        });
      })
      .map([](const std::unique_ptr<PreparedRun>& run) { return run->run(); });
}

}  // namespace tutti::internal
