#include "runtime/dispatch/job_releases.hpp"

#include <algorithm>
#include <utility>

#include "model/base/expects.hpp"
#include "runtime/triggers/drawn_jitter.hpp"

namespace tutti::internal {

Duration JobReleases::TaskState::arrival_of(std::uint64_t index) const {
  if (!script.empty()) return script[index].arrival;
  if (release.is_external()) return (index == released && triggered ? triggered : last_triggered).value_or(Duration{0});
  return first_arrival + timing.period * static_cast<std::int64_t>(index - first_index);
}

JobReleases::JobReleases(std::vector<ScheduledTask> tasks, std::uint64_t seed)
    : seed_(seed), due_(tasks.size()), silent_(tasks.size()) {
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

std::size_t JobReleases::most_alive() const {
  std::size_t alive = 0;
  for (const TaskState& task : tasks_) alive += task.buffer_sets;
  return alive;
}

void JobReleases::begin(Duration epoch) {
  epoch_ = epoch;
  for (std::size_t task = 0; task < tasks_.size(); ++task) schedule_next(task);
  for (const std::size_t task : external_) expect_trigger(task, epoch);
}

std::optional<DueJob> JobReleases::take_due(Duration now) {
  if (!taking_by_) taking_by_ = now;
  if (due_.earliest() > *taking_by_ || due_.earliest() == kNever) return std::nullopt;
  const std::size_t place = due_.first();
  TaskState& task = tasks_[place];
  const Duration arrival = epoch_ + task.arrival_of(task.released);
  const Duration deadline = arrival > kNever - task.timing.deadline ? kNever : arrival + task.timing.deadline;
  DueJob due{
      {TaskId(place), task.released, arrival, deadline, task.timing.period, task.timing.deadline, task.timing.priority},
      task.next_ready};
  std::optional<Duration>& set_due = task.set_due[buffer_set_of(due.job)];
  if (std::exchange(task.skips_next, false)) {
    due.dropped = DropReason::Skipped;
  } else if (set_due) {  // only where jobs take longer than admitted: real time, or a broken machine
    due.dropped = DropReason::NoBuffers;
  } else {
    set_due = deadline;
  }
  task.dropped = (task.dropped << 1U) | (due.dropped ? 1U : 0U);
  if (task.triggered) task.last_triggered = std::exchange(task.triggered, std::nullopt);
  ++task.released;
  if (task.release.is_external() && task.released == task.jobs) silent_.set(place, kNever);
  schedule_next(place);
  return due;
}

bool JobReleases::is_left_out(TaskId id, std::uint64_t index) const {
  const TaskState& task = tasks_[id.index()];
  if (index < task.released) {
    const std::uint64_t after = task.released - 1 - index;
    return after >= 64 || ((task.dropped >> after) & 1U) != 0;
  }
  return index >= task.jobs || task.next_ready == kNever || task.arrival_of(index) >= end_;
}

std::optional<JobReleases::NextJob> JobReleases::next_job() const {
  if (due_.earliest() == kNever) return std::nullopt;
  return NextJob{TaskId(due_.first()), tasks_[due_.first()].released};
}

std::optional<JobReleases::NextJob> JobReleases::certain_job() const {
  const auto next = next_job();
  if (!next || !external_.empty() || due_.second() == due_.earliest()) return std::nullopt;
  const TaskState& task = tasks_[next->task.index()];
  const bool dropped = task.skips_next || task.set_due[next->index % task.set_due.size()];
  return dropped ? std::nullopt : next;
}

void JobReleases::ended(TaskId id, bool over_budget, Duration now) {
  TaskState& task = tasks_[id.index()];
  task.over_in_a_row = over_budget ? task.over_in_a_row + 1 : 0;
  if (over_budget && task.overrun.policy == OverrunPolicy::SkipNext) task.skips_next = true;
  if (task.overrun.suspend_after > 0 && task.over_in_a_row >= task.overrun.suspend_after && !task.suspended) {
    task.suspended = true;
    suspensions_.push_back({id, now});
    task.jobs = task.released;
    task.next_ready = kNever;
    silent_.set(id.index(), kNever);
  }
  update_due(id.index());
}

void JobReleases::buffers_free(const ReadyJob& job) {
  tasks_[job.task.index()].set_due[buffer_set_of(job)].reset();
  update_due(job.task.index());
}

std::optional<Duration> JobReleases::takes_of(const ReadyJob& job) const {
  const auto& script = tasks_[job.task.index()].script;
  return script.empty() ? std::nullopt : script[job.index].takes;
}

// ---- triggers

void JobReleases::trigger(TaskId id, Duration at) {
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

bool JobReleases::awaits_triggers(Duration now) const {
  return now - epoch_ < end_ &&
         std::ranges::any_of(external_, [&](std::size_t task) { return tasks_[task].released != tasks_[task].jobs; });
}

void JobReleases::note_silence(Duration now) {
  while (silent_.earliest() <= now && silent_.earliest() != kNever) {
    const std::size_t task = silent_.first();
    ++tasks_[task].triggers.missing;
    expect_trigger(task, silent_.earliest());
  }
}

/// The next trigger of a task is missing some time from now on.
void JobReleases::expect_trigger(std::size_t place, Duration from) {
  const TaskState& task = tasks_[place];
  const Duration after = task.release.missing_after;
  const bool none_comes = after <= Duration{0} || task.released == task.jobs || from > kNever - after ||
                          (end_ != kNever && from + after - epoch_ >= end_);
  silent_.set(place, none_comes ? kNever : from + after);
}

// ---- what comes next

/// Time from a job's arrival until it is ready.
Duration JobReleases::delay_of(std::size_t task, std::uint64_t index) const {
  const TaskState& state = tasks_[task];
  if (!state.script.empty()) return state.script[index].ready - state.script[index].arrival;
  return drawn_jitter(state.timing.jitter, jitter_seed(seed_, task), index);
}

void JobReleases::schedule_next(std::size_t task) {
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
void JobReleases::update_due(std::size_t task) {
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

std::uint64_t JobReleases::arrived_by(const TaskState& task, Duration now) const {
  const bool one_more = task.next_ready != kNever && task.arrival_of(task.released) <= now;
  return task.released + (one_more ? 1 : 0);
}

bool JobReleases::is_alive(TaskId task) const {
  const TaskState& state = tasks_[task.index()];
  return state.released != state.jobs ||
         std::ranges::any_of(state.set_due, [](const auto& due) { return due.has_value(); });
}

std::optional<Duration> JobReleases::last_arrival(TaskId task, Duration now) const {
  const TaskState& state = tasks_[task.index()];
  const std::uint64_t arrived = arrived_by(state, now);
  return arrived == state.first_index ? std::nullopt : std::optional(state.arrival_of(arrived - 1));
}

void JobReleases::leave(TaskId task, Duration now) {
  TaskState& state = tasks_[task.index()];
  state.jobs = arrived_by(state, now);
  if (state.jobs == state.released) state.next_ready = kNever;
  silent_.set(task.index(), kNever);
  update_due(task.index());
}

void JobReleases::come(TaskId task, Duration now) {
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
