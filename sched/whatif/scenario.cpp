#include "sched/whatif/scenario.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/base/expects.hpp"
#include "model/base/wide.hpp"
#include "sched/analyses/partition_verdict.hpp"
#include "sched/tasks/priority.hpp"
#include "sched/tasks/ready_queue.hpp"

namespace tutti::internal {
namespace {

tl::unexpected<std::string> none(std::string_view why) { return tl::unexpected(std::string(why)); }

constexpr std::string_view kTooLong = "it would have too many jobs, or last for too long";
constexpr std::string_view kNoInterval = "the test that refuses names no interval in which a deadline is missed";
constexpr std::string_view kWithinAnInstant = "it takes a job that starts less than 1 ns before the others come";

/// Positions in the order in which jobs become ready.
std::vector<std::size_t> order_of_readiness(const Scenario& scenario) {
  std::vector<std::size_t> order(scenario.jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return scenario.jobs[i].ready; });
  return order;
}

/// Non-preemptive regions of a job, in order; empty where the whole job is non-preemptive.
std::span<const Duration> regions_of(const TaskTiming& task) {
  return task.regions ? std::span<const Duration>(task.regions->each) : std::span<const Duration>();
}

/// How far a job of a scenario has come.
struct Progress {
  std::size_t regions = 0;  ///< done
  Duration had{};           ///< time on the machine so far

  /// Runs the next region of the job.
  /// @return  its execution time
  Duration advance(const TaskTiming& task, Duration takes) {
    const std::span<const Duration> all = regions_of(task);
    const Duration rest = takes - had;
    const Duration region = regions + 1 < all.size() ? std::min(all[regions], rest) : rest;
    ++regions;
    had += region;
    return region;
  }
  [[nodiscard]] bool is_done(const TaskTiming& task) const { return regions >= regions_of(task).size(); }
};

/// How long the regions in front of the longest take; 0 where that is the first.
Wide before_longest(const TaskTiming& task) {
  Wide before = 0;
  for (const Duration region : regions_of(task)) {
    if (region == task.regions->longest) break;
    before += region.count();
  }
  return before;
}

Duration due(const TaskTiming& task, const ScenarioJob& job) {
  return job.arrival > Duration::max() - task.deadline ? Duration::max() : job.arrival + task.deadline;
}

/// Builds the pattern around the instant at which all become ready together.
class Pattern {
 public:
  Pattern(std::span<const TaskTiming> tasks, const Witness& witness) : tasks_(tasks), witness_(witness) {
    for (const TaskTiming& task : tasks) critical_ = std::max(critical_, Wide{task.jitter.count()});
    if (!witness.blocker) {
      complete_ = to_duration(critical_ + witness.interval.count()).has_value();
      return;
    }
    const TaskTiming& blocker = tasks[witness.blocker->index()];
    const Wide before = before_longest(blocker);
    critical_ = std::max(critical_, before) + 1;
    complete_ = to_duration(critical_ + witness.interval.count()).has_value();
    if (complete_) add(*witness.blocker, critical_ - 1 - before, blocker.wcet);
  }

  /// Adds the jobs of a task that arrive at k T - J after that instant, for k T up to `last`.
  void add_jobs(std::size_t task, Wide last) {
    if (last < 0) return;
    const TaskTiming& timing = tasks_[task];
    if (floor_div(last, timing.period.count()) >= static_cast<Wide>(kMostScenarioJobs)) complete_ = false;
    for (Wide at = 0; complete_ && at <= last; at += timing.period.count())
      add(TaskId{task}, critical_ - timing.jitter.count() + at, timing.wcet);
  }

  [[nodiscard]] const Witness& witness() const { return witness_; }

  [[nodiscard]] CounterExample scenario() && {
    if (!complete_) return none(kTooLong);
    std::ranges::stable_sort(scenario_.jobs, {}, &ScenarioJob::arrival);
    return std::move(scenario_);
  }

 private:
  void add(TaskId task, Wide arrival, Duration takes) {
    if (scenario_.jobs.size() == kMostScenarioJobs) complete_ = false;
    if (!complete_) return;
    const bool blocks = task == witness_.blocker;
    const Wide ready = blocks ? arrival : std::max(arrival, critical_);
    scenario_.jobs.push_back({task, *to_duration(arrival), *to_duration(ready), takes});
  }

  std::span<const TaskTiming> tasks_;
  const Witness& witness_;
  Wide critical_ = 0;
  bool complete_ = true;
  Scenario scenario_;
};

/// Adds all jobs that are ready and due inside the interval.
void add_demand(Pattern& pattern, std::span<const TaskTiming> tasks) {
  for (std::size_t i = 0; i < tasks.size(); ++i)
    pattern.add_jobs(i, Wide{pattern.witness().interval.count()} - (tasks[i].deadline - tasks[i].jitter).count());
}

/// Adds the instances of the task that fails, up to the late one, and all jobs of the tasks above that come before its
/// deadline.
void add_busy_period(Pattern& pattern, std::span<const TaskTiming> tasks, Policy policy) {
  const std::size_t late = pattern.witness().task->index();
  for (const std::size_t task : priority_order(tasks, policy)) {
    const Wide interval = pattern.witness().interval.count();
    if (task == late) return pattern.add_jobs(late, interval - (tasks[late].deadline - tasks[late].jitter).count());
    pattern.add_jobs(task, interval + tasks[task].jitter.count());
  }
}

/// A run of the exploration, rounded down to whole ns. The rounded run may miss no deadline; then the caller drops it.
CounterExample scenario_of(std::span<const ExecutedJob> run, std::span<const TaskTiming> tasks) {
  Scenario scenario;
  for (const ExecutedJob& job : run) {
    const bool has_run = job.finish != kNotYetRun;
    const HalfNs takes = has_run ? job.finish - job.start : 2 * tasks[job.source].wcet.count();
    if (scenario.jobs.size() == kMostScenarioJobs) return none(kTooLong);
    scenario.jobs.push_back(
        {TaskId{job.source}, Duration{job.arrival / 2}, Duration{job.release / 2}, Duration{takes / 2}});
  }
  std::ranges::stable_sort(scenario.jobs, {}, [](const ScenarioJob& job) { return std::pair(job.arrival, job.ready); });
  return scenario;
}

}  // namespace

std::optional<Miss> first_miss(std::span<const TaskTiming> tasks, Policy policy, const Scenario& scenario) {
  for (const ScenarioJob& job : scenario.jobs)
    TUTTI_EXPECTS(job.takes.has_value(), "with one job at a time, each takes the time that it is given");
  const std::vector<std::size_t> order = order_of_readiness(scenario);
  ReadyQueue ready(policy, order.size());
  std::vector<Progress> progress(order.size());
  Duration now{};
  for (std::size_t next = 0; next < order.size() || !ready.empty();) {
    if (ready.empty()) now = std::max(now, scenario.jobs[order[next]].ready);
    for (; next < order.size() && scenario.jobs[order[next]].ready <= now; ++next) {
      const ScenarioJob& job = scenario.jobs[order[next]];
      const TaskTiming& task = tasks[job.task.index()];
      ready.push({job.task, order[next], job.arrival, due(task, job), task.period, task.deadline, task.priority});
    }
    const ReadyJob job = ready.pop();
    const TaskTiming& task = tasks[job.task.index()];
    const Duration region = progress[job.index].advance(task, *scenario.jobs[job.index].takes);
    if (region > Duration::max() - now) return std::nullopt;  // beyond the longest time
    now += region;
    if (!progress[job.index].is_done(task)) ready.push(job);
    if (!progress[job.index].is_done(task) || now <= job.deadline) continue;
    const auto before = std::ranges::count(std::span(scenario.jobs).first(job.index), job.task, &ScenarioJob::task);
    return Miss{job.task, static_cast<std::uint64_t>(before), now, job.deadline};
  }
  return std::nullopt;
}

namespace {

/// The scenario, if a deadline is missed in it.
CounterExample verified(std::span<const TaskTiming> tasks, Policy policy, CounterExample scenario) {
  if (scenario && !first_miss(tasks, policy, *scenario)) return none(kWithinAnInstant);
  return scenario;
}

}  // namespace

CounterExample counter_example(std::span<const TaskTiming> tasks, Policy policy, const Verdict& verdict) {
  if (verdict.answer != Answer::NotSchedulable) return none("");
  if (!verdict.late_run.empty()) return verified(tasks, policy, scenario_of(verdict.late_run, tasks));
  const auto unknown = [](const TaskTiming& task) { return task.regions && task.regions->each.empty(); };
  if (!verdict.witness) return none(kNoInterval);
  if (std::ranges::any_of(tasks, unknown)) return none("the pieces of its jobs are not known one by one");
  Pattern pattern(tasks, *verdict.witness);
  if (policy == Policy::Edf) {
    add_demand(pattern, tasks);
  } else {
    TUTTI_EXPECTS(verdict.witness->task.has_value(), "under fixed priorities a witness names the task that is late");
    add_busy_period(pattern, tasks, policy);
  }
  return verified(tasks, policy, std::move(pattern).scenario());
}

CounterExample counter_example(std::span<const TaskTiming> tasks, Policy policy, std::span<const Verdict> verdicts) {
  if (policy == Policy::CwEdf) return none("under cw_edf it is the time table that has a late job, in every run");
  CounterExample found = none("");
  for (const Verdict& verdict : verdicts) {
    CounterExample other = counter_example(tasks, policy, verdict);
    if (other) return other;
    if (!other.error().empty() && (found.error().empty() || verdict.witness)) found = std::move(other);
  }
  return found;
}

namespace {

/// The jobs of a refusal, each ready as late as it may be, so that their windows open together.
CounterExample jobs_of(const OverlapRefusal& refusal, std::span<const TaskTiming> tasks) {
  const auto in_reach = [&](std::size_t task, Duration ready) {
    return ready <= Duration::max() - tasks[task].deadline;
  };
  if (refusal.late_alone) {
    const Duration ready = tasks[refusal.late_alone->index()].jitter;
    if (!in_reach(refusal.late_alone->index(), ready)) return none(kTooLong);
    return Scenario{{{*refusal.late_alone, {}, ready}}};
  }
  if (!refusal.witness) return none(kTooLong);
  Scenario scenario;
  if (const auto& blocker = refusal.witness->blocker) {
    if (!refusal.demand->at_once[blocker->index()])
      return none("the job that is in the way comes there on its way, at an instant that costs decide");
    if (!in_reach(blocker->index(), Duration{0})) return none(kTooLong);
    if (refusal.witness->load - refusal.witness->interval <= Duration{1}) return none(kWithinAnInstant);
    scenario.jobs.push_back({*blocker, {}, {}});
  }
  for (const TaskLoad& load : refusal.witness->by_task) {
    const std::size_t task = load.task.index();
    const std::int64_t jobs = load.load / refusal.demand->timings[task].wcet;
    if (jobs > static_cast<std::int64_t>(kMostScenarioJobs - scenario.jobs.size())) return none(kTooLong);
    const Duration ready = refusal.demand->ready[task];
    for (std::int64_t k = 0; k < jobs; ++k) {
      const auto arrival = to_duration(refusal.demand->arrival[task].count() + Wide{k} * tasks[task].period.count());
      if (!arrival || !in_reach(task, std::max(*arrival, ready))) return none(kTooLong);
      scenario.jobs.push_back({load.task, *arrival, std::max(*arrival, ready)});
    }
  }
  std::ranges::stable_sort(scenario.jobs, {}, &ScenarioJob::arrival);
  return scenario;
}

}  // namespace

CounterExample counter_example(const AdmissionVerdict& refused, Policy policy) {
  CounterExample found = none("");
  if (refused.overlap) {
    for (const OverlapRefusal& refusal : refused.overlap->refusals)
      if (found = jobs_of(refusal, refused.timings); found) return found;
    return found;
  }
  for (std::size_t i = 0; i < refused.partitions.size(); ++i) {
    const Partition& partition = refused.partitions[i];
    std::vector<Verdict> tests;
    for (const Verdict& test : refused.tests)
      if (test.partition == i) tests.push_back(in_partition(test, partition));
    CounterExample here = counter_example(timings_of(partition, refused.timings), policy, tests);
    if (!here && here.error().empty()) continue;
    found = std::move(here);
    if (!found) continue;
    for (ScenarioJob& job : found->jobs) job.task = partition.tasks[job.task.index()];
    return found;
  }
  return found;
}

}  // namespace tutti::internal
