#include "runtime/dispatch/job_scheduler.hpp"

#include <algorithm>
#include <utility>

#include "model/base/expects.hpp"
#include "runtime/triggers/drawn_jitter.hpp"

namespace tutti::internal {
namespace {

std::size_t most_alive(const std::vector<ScheduledTask>& tasks) {
  std::size_t alive = 0;
  for (const ScheduledTask& task : tasks) alive += task.buffer_sets;
  return alive;
}

Action act(Action::Kind kind, const ReadyJob& job = {}) {
  Action action;
  action.kind = kind;
  action.job = job;
  return action;
}

Action until(Action::Kind kind, Duration instant) {
  Action action;
  action.kind = kind;
  action.until = instant;
  return action;
}

}  // namespace

Duration JobScheduler::TaskState::arrival_of(std::uint64_t index) const {
  if (!script.empty()) return script[index].arrival;
  if (release.is_external()) return (index == released && triggered ? triggered : last_triggered).value_or(Duration{0});
  return first_arrival + timing.period * static_cast<std::int64_t>(index - first_index);
}

JobScheduler::JobScheduler(Policy policy, Arrivals arrivals, std::vector<ScheduledTask> tasks, std::uint64_t seed)
    : arrivals_(arrivals), seed_(seed), due_(tasks.size()), silent_(tasks.size()), ready_(policy, most_alive(tasks)) {
  const std::size_t alive = most_alive(tasks);
  late_.reserve(alive);
  running_.reserve(alive);
  suspensions_.reserve(tasks.size());
  for (ScheduledTask& task : tasks) {
    follows_scenario_ = follows_scenario_ || !task.script.empty();
    TaskState& state = tasks_.emplace_back();
    static_cast<ScheduledTask&>(state) = std::move(task);
    state.set_due.resize(state.buffer_sets);
    state.released = state.first_index = state.first_job;
    state.jobs += std::min(state.first_job, UINT64_MAX - state.jobs);  // from here on the index behind the last one
    if (state.release.is_external()) external_.push_back(tasks_.size() - 1);
  }
}

void JobScheduler::begin(Duration epoch) {
  epoch_ = epoch;
  for (std::size_t task = 0; task < tasks_.size(); ++task) schedule_next(task);
  for (const std::size_t task : external_) expect_trigger(task, epoch);
}

Action JobScheduler::step(const Event& event) {
  note_silence(event.now);
  take(event);
  const Action action = decide(event);
  const bool releases = action.kind == Action::Kind::Release || action.kind == Action::Kind::Drop;
  if (!releases) releasing_by_.reset();
  return action;
}

Action JobScheduler::decide(const Event& event) {
  if (running_.empty()) return event.kind == Event::Kind::JobClosed ? act(Action::Kind::Free) : decide_free(event.now);
  Running& job = running_.back();
  job.failed = job.failed || stopped_;
  return job.phase == Phase::Ended || stopped_ ? decide_end(job, event.now) : decide_at_boundary(job, event.now);
}

void JobScheduler::take(const Event& event) {
  switch (event.kind) {
    case Event::Kind::Time: break;
    case Event::Kind::RegionEnded: {
      Running& job = running_.back();
      job.phase = Phase::AtBoundary;
      job.had += hold_of_regions(job);
      ++job.regions;
      break;
    }
    case Event::Kind::JobEnded: running_.back().phase = Phase::Ended; break;
    case Event::Kind::JobFailed:
      running_.back().phase = Phase::Ended;
      running_.back().failed = true;
      break;
    case Event::Kind::JobClosed: close(event.now); break;
  }
}

/// A job that took too long has its consequence.
void JobScheduler::close(Duration now) {
  const Running job = running_.back();
  running_.pop_back();
  TaskState& task = tasks_[job.job.task.index()];
  const bool over = job.aborted || job.own(now) > task.budget();
  task.over_in_a_row = over ? task.over_in_a_row + 1 : 0;
  if (over && task.overrun.policy == OverrunPolicy::SkipNext) task.skips_next = true;
  if (task.overrun.suspend_after > 0 && task.over_in_a_row >= task.overrun.suspend_after && !task.suspended) {
    task.suspended = true;
    suspensions_.push_back({job.job.task, now});
    task.jobs = task.released;
    task.next_ready = kNever;
    silent_.set(job.job.task.index(), kNever);
  }
  update_due(job.job.task.index());
}

void JobScheduler::buffers_free(const ReadyJob& job) {
  tasks_[job.task.index()].set_due[buffer_set_of(job)].reset();
  update_due(job.task.index());
}

// ---- triggers

void JobScheduler::trigger(TaskId id, Duration at) {
  TaskState& task = tasks_[id.index()];
  TUTTI_EXPECTS(task.release.is_external() && !task.triggered, "a trigger is taken once the last one has its job");
  const Duration came = at - epoch_;
  if (task.released == task.jobs || came >= end_) return;
  ++task.triggers.seen;
  expect_trigger(id.index(), at);
  Duration arrival = std::max(came - task.timing.jitter, Duration{0});
  if (task.last_triggered) {
    const Duration last = *task.last_triggered;
    arrival = std::max(arrival, last > kNever - task.timing.period ? kNever : last + task.timing.period);
  }
  if (arrival > came) {  // GCRA: the cell does not conform
    const Duration early = arrival - came;
    task.triggers.most_early = std::max(task.triggers.most_early, early);
    if (task.release.early == EarlyTriggers::Drop || early >= task.timing.period) {
      ++task.triggers.dropped;
      return;
    }
    ++task.triggers.deferred;
  }
  task.triggered = arrival;
  task.triggered_ready = std::max(arrival, came);
  schedule_next(id.index());
}

bool JobScheduler::awaits_triggers(Duration now) const {
  return now - epoch_ < end_ &&
         std::ranges::any_of(external_, [&](std::size_t task) { return tasks_[task].released != tasks_[task].jobs; });
}

/// Counts the triggers that are missing by now.
void JobScheduler::note_silence(Duration now) {
  while (silent_.earliest() <= now && silent_.earliest() != kNever) {
    const std::size_t task = silent_.first();
    ++tasks_[task].triggers.missing;
    expect_trigger(task, silent_.earliest());
  }
}

/// The next trigger of a task is missing some time from now on.
void JobScheduler::expect_trigger(std::size_t place, Duration from) {
  const TaskState& task = tasks_[place];
  const Duration after = task.release.missing_after;
  const bool none_comes = after <= Duration{0} || task.released == task.jobs || from > kNever - after ||
                          (end_ != kNever && from + after - epoch_ >= end_);
  silent_.set(place, none_comes ? kNever : from + after);
}

// ---- decisions

Action JobScheduler::decide_free(Duration now) {
  if (stopped_) return until(Action::Kind::Idle, kNever);
  if (auto action = release_due(now)) return *action;
  set_late_aside(now);
  if (!ready_.empty() || !late_.empty()) return start(now);
  return until(Action::Kind::Idle, std::min(due_.earliest(), silent_.earliest()));
}

Action JobScheduler::decide_at_boundary(Running& job, Duration now) {
  TUTTI_EXPECTS(job.phase == Phase::AtBoundary, "the running job has come to a boundary or to its end");
  const TaskState& task = tasks_[job.job.task.index()];
  if (!job.lent_from) {
    if (task.overrun.policy == OverrunPolicy::Abort && job.own(now) > task.budget()) {
      job.aborted = true;
      return decide_end(job, now);
    }
    const Duration hold = job.start + job.elsewhere + job.had;
    if (!task.script.empty() && task.timing.regions && now < hold) return until(Action::Kind::Hold, hold);
  }
  if (task.timing.regions) {
    if (!job.lent_from) job.lent_from = now;
    if (auto action = release_due(now)) return *action;
    if (has_more_urgent_than(job.job, now)) return start(now);
    job.elsewhere += now - *job.lent_from;
    job.lent_from.reset();
  }
  job.phase = Phase::InRegion;
  return act(Action::Kind::Continue, job.job);
}

/// Admission under periodic arrivals relies on the best case: a job that leaves the machine early, since its kernel
/// failed or for any other reason, could make another late. In a scenario a job has the machine for the time that it is
/// given.
Action JobScheduler::decide_end(Running& job, Duration now) {
  const TaskState& task = tasks_[job.job.task.index()];
  job.phase = Phase::Ended;
  if (job.lent_from) {
    job.elsewhere += now - *job.lent_from;
    job.lent_from.reset();
  }
  if (!job.finish) {
    const auto takes = takes_of(job.job);
    const Duration hold = job.start + job.elsewhere + takes.value_or(Duration{0});
    if (takes && now < hold) return until(Action::Kind::Hold, hold);
    job.finish = now;
  }
  const Duration hold = job.start + job.elsewhere + task.timing.best_case;
  if (arrivals_ == Arrivals::Periodic && !stopped_ && now < hold) return until(Action::Kind::Hold, hold);
  return act(Action::Kind::Finish, job.job);
}

/// Jobs that become ready meanwhile wait for the next time: a release may take longer than a period.
std::optional<Action> JobScheduler::release_due(Duration now) {
  if (!releasing_by_) releasing_by_ = now;
  if (due_.earliest() > *releasing_by_ || due_.earliest() == kNever) return std::nullopt;
  const std::size_t place = due_.first();
  TaskState& task = tasks_[place];
  const Duration arrival = epoch_ + task.arrival_of(task.released);
  const Duration deadline = arrival > kNever - task.timing.deadline ? kNever : arrival + task.timing.deadline;
  const ReadyJob released{TaskId(place),        task.released,       arrival, deadline, task.timing.period,
                          task.timing.deadline, task.timing.priority};
  Action action = act(Action::Kind::Release, released);
  action.ready = task.next_ready;
  std::optional<Duration>& set_due = task.set_due[buffer_set_of(released)];
  if (std::exchange(task.skips_next, false)) {
    action.kind = Action::Kind::Drop;
    action.reason = DropReason::Skipped;
  } else if (set_due) {  // only where jobs take longer than admitted: real time, or a broken machine
    action.kind = Action::Kind::Drop;
  } else {
    set_due = deadline;
  }
  if (task.triggered) task.last_triggered = std::exchange(task.triggered, std::nullopt);
  ++task.released;
  if (task.release.is_external() && task.released == task.jobs) silent_.set(place, kNever);
  schedule_next(place);
  return action;
}

Action JobScheduler::start(Duration now) {
  Running& started = running_.emplace_back();
  started.job = take_ready();
  started.start = now;
  return act(Action::Kind::Start, started.job);
}

/// @pre a job is ready
ReadyJob JobScheduler::take_ready() {
  if (!ready_.empty()) return ready_.pop();
  const ReadyJob job = late_.front();
  late_.erase(late_.begin());
  return job;
}

bool JobScheduler::has_more_urgent_than(const ReadyJob& job, Duration now) {
  set_late_aside(now);
  return !ready_.empty() && (is_late(job, now) || ready_.has_more_urgent_than(job));
}

void JobScheduler::set_late_aside(Duration now) {
  while (!ready_.empty() && is_late(ready_.next(), now)) late_.push_back(ready_.pop());
}

/// A region of a scenario's job has the machine for its full length, until the job's time is over.
Duration JobScheduler::hold_of_regions(Running& job) const {
  const TaskState& task = tasks_[job.job.task.index()];
  if (task.script.empty() || !task.timing.regions || job.regions >= task.timing.regions->each.size()) return {};
  return std::min(task.timing.regions->each[job.regions], task.script[job.job.index].takes - job.had);
}

// ---- what comes next

std::optional<Duration> JobScheduler::takes_of(const ReadyJob& job) const {
  const auto& script = tasks_[job.task.index()].script;
  return script.empty() ? std::nullopt : std::optional(script[job.index].takes);
}

std::optional<ReadyJob> JobScheduler::take_unstarted() {
  if (ready_.empty() && late_.empty()) return std::nullopt;
  return take_ready();
}

std::optional<JobScheduler::NextJob> JobScheduler::next_job() const {
  const auto of = [](const ReadyJob& job) { return NextJob{job.task, job.index}; };
  if (!ready_.empty()) return of(ready_.next());
  if (!late_.empty()) return of(late_.front());
  if (due_.earliest() == kNever) return std::nullopt;
  return NextJob{TaskId(due_.first()), tasks_[due_.first()].released};
}

/// Time from a job's arrival until it is ready.
Duration JobScheduler::delay_of(std::size_t task, std::uint64_t index) const {
  const TaskState& state = tasks_[task];
  if (!state.script.empty()) return state.script[index].ready - state.script[index].arrival;
  return drawn_jitter(state.timing.jitter, jitter_seed(seed_, task), index);
}

void JobScheduler::schedule_next(std::size_t task) {
  TaskState& state = tasks_[task];
  state.next_ready = kNever;
  if (state.release.is_external()) {
    if (state.triggered && state.released != state.jobs) state.next_ready = epoch_ + state.triggered_ready;
    return update_due(task);
  }
  const bool overflows = state.script.empty() && state.released > state.first_index &&
                         state.arrival_of(state.released - 1) > kNever - state.timing.period;
  if (state.released != state.jobs && !overflows) {
    const Duration arrival = state.arrival_of(state.released);
    const Duration time_left = kNever - epoch_ - arrival;
    if (arrival < end_ && time_left >= state.timing.deadline)  // else the clock would overflow before it is due
      state.next_ready = epoch_ + arrival + std::min(delay_of(task, state.released), time_left);
  }
  update_due(task);
}

/// A job whose buffers are those of a job that has not ended waits for that one until it is late, and is dropped then;
/// in a scenario, where jobs may be late, it waits until that one ends.
void JobScheduler::update_due(std::size_t task) {
  const TaskState& state = tasks_[task];
  const auto& holder = state.set_due[state.released % state.set_due.size()];
  Duration instant = state.next_ready;
  if (holder && instant != kNever && !state.skips_next) {
    if (follows_scenario_ || *holder == kNever) {
      instant = kNever;
    } else {
      instant = std::max(instant, *holder + Duration{1});
    }
  }
  due_.set(task, instant);
}

// ---- tasks that come and go

std::uint64_t JobScheduler::arrived_by(const TaskState& task, Duration now) const {
  const bool one_more = task.next_ready != kNever && task.arrival_of(task.released) <= now;
  return task.released + (one_more ? 1 : 0);
}

bool JobScheduler::is_alive(TaskId task) const {
  const TaskState& state = tasks_[task.index()];
  return state.released != state.jobs ||
         std::ranges::any_of(state.set_due, [](const auto& due) { return due.has_value(); });
}

std::optional<Duration> JobScheduler::last_arrival(TaskId task, Duration now) const {
  const TaskState& state = tasks_[task.index()];
  const std::uint64_t arrived = arrived_by(state, now);
  return arrived == state.first_index ? std::nullopt : std::optional(state.arrival_of(arrived - 1));
}

void JobScheduler::leave(TaskId task, Duration now) {
  TaskState& state = tasks_[task.index()];
  state.jobs = arrived_by(state, now);
  if (state.jobs == state.released) state.next_ready = kNever;
  silent_.set(task.index(), kNever);
  update_due(task.index());
}

void JobScheduler::come(TaskId task, Duration now) {
  TaskState& state = tasks_[task.index()];
  state.jobs = UINT64_MAX;
  state.first_index = state.released;
  state.first_arrival = now;
  state.suspended = false;
  state.skips_next = false;
  state.over_in_a_row = 0;
  state.triggered.reset();
  state.last_triggered.reset();
  if (state.release.is_external()) expect_trigger(task.index(), epoch_ + now);
  suspensions_.reserve(suspensions_.size() + tasks_.size());
  schedule_next(task.index());
}

}  // namespace tutti::internal
