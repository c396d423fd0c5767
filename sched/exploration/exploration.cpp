#include "sched/exploration/exploration.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sched/exploration/schedule_search.hpp"
#include "sched/tasks/critical_window.hpp"

namespace tutti::internal {
namespace {

Duration rounded_down(HalfNs time) { return Duration{time / 2}; }
/// Also exact for the supremum of an open interval.
Duration rounded_up(HalfNs time) { return Duration{(time + 1) / 2}; }

Answer answer_of(SearchEnd end) {
  switch (end) {
    case SearchEnd::AllInTime: return Answer::Schedulable;
    case SearchEnd::Late: return Answer::NotSchedulable;
    case SearchEnd::OutOfBudget:
    case SearchEnd::MaybeLate:
    case SearchEnd::OutOfReach: break;
  }
  return Answer::Unknown;
}

Exploration too_far() {
  Exploration exploration;
  exploration.reason = "releases and costs add up to more than 146 years; shorter times would be within reach";
  return exploration;
}

/// Where there are too many schedules: one edge for many orders, then one bound for each job, then runs that may be
/// late.
/// @return  nothing where that decides nothing.
std::optional<SearchResult> search_without_orders(JobSequence& sequence, const ExplorationLimits& limits) {
  StepBudget budget(limits.reduced_visits);
  ReducedSearch found = search_reduced(sequence, budget);
  if (found.result.end == SearchEnd::AllInTime) return std::move(found.result);
  StepBudget more(limits.reduced_visits);
  ReducedSearch bounded = bound_all(sequence, more);
  if (bounded.result.end == SearchEnd::AllInTime) return std::move(bounded.result);
  found.suspects.insert(found.suspects.end(), bounded.suspects.begin(), bounded.suspects.end());
  SearchResult late;
  late.end = SearchEnd::Late;
  late.late_run = play_suspects(sequence, found.suspects);
  late.depth = late.late_run.size();
  late.states = found.result.states;
  if (late.late_run.empty()) return std::nullopt;
  return late;
}

/// All schedules; where the first part of the budget is too little, without their orders, then with the rest.
SearchResult search(JobSequence& sequence, const ExplorationLimits& limits) {
  if (sequence.fixed()) return simulate(sequence, StepBudget(limits.visits));
  const std::int64_t first = limits.reduced_visits > 0 ? std::min(limits.visits, limits.first_visits) : limits.visits;
  SearchResult found = search_graph(sequence, StepBudget(first));
  if (found.end != SearchEnd::OutOfBudget || limits.reduced_visits <= 0) return found;
  if (std::optional<SearchResult> decided = search_without_orders(sequence, limits)) return *std::move(decided);
  return limits.visits > first ? search_graph(sequence, StepBudget(limits.visits)) : found;
}

/// @param count   number of jobs of the set, or of tasks.
/// @param number  number of a job among the jobs of its task.
template <class Number>
Exploration explore(JobSequence& sequence, std::size_t count, const ExplorationLimits& limits, Number number) {
  if (!sequence.in_reach()) return too_far();
  const SearchResult found = search(sequence, limits);
  if (found.end == SearchEnd::OutOfReach) return too_far();
  Exploration exploration;
  exploration.answer = answer_of(found.end);
  exploration.exact = found.exact;
  exploration.jobs = found.depth;
  exploration.settled = found.settled;
  exploration.states = found.states;
  if (found.end == SearchEnd::OutOfBudget)
    exploration.reason = fmt::format(
        "there are too many schedules to look at all of them: no job was late in {} "
        "states, up to {} jobs after the start",
        found.states, found.depth);
  for (const SearchedRun& run : found.late_run) {
    const SequencedJob& job = sequence[run.position];
    exploration.late_run.push_back(
        {job.source, number(job), job.earliest, run.release, run.start, run.finish, job.due, job.most});
  }
  if (found.end != SearchEnd::AllInTime) return exploration;
  exploration.responses.assign(count, {Duration::max(), Duration{-1}});
  for (std::size_t position = 0; position < found.finishes.size(); ++position) {
    const auto [first, last] = found.finishes[position];
    if (last < 0) continue;  // behind the last hyperperiod
    const SequencedJob& job = sequence[position];
    ResponseRange& range = exploration.responses[job.source];
    range.best = std::min(range.best, rounded_down(first - job.earliest));
    range.worst = std::max(range.worst, rounded_up(last - job.earliest));
  }
  return exploration;
}

}  // namespace

Exploration explore(std::span<const JobTiming> jobs, const ExplorationLimits& limits) {
  JobSequence sequence(jobs);
  return explore(sequence, jobs.size(), limits, [](const SequencedJob&) { return std::uint64_t{0}; });
}

namespace {

/// Jobs of a late run that are kept; of a longer one the last job alone.
constexpr std::size_t kMostTableJobs = 100'000;

/// Follows the time table of `cw_edf` until it repeats.
Exploration follow_table(std::span<const TaskTiming> tasks, const Repetition& repetition,
                         const ExplorationLimits& limits) {
  StepBudget budget(std::min(limits.visits, 16 * limits.first_visits));
  CriticalWindowTable table(tasks);
  Exploration found;
  found.responses.assign(tasks.size(), {Duration::max(), Duration{-1}});
  std::set<std::vector<std::int64_t>> seen;
  for (std::size_t boundary = repetition.startup;; ++found.jobs) {
    if (found.jobs == boundary) {
      // The table goes on from where the machine is free and which job of each task is next.
      const auto round = static_cast<std::int64_t>((boundary - repetition.startup) / repetition.per_round);
      std::vector<std::int64_t> state{(table.free_at() - round * repetition.hyperperiod).count()};
      for (std::size_t i = 0; i < tasks.size(); ++i)
        state.push_back(static_cast<std::int64_t>(table.next_index(i)) -
                        round * (repetition.hyperperiod / tasks[i].period));
      if (!seen.insert(std::move(state)).second) break;
      boundary += repetition.per_round;
    }
    if (!budget.spend(std::ssize(tasks)) || table.free_at() > kTimeInReach) {
      found.responses.clear();
      found.reason = "the time table does not repeat within reach; periods with a smaller common multiple may help";
      return found;
    }
    const TableEntry entry = table.next();
    const TaskTiming& task = tasks[entry.task.index()];
    const Duration arrival = task.offset + task.period * static_cast<std::int64_t>(entry.index);
    const Duration finish = entry.start + task.wcet;
    if (found.late_run.size() == kMostTableJobs) found.late_run.clear();
    found.late_run.push_back({entry.task.index(), entry.index, 2 * arrival.count(), 2 * (arrival + task.jitter).count(),
                              2 * entry.start.count(), 2 * finish.count(), 2 * (arrival + task.deadline).count(),
                              2 * task.wcet.count()});
    if (finish > arrival + task.deadline) {
      if (found.jobs >= kMostTableJobs) found.late_run.erase(found.late_run.begin(), found.late_run.end() - 1);
      found.answer = Answer::NotSchedulable;
      found.responses.clear();
      return found;
    }
    ResponseRange& range = found.responses[entry.task.index()];
    range.best = std::min(range.best, entry.start + task.best_case - arrival);
    range.worst = std::max(range.worst, finish - arrival);
  }
  found.answer = Answer::Schedulable;
  found.states = found.jobs + 1;
  found.late_run.clear();
  return found;
}

}  // namespace

Exploration explore(std::span<const TaskTiming> tasks, Policy policy, const ExplorationLimits& limits) {
  Exploration exploration;
  exploration.answer = Answer::Schedulable;
  if (tasks.empty()) return exploration;
  if (!in_reach(tasks)) return too_far();
  const auto repetition = repetition_of(tasks, limits.jobs);
  if (!repetition) {
    exploration.answer = Answer::Unknown;
    exploration.reason = repetition.error().message;
    return exploration;
  }
  if (policy == Policy::CwEdf) return follow_table(tasks, *repetition, limits);
  JobSequence sequence(tasks, policy, *repetition);
  return explore(sequence, tasks.size(), limits, [&](const SequencedJob& job) {
    const TaskTiming& task = tasks[job.source];
    return static_cast<std::uint64_t>((job.earliest / 2 - task.offset.count()) / task.period.count());
  });
}

}  // namespace tutti::internal
