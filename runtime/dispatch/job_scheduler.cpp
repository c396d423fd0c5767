#include "runtime/dispatch/job_scheduler.hpp"

#include <algorithm>
#include <utility>

#include "model/base/expects.hpp"

namespace tutti::internal {
namespace {

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

Action release_of(const DueJob& due) {
  Action action = act(due.dropped ? Action::Kind::Drop : Action::Kind::Release, due.job);
  action.ready = due.ready;
  action.reason = due.dropped.value_or(DropReason::NoBuffers);
  return action;
}

JobScheduler::JobScheduler(Policy policy, Arrivals arrivals, std::vector<ScheduledTask> tasks, std::uint64_t seed)
    : releases_(std::move(tasks), seed), arrivals_(arrivals), ready_(policy, releases_.most_alive()) {
  late_.reserve(releases_.most_alive());
  running_.reserve(releases_.most_alive());
  if (policy != Policy::CwEdf || releases_.follows_scenario()) return;
  std::vector<TaskTiming> timings;
  for (std::size_t i = 0; i < releases_.tasks(); ++i) {
    const ScheduledTask& task = releases_.task(TaskId{i});
    timings.push_back(task.timing);
    timings.back().offset = task.first_arrival;
    first_jobs_.push_back(task.first_job);
  }
  if (timings.empty()) return;
  table_.emplace(timings);
  advance_table();
}

void JobScheduler::advance_table() {
  planned_ = table_->next();
  planned_.index += first_jobs_[planned_.task.index()];
}

Action JobScheduler::step(const Event& event) {
  releases_.note_silence(event.now);
  take(event);
  const Action action = decide(event);
  const bool releases = action.kind == Action::Kind::Release || action.kind == Action::Kind::Drop;
  if (!releases) releases_.all_taken();
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
  const Duration budget = releases_.task(job.job.task).budget();
  releases_.ended(job.job.task, job.aborted || job.own(now) > budget, now);
}

// ---- decisions

Action JobScheduler::decide_free(Duration now) {
  if (stopped_) return until(Action::Kind::Idle, kNever);
  if (auto action = release_due(now)) return *action;
  if (table_) return decide_by_table(now);
  set_late_aside(now);
  if (!ready_.empty() || !late_.empty()) return start(now);
  return until(Action::Kind::Idle, releases_.next_instant());
}

Action JobScheduler::decide_by_table(Duration now) {
  if (ready_.empty()) return until(Action::Kind::Idle, releases_.next_instant());
  const auto is_planned = [&](const ReadyJob& job) { return job.task == planned_.task && job.index == planned_.index; };
  // A job whose place in the table is over: it was taken as dropped.
  for (const ReadyJob& job : ready_.jobs())
    if (!is_planned(job) && job.index < first_jobs_[job.task.index()] + table_->next_index(job.task.index()))
      return start(*ready_.take(job.task, job.index), now, now);
  // Ends at a job that is ready at the latest, since the table has each of them.
  const auto planned_is_ready = [&] { return std::ranges::any_of(ready_.jobs(), is_planned); };
  while (!planned_is_ready() && releases_.is_left_out(planned_.task, planned_.index)) advance_table();
  if (!planned_is_ready()) return until(Action::Kind::Idle, releases_.next_instant());
  const Duration planned = releases_.epoch() + planned_.start;
  if (now < planned) return until(Action::Kind::Idle, std::min(planned, releases_.next_instant()));
  const ReadyJob job = *ready_.take(planned_.task, planned_.index);
  advance_table();
  return start(job, now, planned);
}

Action JobScheduler::decide_at_boundary(Running& job, Duration now) {
  TUTTI_EXPECTS(job.phase == Phase::AtBoundary, "the running job has come to a boundary or to its end");
  const ScheduledTask& task = releases_.task(job.job.task);
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
/// failed or for any other reason, could make another late. A time table has its instants. In a scenario a job has the
/// machine for the time that it is given.
Action JobScheduler::decide_end(Running& job, Duration now) {
  const ScheduledTask& task = releases_.task(job.job.task);
  job.phase = Phase::Ended;
  if (job.lent_from) {
    job.elsewhere += now - *job.lent_from;
    job.lent_from.reset();
  }
  if (!job.finish) {
    const auto takes = releases_.takes_of(job.job);
    const Duration hold = job.start + job.elsewhere + takes.value_or(Duration{0});
    if (takes && now < hold) return until(Action::Kind::Hold, hold);
    job.finish = now;
  }
  const Duration hold = job.start + job.elsewhere + task.timing.best_case;
  if (arrivals_ == Arrivals::Periodic && !table_ && !stopped_ && now < hold) return until(Action::Kind::Hold, hold);
  return act(Action::Kind::Finish, job.job);
}

std::optional<Action> JobScheduler::release_due(Duration now) {
  const auto due = releases_.take_due(now);
  if (!due) return std::nullopt;
  return release_of(*due);
}

Action JobScheduler::start(const ReadyJob& job, Duration now, Duration planned) {
  Running& started = running_.emplace_back();
  started.job = job;
  started.start = now;
  Action action = act(Action::Kind::Start, job);
  action.until = planned;
  return action;
}

/// @pre a job is ready
ReadyJob JobScheduler::take_ready() {
  auto first = late_.begin();
  if (!ready_.empty()) {
    const ReadyJob& next = ready_.next();
    first = is_in_order(next) ? std::ranges::find(late_, next.task, &ReadyJob::task) : late_.end();
    if (first == late_.end()) return ready_.pop();
  }
  const ReadyJob job = *first;
  late_.erase(first);
  return job;
}

bool JobScheduler::has_more_urgent_than(const ReadyJob& job, Duration now) {
  set_late_aside(now);
  if (ready_.empty()) return false;
  const ReadyJob& next = ready_.next();
  const auto is_before = [&](const Running& running) { return running.job.task == next.task; };
  if (is_in_order(next) && std::ranges::any_of(running_, is_before)) return false;
  return is_late(job, now) || ready_.has_more_urgent_than(job);
}

void JobScheduler::set_late_aside(Duration now) {
  while (!ready_.empty() && is_late(ready_.next(), now)) late_.push_back(ready_.pop());
}

std::optional<Duration> JobScheduler::region_end() const {
  const Running& job = running_.back();
  const auto takes = releases_.takes_of(job.job);
  if (!takes) return std::nullopt;
  const auto& regions = releases_.task(job.job.task).timing.regions;
  const bool is_last = !regions || job.regions + 1 >= regions->each.size();  // it has all that is left
  return job.start + job.elsewhere + (is_last ? *takes : job.had + hold_of_regions(job));
}

/// A region of a scenario's job has the machine for its full length, until the job's time is over.
Duration JobScheduler::hold_of_regions(const Running& job) const {
  const ScheduledTask& task = releases_.task(job.job.task);
  if (task.script.empty() || !task.timing.regions || job.regions >= task.timing.regions->each.size()) return {};
  return std::min(task.timing.regions->each[job.regions], *task.script[job.job.index].takes - job.had);
}

// ---- what comes next

std::optional<ReadyJob> JobScheduler::take_unstarted() {
  if (ready_.empty() && late_.empty()) return std::nullopt;
  return take_ready();
}

std::optional<JobReleases::NextJob> JobScheduler::next_job() const {
  const auto of = [](const ReadyJob& job) { return JobReleases::NextJob{job.task, job.index}; };
  if (table_ && !releases_.is_left_out(planned_.task, planned_.index))
    return JobReleases::NextJob{planned_.task, planned_.index};
  if (!ready_.empty()) return of(ready_.next());
  if (!late_.empty()) return of(late_.front());
  return releases_.next_job();
}

}  // namespace tutti::internal
