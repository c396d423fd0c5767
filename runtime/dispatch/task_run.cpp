#include "runtime/dispatch/task_run.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include <time.h>

#include "model/base/expects.hpp"
#include "runtime/core/notes.hpp"
#include "runtime/dispatch/blocking_log.hpp"
#include "runtime/host/real_time.hpp"
#include "runtime/triggers/trigger_source.hpp"

namespace tutti::internal {
namespace {

/// Callbacks of dropped jobs that can wait; further ones are left out.
constexpr std::size_t kMostDropped = 64;
constexpr std::uint64_t kUntilItLeaves = std::numeric_limits<std::uint64_t>::max();
/// Longest sleep where time passes by itself: an interrupt waits no longer, however far away the next job is.
constexpr Duration kLongestSleep = std::chrono::milliseconds{50};

/// Processor time of the calling thread.
Duration processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds{time.tv_sec} + Duration{time.tv_nsec};
}

const char* why_dropped(DropReason reason) {
  switch (reason) {
    case DropReason::Skipped: return "skipped: the job before it took longer than its budget";
    case DropReason::NotArmed: return "the host had armed no run for it: it was away for longer than its queues last";
    case DropReason::NoInput: return "its program had not filled its input when it was to start";
    case DropReason::NoBuffers: break;
  }
  return "no buffer set was free; the jobs before took longer than admitted, or were seen late";
}

}  // namespace

// ---- preparing

Expected<void> TaskRun::make_ready() {
  if (executor_.backend().starts_cold())
    if (auto ok = warm_up(); !ok) return ok;
  for (TaskState& task : tasks_)
    if (auto ok = task.program->on_start(executor_); !ok) return ok;
  return {};
}

Expected<void> TaskRun::warm_up() {
  for (PreparedBatch& chunk : all_chunks()) {
    auto result = executor_.issue(chunk).and_then([&] { return executor_.synchronize(chunk); });
    if (!result && result.error().code != ErrorCode::Kernel) return tl::unexpected(std::move(result.error()));
  }
  return {};
}

std::vector<ScheduledTask> TaskRun::scheduled(std::span<const std::uint64_t> jobs,
                                              const std::optional<EarlierRun>& earlier) const {
  std::vector<ScheduledTask> tasks;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    ScheduledTask& task = tasks.emplace_back();
    task.timing = planned_.timings[i];
    task.overrun = tasks_[i].task->overrun;
    task.release = tasks_[i].task->release;
    task.buffer_sets = tasks_[i].releases.size();
    task.jobs = jobs[i];
    task.in_order = tasks_[i].writes_kept;
    task.first_arrival = tasks_[i].task->offset;
    if (earlier) task.first_job = earlier->released[i];
  }
  return tasks;
}

std::vector<ScheduledTask> TaskRun::scheduled(const Scenario& scenario) const {
  std::vector<ScheduledTask> tasks = scheduled(std::vector<std::uint64_t>(tasks_.size()));
  for (ScheduledTask& task : tasks) {
    task.overrun = {};
    task.release = {};
  }
  for (const ScenarioJob& job : scenario.jobs) {
    ScheduledTask& task = tasks[job.task.index()];
    task.script.push_back(job);
    ++task.jobs;
  }
  return tasks;
}

void TaskRun::release_by(const RunOptions& options) {
  earlier_ = options.earlier;
  for (std::size_t i = 0; i < tasks_.size(); ++i)
    if (tasks_[i].task->release.is_external()) external_.emplace_back(i);
  sources_ = options.triggers;
  for (const TaskId task : external_)
    TUTTI_EXPECTS(task.index() < sources_.size() && sources_[task.index()] != nullptr,
                  "a task that triggers release has a source of them");
  if (!external_.empty()) waker_.be_urgent();
  arrivals_end_ = options.arrivals_before.value_or(kNever);
  releases().end_arrivals(arrivals_end_);
}

void TaskRun::make_ready(std::span<const std::uint64_t> jobs, std::span<const std::uint64_t> most,
                         std::span<const std::optional<Duration>> bounds, const RunOptions& options) {
  release_jobs(jobs, options);
  ledger_.hold_to(bounds);
  report_to(options);
  make_room(most);
}

void TaskRun::report_to(const RunOptions& options) {
  on_job_end_ = options.on_job_end;
  ledger_.report_to(options);
}

/// Any number of jobs of the tasks that run from the start.
void TaskRun::make_ready_to_change(ChangingTaskSet& set, ChangeRequests& requests, std::span<const std::uint64_t> most,
                                   const RunOptions& options) {
  changing_ = &set;
  requests_ = &requests;
  std::vector<std::uint64_t> jobs;
  for (std::size_t i = 0; i < most.size(); ++i) jobs.push_back(set.runs(TaskId{i}) ? kUntilItLeaves : 0);
  make_ready(jobs, most, set.worst_responses(), options);
}

/// The pages of the memory that the loop uses are there afterwards.
void TaskRun::make_room(std::span<const std::uint64_t> jobs) {
  std::size_t alive = 0;
  bool calls = on_job_end_ != nullptr;
  for (const TaskState& task : tasks_) {
    alive += task.releases.size();
    calls = calls || task.program->fills_input() || task.program->hears_of_end();
  }
  ledger_.make_room(std::accumulate(jobs.begin(), jobs.end(), std::uint64_t{0}), alive);
  if (!calls) return;
  callbacks_.resize(alive + 1 + kMostDropped);  // one for input that comes ahead of its job
  for (std::size_t place = callbacks_.size(); place > 0; --place) free_callbacks_.push_back(place - 1);
  ThreadRole role = executor_.role();
  role.spins = false;
  if (role.priority > 1) role.priority = std::max(role.priority - callbacks_below(), 1);  // others go before it
  worker_.emplace(
      executor_.clock(), callbacks_.size(), [this](std::size_t place) { call(callbacks_[place]); }, role, waker_);
}

// ---- the run

RunRecord TaskRun::run(std::optional<Duration> start) {
  std::optional<RealTimeThread> thread;
  if (executor_.clock().runs_by_itself()) thread.emplace(executor_.role());
  const auto processor = [&] { return processor_time() + executor_.backend().processor_time(); };
  const Duration processor_before = processor();
  begin(start);
  run_jobs();
  wind_up();
  if (thread) {
    add_notes(record_.notes, thread->notes());
    record_.processor = processor() - processor_before;
  }
  return std::move(record_);
}

/// The scheduler counts from now on; records count from the start of the earlier run, if there is one.
void TaskRun::begin(std::optional<Duration> start) {
  if (!start && lead_time() > Duration{0}) start = executor_.clock().now() + lead_time();
  if (start) {
    expect_start(*start);
    executor_.clock().wait_until(*start);
  }
  const Duration now = start.value_or(executor_.clock().now());
  record_.start = epoch_ = earlier_ ? earlier_->start : now;
  ledger_.begin(epoch_);
  executor_.backend().begin_run(epoch_);
  triggers_end_ = arrivals_end_ > kNever - epoch_ ? kNever : epoch_ + arrivals_end_;
  if (earlier_ && arrivals_end_ != kNever) releases().end_arrivals(triggers_end_ - now);
  releases().begin(now);
  for (const TaskId task : external_) {
    TriggerSource& source = *sources_[task.index()];
    earlier_ ? source.resume(executor_.clock(), now, waker_) : source.begin(executor_.clock(), now, waker_);
  }
}

void TaskRun::release(const ReadyJob& job, Duration ready) {
  TaskState& state = tasks_[job.task.index()];
  const Duration seen = executor_.clock().now();
  Release& release = state.release_of(job.index);
  const Hold& hold = state.hold_of(job.index);
  const Duration held = std::max(hold.until - std::max(ready, hold.from), Duration{0});
  // Of several jobs that a late awakening finds, each is as late as the dispatcher slept beyond its ready instant.
  const Duration late = std::max(seen - std::max({ready, free_since_, hold.until}),
                                 woke_at_ - std::max({ready, slept_since_, hold.until}));
  release = {ready, late, seen, seen, held};
  JobBuffers& buffers = state.buffers_of(job.index);
  buffers.index = job.index;
  take_buffers(state, buffers);
  if (!state.program->fills_input()) {
    late_inputs_ += lateness_of_input(job, release);
    input_ready(job);
  } else {
    call_for_input(job, job_of(job));
  }
  free_since_ = executor_.clock().now();
}

void TaskRun::call_for_input(const ReadyJob& job, const Job& of_user) {
  const auto place = free_callback();
  TUTTI_EXPECTS(place, "there is a callback for each job that is alive");
  Callback& callback = callbacks_[*place];
  callback.kind = Callback::Kind::Input;
  callback.ready = job;
  callback.job = of_user;
  post(*place);
}

JobRecord TaskRun::record_of(const ReadyJob& job, JobVerdict verdict) const {
  JobRecord record;
  record.task = job.task;
  record.index = job.index;
  record.arrival = record.start = record.ready = job.arrival - epoch_;
  record.deadline = job.deadline - epoch_;
  record.verdict = verdict;
  return record;
}

void TaskRun::drop(const ReadyJob& job, Duration ready, DropReason reason) {
  const bool skipped = reason == DropReason::Skipped;
  EndedJob ended;
  ended.record = record_of(job, skipped ? JobVerdict::Skipped : JobVerdict::Dropped);
  ended.record.ready = ready - epoch_;
  ended.record.error = Error{ErrorCode::Machine, why_dropped(reason), {}};
  ended.place = ledger_.claim();
  ended.late = !skipped;  // as its task asks
  if (reason == DropReason::NotArmed || reason == DropReason::NoInput) {
    ended.excesses.raise(BoundCause::Host, std::max(decided_at_ - ready, Duration{1}));  // it may see it at once
  } else {
    ended.excesses.add(BoundCause::Release, overslept_);  // jobs that were seen late then have the buffers
    ended.excesses.add(BoundCause::Blocking, blocking().total());
  }
  const Hold& hold = tasks_[job.task.index()].hold_of(job.index);
  if (reason == DropReason::NoBuffers && hold.until == kNever)
    ended.excesses.add(BoundCause::Host, decided_at_ - hold.from);
  ended.blocker = blocking().worst();
  report_unread(std::move(ended), job);
}

void TaskRun::report_unread(EndedJob&& ended, const ReadyJob& job) {
  const bool tells = hears_of_end(job.task) && dropped_called_ < kMostDropped;
  const auto place = tells ? free_callback() : std::nullopt;
  if (!place) return ledger_.add(std::move(ended));
  ++dropped_called_;
  Callback& callback = callbacks_[*place];
  callback.kind = Callback::Kind::EndOfDropped;
  callback.ready = job;
  callback.job = job_of(job);
  callback.ended = std::move(ended);
  post(*place);
}

void TaskRun::take_news() {
  waker_.look();
  take_triggers();
  take_callbacks();
}

void TaskRun::take_triggers() {
  if (external_.empty()) return;
  const Duration now = executor_.clock().now();
  for (const TaskId task : external_) {
    TriggerSource& source = *sources_[task.index()];
    while (releases().takes_trigger(task)) {
      const auto came = source.take(now);
      if (!came) break;
      releases().trigger(task, *came);
    }
    if (const auto may_come = source.check(now); !may_come && releases().takes_trigger(task)) end_by(may_come.error());
  }
}

void TaskRun::take_callbacks() {
  if (!worker_ || worker_->is_idle()) return;
  while (const auto done = worker_->take_done(executor_.clock().now())) {
    close(callbacks_[done->piece], *done);
    free_callbacks_.push_back(done->piece);
  }
}

void TaskRun::finish_callbacks() {
  if (!worker_) return;
  while (!worker_->is_idle()) {
    waker_.look();
    take_callbacks();
    if (!worker_->is_idle()) wait_for(worker_->next_done());
  }
  add_notes(record_.notes, worker_->notes());
}

bool TaskRun::hears_of_end(TaskId task) const {
  return on_job_end_ != nullptr || tasks_[task.index()].program->hears_of_end();
}

std::optional<std::size_t> TaskRun::free_callback() {
  if (free_callbacks_.empty()) return std::nullopt;
  const std::size_t place = free_callbacks_.back();
  free_callbacks_.pop_back();
  return place;
}

void TaskRun::post(std::size_t place) {
  callbacks_[place].thrown.reset();
  worker_->post(place);
}

void TaskRun::call(Callback& callback) {
  if (callback.kind != Callback::Kind::Input) return call_at_end(callback);
  const TaskId task = callback.ready.task;
  callback.thrown = caught("on_ready", task, [&] { tasks_[task.index()].program->on_ready(*callback.job); });
}

void TaskRun::call_at_end(Callback& callback) {
  const TaskId task = callback.ready.task;
  TaskProgram& program = *tasks_[task.index()].program;
  const Job& job = *callback.job;
  JobRecord& record = callback.ended.record;
  const auto call = [&](std::string_view what, const auto& work) {
    if (auto thrown = caught(what, task, work); thrown && !callback.thrown) callback.thrown = std::move(thrown);
  };
  const JobVerdict verdict = record.verdict;
  record.overwritten = record.overwritten || job.overwritten();
  if (!record.error && !record.overwritten) call("on_finished", [&] { program.on_finished(job); });
  record.overwritten = record.overwritten || job.overwritten();
  callback.read = executor_.clock().now();
  if (verdict == JobVerdict::Missed) call("on_missed", [&] { program.on_missed(job, record); });
  if (callback.kind == Callback::Kind::EndOfDropped && !record.finish)
    call("on_dropped", [&] { program.on_dropped(job, record); });
  if (verdict == JobVerdict::Failed || verdict == JobVerdict::Aborted)
    call("on_failed", [&] { program.on_failed(job, record); });
  if (on_job_end_) call("on_job_end", [&] { on_job_end_(record); });
  if (callback.kind == Callback::Kind::EndOfDropped) return;
  for (HeldSlot& slot : tasks_[task.index()].buffers_of(job.index).slots) call("on_free", [&] { slot.give_back(); });
}

void TaskRun::close(Callback& callback, const CallbackWorker::Done& done) {
  if (callback.thrown) end_by(*callback.thrown);
  if (callback.kind == Callback::Kind::Input) {
    Release& release = tasks_[callback.ready.task.index()].release_of(callback.ready.index);
    release.done = done.ended;
    late_inputs_ += lateness_of_input(callback.ready, release);
    return input_ready(callback.ready);
  }
  EndedJob& ended = callback.ended;
  if (callback.kind == Callback::Kind::EndOfDropped) {
    --dropped_called_;
  } else {
    // Programs read at once on a virtual clock, and it is known only now what happened meanwhile.
    if (!executor_.clock().runs_by_itself())
      ended.record.overwritten = ended.record.overwritten || callback.job->overwritten();
    if (!ended.record.error) ended.record.after = callback.read - epoch_ - *ended.record.finish;
    tasks_[callback.ready.task.index()].hold_of(callback.ready.index).until = done.ended;
    free_buffers(callback.ready);
  }
  ledger_.add(std::move(ended));
}

void TaskRun::wait_for(Duration instant) {
  Clock& clock = executor_.clock();
  const Duration until = clock.runs_by_itself() ? std::min(instant, clock.now() + kLongestSleep) : instant;
  clock.wait_until(until, waker_);
  slept_since_ = free_since_;
  woke_at_ = clock.now();
  overslept_ = woke_at_ - until;
}

Job TaskRun::job_of(const ReadyJob& ready) {
  Job job(executor_, *tasks_[ready.task.index()].task);
  job.index = ready.index;
  job.arrival = ready.arrival;
  job.deadline = ready.deadline;
  if (const JobBuffers& buffers = tasks_[ready.task.index()].buffers_of(ready.index); buffers.index == ready.index) {
    job.buffer_set = buffers.own;
    job.own_choice = buffers.own_choice;
    job.choice = buffers.choice;
    job.slots = buffers.slots;
  }
  job.takes = releases().takes_of(ready);
  return job;
}

void TaskRun::take_buffers(TaskState& state, JobBuffers& buffers) {
  buffers.own = buffers.own_choice = state.sets.take(buffers.index);
  for (std::size_t i = 0; i < state.rings.size(); ++i) {
    buffers.slots[i] = state.rings[i]->take();
    buffers.others[i] = buffers.slots[i].slot();
  }
  if (!state.rings.empty())
    buffers.own_choice =
        state.program->memory()->choice(buffers.own, std::span(buffers.others).first(state.rings.size()));
  buffers.choice = state.reads.empty() ? std::optional(buffers.own_choice) : std::nullopt;
}

void TaskRun::begin_reading(const ReadyJob& ready) {
  TaskState& state = tasks_[ready.task.index()];
  JobBuffers& buffers = state.buffers_of(ready.index);
  if (buffers.choice) return;
  for (std::size_t i = 0; i < state.reads.size(); ++i)
    buffers.others[state.rings.size() + i] = tasks_[state.reads[i].index()].sets.hold_newest();
  buffers.choice = state.program->memory()->choice(buffers.own, buffers.others);
}

std::vector<PreparedBatch>* TaskRun::expected_chunks(TaskId task, std::uint64_t job) {
  TaskState& state = tasks_[task.index()];
  const JobBuffers& released = state.buffers_of(job);
  const bool was_released = released.index == job;
  if (was_released && released.choice) return &state.chunks[*released.choice];
  const auto own = was_released ? std::optional(released.own) : state.sets.next(job);
  if (!own) return nullptr;
  if (state.knows_batches()) return &state.chunks[*own];
  for (std::size_t i = 0; i < state.rings.size(); ++i)
    state.expected[i] = was_released ? released.others[i] : state.rings[i]->newest();
  for (std::size_t i = 0; i < state.reads.size(); ++i)
    state.expected[state.rings.size() + i] = tasks_[state.reads[i].index()].sets.expected_newest();
  return &state.chunks[state.program->memory()->choice(*own, state.expected)];
}

void TaskRun::expect_output(const ReadyJob& ready) {
  TaskState& state = tasks_[ready.task.index()];
  state.sets.expect(state.buffers_of(ready.index).own);
}

void TaskRun::free_buffers(const ReadyJob& ready) {
  TaskState& state = tasks_[ready.task.index()];
  JobBuffers& buffers = state.buffers_of(ready.index);
  state.sets.give_back(buffers.own);
  for (HeldSlot& slot : buffers.slots) slot.give_back();
  for (std::size_t i = 0; buffers.choice && i < state.reads.size(); ++i)
    tasks_[state.reads[i].index()].sets.give_back(buffers.others[state.rings.size() + i]);
  buffers_freed(ready);
}

void TaskRun::end_by(const Error& error) {
  if (!record_.fatal) record_.fatal = error;
  stop();
}

Duration TaskRun::lateness_of_input(const ReadyJob& job, const Release& release) const {
  const Duration latest = job.arrival + tasks_[job.task.index()].task->jitter;
  return std::max(release.done - std::max(latest, release.seen - release.held), Duration{0});
}

void TaskRun::wind_up() {
  for (const TaskId task : external_) sources_[task.index()]->end();
  finish_callbacks();
  ledger_.finish();
  while (const auto job = take_unstarted()) ledger_.keep(record_of(*job, JobVerdict::NeverRun), ledger_.claim());
  for (const auto& [task, at] : releases().suspensions()) record_.suspensions.push_back({task, at - epoch_});
  record_.triggers.resize(tasks_.size());
  for (const TaskId task : external_) {
    record_.triggers[task.index()] = releases().triggers_of(task);
    record_.triggers[task.index()].lost = sources_[task.index()]->lost();
  }
  refuse_requests();
  record_.length = executor_.clock().now() - epoch_;
  for (PreparedBatch& chunk : all_chunks()) executor_.disarm(chunk);
}

EndedJob TaskRun::ended_job(const ReadyJob& job, Duration start, Duration finish, std::optional<Error> error,
                            bool aborted) {
  TaskState& state = tasks_[job.task.index()];
  const Release& release = state.release_of(job.index);
  EndedJob ended;
  JobRecord& record = ended.record = record_of(job, JobVerdict::Met);
  record.ready = release.ready - epoch_;
  record.start = start - epoch_;
  record.finish = finish - epoch_;
  if (*record.finish > record.deadline) record.verdict = JobVerdict::Missed;
  record.late = release.late;
  record.programs = release.held + release.done - release.seen;
  record.error = std::move(error);
  if (record.error) record.verdict = JobVerdict::Failed;
  if (aborted) {
    record.verdict = JobVerdict::Aborted;
    record.error = Error{ErrorCode::Kernel, "aborted: it took longer than its budget; its results are invalid", {}};
  }
  if (const auto choice = state.buffers_of(job.index).choice) ended.chunks = &state.chunks[*choice];
  ended.over = ledger_.over_bound(record);
  ended.late = ended.over > executor_.backend().tolerated_lag() || record.missed();
  return ended;
}

/// Before its start the job waits for the dispatcher and its program: the host's.
JobLoad TaskRun::load_of(const Release& release, Duration length, Duration machine, Duration host) {
  const Duration before = std::max(release.late, Duration{0}) + release.held + release.done - release.seen;
  JobLoad load{before + length, {}, std::clamp(machine, Duration{0}, length)};
  load.host = before + std::clamp(host, Duration{0}, length - load.machine);
  return load;
}

void TaskRun::end_job(EndedJob&& ended, const ReadyJob& ready, const Job& of_user, Duration finish) {
  ended.place = ledger_.claim();
  TaskState& state = tasks_[ready.task.index()];
  const std::size_t own = state.buffers_of(ready.index).own;
  if (ended.record.error)
    state.sets.fail(own);
  else
    state.sets.complete(own, ready.index);
  if (!hears_of_end(ready.task)) {
    free_buffers(ready);
    ledger_.add(std::move(ended));
  } else {
    const auto place = free_callback();
    TUTTI_EXPECTS(place, "there is a callback for each job that is alive");
    Callback& callback = callbacks_[*place];
    callback.kind = Callback::Kind::End;
    state.hold_of(ready.index) = {finish, kNever};
    callback.ready = ready;
    callback.job = of_user;
    callback.ended = std::move(ended);
    post(*place);
  }
  free_since_ = executor_.clock().now();
}

bool TaskRun::was_interrupted() {
  if (interrupted_ == nullptr || !interrupted_->load(std::memory_order_relaxed)) return false;
  record_.interrupted = true;
  return true;
}

// ---- changes

void TaskRun::answer_request() {
  if (changing_ == nullptr) return;
  const Duration now = executor_.clock().now() - epoch_;
  if (now >= arrivals_end_) return;
  if (const auto change = requests_->take_due(now)) record_.changes.push_back({*change, now, answer(*change, now)});
}

void TaskRun::refuse_requests() {
  if (changing_ == nullptr) return;
  const Duration now = executor_.clock().now() - epoch_;
  while (const auto change = requests_->take_due(kNever))
    record_.changes.push_back({*change, now, {Answer::Unknown, "the run ended before"}});
}

ChangeAnswer TaskRun::answer(const TaskChange& change, Duration now) {
  if (change.comes && !changing_->runs(*change.comes) && releases().is_alive(*change.comes))
    return {Answer::Unknown,
            fmt::format("a job of '{}' from before has not ended", planned_.tasks.tasks[change.comes->index()].name)};
  const auto last = change.leaves ? releases().last_arrival(*change.leaves, now) : std::nullopt;
  const ChangeAnswer answered = changing_->ask(change, now, last);
  if (answered.answer != Answer::Schedulable) return answered;
  if (change.leaves) releases().leave(*change.leaves, now);
  if (change.comes) releases().come(*change.comes, now);
  return answered;
}

void TaskRun::note_idle() {
  if (changing_ != nullptr) changing_->idle_at(decided_at_ - epoch_);
}

Duration TaskRun::next_request() const {
  if (changing_ == nullptr || executor_.clock().now() - epoch_ >= arrivals_end_) return kNever;
  const Duration next = std::min(arrivals_end_, requests_->next().value_or(kNever));
  return next > kNever - epoch_ ? kNever : epoch_ + next;
}

TaskRun::NextNews TaskRun::next_news() {
  NextNews news;
  news.at = next_request();
  if (worker_) news.at = std::min(news.at, worker_->next_done());
  const bool awaits = !external_.empty() && releases().awaits_triggers(decided_at_);
  if (awaits) {
    for (const TaskId task : external_)
      if (releases().takes_trigger(task)) news.at = std::min(news.at, sources_[task.index()]->next());
    news.at = std::min(news.at, triggers_end_);
  }
  news.may_come = (worker_ && !worker_->is_idle()) || awaits;
  return news;
}

}  // namespace tutti::internal
