#include "sched/analyses/np_fp_response_time.hpp"

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>

#include "model/base/expects.hpp"
#include "sched/analyses/demand.hpp"
#include "sched/analyses/divisor.hpp"
#include "sched/analyses/utilization.hpp"

namespace tutti::internal {
namespace {

template <class Int>
struct Interference {
  std::int64_t cost = 0;  ///< > 0
  Divisor<Int> period;
  std::int64_t jitter = 0;
  TaskId task;
};

/// One task with all that can delay it.
///
/// @tparam Int  int64 where `fits_64_bits(tasks)`, else Wide. Where U < 1 for the tasks above, the work before a
/// start below `kEndOf` stays within 63 bits, and `q C` and `q T` do while the busy period lasts.
template <class Int>
struct Level {
  std::int64_t cost = 0;
  std::int64_t last = 0;  ///< share of the last region in the cost
  std::int64_t period = 1;
  std::int64_t deadline = 0;
  std::int64_t jitter = 0;
  TaskId task;
  std::span<const Interference<Int>> higher;  ///< tasks above with C > 0
  std::int64_t blocking = 0;                  ///< B; 0 where nothing blocks
  std::optional<TaskId> blocker;
  Int earliest = 0;                                              ///< no first instance starts earlier
  UnsignedWide higher_slack = 0;                                 ///< 1 - U of the tasks above, at most, in 2^-64
  std::strong_ordering higher_use = std::strong_ordering::less;  ///< U of the tasks above, against 1
  std::strong_ordering total_use = std::strong_ordering::less;   ///< U including this task, against 1

  /// Jobs of a higher task before a start at `w`.
  [[nodiscard]] Int jobs_before(const Interference<Int>& other, Int w) const {
    const Int span = w + other.jitter;
    return blocking > 0 ? ceil_div(span, other.period) : other.period.floor(span) + 1;
  }

  /// Work before a start at `w` that follows the first `own` ns of this task in the busy period.
  [[nodiscard]] Int work_before(Int own, Int w) const {
    Int work = capped_sum(Int{blocking}, own);
    for (const Interference<Int>& other : higher) work = capped_sum(work, work_of(jobs_before(other, w), other.cost));
    return work;
  }

  /// No start of instance q is earlier: every count above is at least w / T, so w >= (B + q C) / (1 - U).
  [[nodiscard]] Int earliest_start(Int q) const {
    const Int own = capped_sum(Int{blocking}, work_of(q, cost));
    if ((own >> 62) != 0 || higher_slack == 0) return std::max(own, earliest);
    const UnsignedWide start = (static_cast<UnsignedWide>(own) << 64) / higher_slack;
    return std::max({own, earliest, static_cast<Int>(std::min(start, static_cast<UnsignedWide>(kEndOf<Int>)))});
  }

  /// Arrival of instance q, from the start of the busy period.
  [[nodiscard]] Int arrival(Int q) const { return work_of(q, period) - jitter; }
};

/// Outcome of the instances of one level.
template <class Int>
struct LevelOutcome {
  std::optional<Int> response;       ///< nothing: unbounded, or not reached
  std::optional<Int> late_instance;  ///< the first q that misses its deadline
  Answer answer = Answer::Unknown;
  Int first_end = 0;     ///< of instance 0; 0 where it was not reached
  bool too_far = false;  ///< a start lies beyond `kEndOf`
};

/// Start of the work that follows the task's first `own` ns: the smallest fixed point from `w` upwards, while no fixed
/// point may lie below `w`. The result is `kEndOf` where there is none before it, nothing once the budget is spent.
template <class Int>
std::optional<Int> start_of(const Level<Int>& level, Int own, Int w, StepBudget& budget) {
  while (w < kEndOf<Int>) {
    if (!budget.spend(static_cast<std::int64_t>(level.higher.size()) + 1)) return std::nullopt;
    const Int next = level.work_before(own, w);
    if (next == w) return w;
    w = next;
  }
  return kEndOf<Int>;
}

/// Number of instances that suffice. Where the level uses all of the time, its busy period never ends but repeats after
/// a hyperperiod; otherwise the busy period ends by itself.
template <class Int>
Wide instances_to_look_at(const Level<Int>& level) {
  if (level.cost == 0) return 1;  // the later ones start no later and have arrived later
  if (level.total_use != 0) return kFar;
  Wide hyperperiod = level.period;
  for (const Interference<Int>& other : level.higher) hyperperiod = common_multiple(hyperperiod, other.period.number());
  return hyperperiod < kFar ? hyperperiod / level.period : kFar;
}

/// Whether the busy period surely ends before instance q > 0 arrives: all work up to then fits. False decides nothing.
template <class Int>
bool ends_before(const Level<Int>& level, Int q) {
  const Int arrival = level.arrival(q);
  return arrival > 0 && level.work_before(work_of(q, level.cost), arrival) <= arrival;
}

template <class Int>
LevelOutcome<Int> look_at(const Level<Int>& level, StepBudget& budget) {
  LevelOutcome<Int> outcome;
  const bool starved = level.higher_use >= 0;  // the tasks above leave no gap: no fixed point exists
  const bool unbounded = starved || level.total_use > 0;
  if (unbounded) outcome.answer = Answer::NotSchedulable;
  if (starved) {
    outcome.late_instance = 0;
    return outcome;
  }
  const Wide instances = instances_to_look_at(level);
  Int worst = 0;
  Int from = 0;
  for (Int q = 0; q < instances; ++q) {
    if (q > 0 && ends_before(level, q)) break;
    const Int own = work_of(q, level.cost);
    std::optional<Int> start = start_of(level, own, std::max(from, level.earliest_start(q)), budget);
    if (start && q > 0 && *start <= level.arrival(q)) break;  // the busy period ended before this instance
    if (start && level.last < level.cost) start = start_of(level, own + level.cost - level.last, *start, budget);
    outcome.too_far = start == kEndOf<Int>;
    if (!start || outcome.too_far) return outcome;
    const Int end = *start + level.last;
    if (q == 0) outcome.first_end = end;
    const Int response = end - level.arrival(q);
    worst = std::max(worst, response);
    if (response > level.deadline && !outcome.late_instance) {
      outcome.late_instance = q;
      outcome.answer = Answer::NotSchedulable;
      if (unbounded) return outcome;
    }
    from = end;
  }
  outcome.response = worst;
  if (outcome.answer == Answer::Unknown) outcome.answer = Answer::Schedulable;
  return outcome;
}

/// Witness of the late instance q: its last region cannot start in time. The load counts all work before the latest
/// start in time, which does not fit.
template <class Int>
std::optional<Witness> witness_of(const Level<Int>& level, Int q) {
  const Wide due = work_of(Wide{q}, level.period) - level.jitter + level.deadline;
  const std::optional<Duration> interval = to_duration(due);
  if (!interval) return std::nullopt;
  Witness witness;
  witness.task = level.task;
  witness.interval = *interval;
  witness.blocking = Duration{level.blocking};
  witness.blocker = level.blocker;
  const Wide latest_start = std::max<Wide>(due - level.last, 0);
  Wide load = level.blocking;
  const auto take = [&](TaskId task, Wide jobs, std::int64_t cost) {
    const Wide work = work_of(jobs, cost);
    load = capped_sum(load, work);
    if (work > 0) witness.by_task.push_back({task, to_duration(work).value_or(Duration{})});
  };
  for (const Interference<Int>& other : level.higher) {
    const Wide span = latest_start + other.jitter;
    const std::int64_t period = other.period.number();
    take(other.task, level.blocking > 0 ? ceil_div(span, period) : floor_div(span, period) + 1, other.cost);
  }
  take(level.task, Wide{q} + 1, level.cost);
  const std::optional<Duration> whole = to_duration(load);
  if (!whole) return std::nullopt;  // each share fits where the whole load does
  witness.load = *whole;
  std::ranges::sort(witness.by_task, {}, &TaskLoad::task);
  return witness;
}

/// For each position in `order`, the task below it with the longest region > 0; of equal ones the highest.
std::vector<std::optional<std::size_t>> longest_below(std::span<const TaskTiming> tasks,
                                                      std::span<const std::size_t> order) {
  std::vector<std::optional<std::size_t>> longest(order.size());
  for (std::size_t at = order.size(); at-- > 1;) {
    const std::size_t task = order[at];
    longest[at - 1] = longest[at];
    const Duration region = tasks[task].longest_region();
    if (region.count() > 0 && (!longest[at] || region >= tasks[*longest[at]].longest_region())) longest[at - 1] = task;
  }
  return longest;
}

template <class Int>
Level<Int> level_of(std::span<const TaskTiming> tasks, std::size_t task, std::optional<std::size_t> blocker) {
  Level<Int> level;
  level.cost = tasks[task].wcet.count();
  level.last = tasks[task].last_region().count();
  level.period = tasks[task].period.count();
  level.deadline = tasks[task].deadline.count();
  level.jitter = tasks[task].jitter.count();
  level.task = TaskId{task};
  if (blocker) {
    level.blocking = tasks[*blocker].longest_region().count();
    level.blocker = TaskId{*blocker};
  }
  return level;
}

/// Takes one level's outcome into the verdict: a task that fails outweighs one that could not be decided.
template <class Int>
void record(Verdict& verdict, const Level<Int>& level, const LevelOutcome<Int>& outcome) {
  if (outcome.response) verdict.worst_response[level.task.index()] = to_duration(*outcome.response);
  if (outcome.answer == Answer::NotSchedulable && verdict.answer != Answer::NotSchedulable) {
    verdict.answer = Answer::NotSchedulable;
    if (outcome.late_instance) verdict.witness = witness_of(level, *outcome.late_instance);
  }
  if (outcome.answer == Answer::Unknown && verdict.answer == Answer::Schedulable) verdict.answer = Answer::Unknown;
}

/// Analyses every level from the highest to the lowest. A level's first instance starts no earlier than that of the
/// level above ends, if B is equal for both.
/// @param until_one_fails  the levels below the first one that fails are left out
/// @return  the verdict; nothing where `Int` is too small for it.
template <class Int>
std::optional<Verdict> look_at_all(std::span<const TaskTiming> tasks, std::span<const std::size_t> order,
                                   bool until_one_fails) {
  Verdict verdict;
  verdict.test = kNpFpResponseTime;
  verdict.exactness = Exactness::Exact;
  verdict.answer = Answer::Schedulable;
  verdict.worst_response.resize(tasks.size());
  const std::vector<std::optional<std::size_t>> blockers = longest_below(tasks, order);
  std::vector<Interference<Int>> higher;
  higher.reserve(order.size());
  UtilizationSum use;
  // One budget for all levels, so that the whole test ends; large sets need some visits for each pair of tasks.
  const auto count = static_cast<std::int64_t>(std::min<std::size_t>(tasks.size(), 10'000));
  StepBudget budget(kVisitsPerWalk + 16 * count * count);
  std::int64_t blocking_above = -1;
  Int earliest = 0;
  for (std::size_t at = 0; at < order.size(); ++at) {
    Level<Int> level = level_of<Int>(tasks, order[at], blockers[at]);
    level.higher = higher;
    if (level.blocking == blocking_above) level.earliest = earliest;
    level.higher_slack = use.most_slack();
    level.higher_use = use.compare_with_one();
    use.add(Duration{level.cost}, Duration{level.period});
    level.total_use = use.compare_with_one();
    const LevelOutcome<Int> outcome = look_at(level, budget);
    if (outcome.too_far && !std::is_same_v<Int, Wide>) return std::nullopt;
    record(verdict, level, outcome);
    if (until_one_fails && verdict.answer == Answer::NotSchedulable) break;
    blocking_above = level.blocking;
    earliest = outcome.first_end;
    if (level.cost > 0) higher.push_back({level.cost, Divisor<Int>(level.period), level.jitter, level.task});
  }
  return verdict;
}

/// Analyses the task at `at` alone; the tasks before it have higher priority.
template <class Int>
LevelOutcome<Int> look_at_one(std::span<const TaskTiming> from_highest, std::size_t at) {
  std::optional<std::size_t> blocker;
  for (std::size_t i = at + 1; i < from_highest.size(); ++i)
    if (from_highest[i].wcet.count() > 0 && (!blocker || from_highest[i].wcet > from_highest[*blocker].wcet))
      blocker = i;
  std::vector<Interference<Int>> higher;
  higher.reserve(at);
  UtilizationSum use;
  for (std::size_t i = 0; i < at; ++i) {
    const TaskTiming& task = from_highest[i];
    use.add(task.wcet, task.period);
    if (task.wcet.count() > 0)
      higher.push_back({task.wcet.count(), Divisor<Int>(task.period.count()), task.jitter.count(), TaskId{i}});
  }
  Level<Int> level = level_of<Int>(from_highest, at, blocker);
  level.higher = higher;
  level.higher_slack = use.most_slack();
  level.higher_use = use.compare_with_one();
  use.add(from_highest[at].wcet, from_highest[at].period);
  level.total_use = use.compare_with_one();
  StepBudget budget(kVisitsPerWalk);
  return look_at(level, budget);
}

Verdict look(std::span<const TaskTiming> tasks, Policy policy, bool until_one_fails) {
  expect_valid_timing(tasks);
  const std::vector<std::size_t> order = priority_order(tasks, policy);
  std::optional<Verdict> decided;
  if (fits_64_bits(tasks)) decided = look_at_all<std::int64_t>(tasks, order, until_one_fails);
  if (!decided) decided = look_at_all<Wide>(tasks, order, until_one_fails);
  return *std::move(decided);
}

}  // namespace

Answer np_fp_level(std::span<const TaskTiming> from_highest, std::size_t at) {
  if (fits_64_bits(from_highest)) {
    const LevelOutcome<std::int64_t> outcome = look_at_one<std::int64_t>(from_highest, at);
    if (!outcome.too_far) return outcome.answer;
  }
  return look_at_one<Wide>(from_highest, at).answer;
}

Verdict np_fp_response_time(std::span<const TaskTiming> tasks, Policy policy) {
  Verdict verdict = look(tasks, policy, false);
  if (verdict.answer == Answer::NotSchedulable && !verdict.witness)
    verdict.reason =
        "some job is late, but the interval from the start of its busy period or the load in it is too long to give";
  if (verdict.answer == Answer::Unknown)
    verdict.reason = "the utilisation is too close to 1 for periods so far apart: a busy period is too long to follow";
  return verdict;
}

Answer np_fp_answer(std::span<const TaskTiming> tasks, Policy policy) { return look(tasks, policy, true).answer; }

}  // namespace tutti::internal
