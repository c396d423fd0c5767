#include "sched/analyses/np_fp_response_time.hpp"

#include <algorithm>
#include <numeric>

#include "model/expects.hpp"
#include "sched/analyses/demand.hpp"
#include "sched/utilization.hpp"

namespace tutti {
namespace {

struct Interference {
  std::int64_t cost = 0;  ///< > 0
  std::int64_t period = 1;
  std::int64_t jitter = 0;
  TaskId task;
};

/// One task with all that can delay it.
struct Level {
  std::int64_t cost = 0;
  std::int64_t period = 1;
  std::int64_t deadline = 0;
  std::int64_t jitter = 0;
  TaskId task;
  std::span<const Interference> higher;  ///< tasks above with C > 0
  std::int64_t blocking = 0;             ///< B; 0 where nothing blocks
  std::optional<TaskId> blocker;
  UnsignedWide higher_slack = 0;                                 ///< 1 - U of the tasks above, at most, in 2^-64
  std::strong_ordering higher_use = std::strong_ordering::less;  ///< U of the tasks above, against 1
  std::strong_ordering total_use = std::strong_ordering::less;   ///< the same with this task

  /// Jobs of a higher task that go first when this one could start at `w`.
  [[nodiscard]] Wide jobs_before(const Interference& other, Wide w) const {
    const Wide span = w + other.jitter;
    return blocking > 0 ? ceil_div(span, other.period) : floor_div(span, other.period) + 1;
  }

  /// All that goes before instance q when it could start at `w`.
  [[nodiscard]] Wide work_before(Wide q, Wide w) const {
    Wide work = capped_sum(Wide{blocking}, work_of(q, cost));
    for (const Interference& other : higher) work = capped_sum(work, work_of(jobs_before(other, w), other.cost));
    return work;
  }

  /// No start of instance q is earlier: every count above is at least w / T, so w >= (B + q C) / (1 - U).
  [[nodiscard]] Wide earliest_start(Wide q) const {
    const Wide own = capped_sum(Wide{blocking}, work_of(q, cost));
    if ((own >> 63) != 0 || higher_slack == 0) return own;
    return std::max(own, static_cast<Wide>(std::min((static_cast<UnsignedWide>(own) << 64) / higher_slack,
                                                    static_cast<UnsignedWide>(kFar))));
  }

  /// Arrival of instance q, from the start of the busy period.
  [[nodiscard]] Wide arrival(Wide q) const { return work_of(q, period) - jitter; }
  /// Deadline of instance q, from the start of the busy period.
  [[nodiscard]] Wide due(Wide q) const { return arrival(q) + deadline; }
};

/// What the instances of one level showed.
struct LevelOutcome {
  std::optional<Wide> response;       ///< nothing: unbounded, or not reached
  std::optional<Wide> late_instance;  ///< the first q that misses its deadline
  Answer answer = Answer::Unknown;
};

/// The smallest fixed point at or above `w`, which no fixed point may lie below; nothing once the budget is spent.
std::optional<Wide> start_of(const Level& level, Wide q, Wide w, StepBudget& budget) {
  while (w < kFar) {
    if (!budget.spend(static_cast<std::int64_t>(level.higher.size()) + 1)) return std::nullopt;
    const Wide next = level.work_before(q, w);
    if (next == w) return w;
    w = next;
  }
  return std::nullopt;
}

/// How many instances show everything: where the level uses all of the time its busy period never ends, but repeats
/// after a hyperperiod. Otherwise it ends by itself.
Wide instances_to_look_at(const Level& level) {
  if (level.cost == 0) return 1;  // the later ones start no later and have arrived later
  if (level.total_use != 0) return kFar;
  Wide hyperperiod = level.period;
  for (const Interference& other : level.higher) {
    const auto common = std::gcd(static_cast<std::int64_t>(hyperperiod % other.period), other.period);
    hyperperiod = work_of(hyperperiod, other.period / common);
  }
  return hyperperiod < kFar ? hyperperiod / level.period : kFar;
}

LevelOutcome look_at(const Level& level, StepBudget& budget) {
  LevelOutcome outcome;
  const bool starved = level.higher_use >= 0;  // the tasks above leave no gap: no fixed point exists
  const bool unbounded = starved || level.total_use > 0;
  if (unbounded) outcome.answer = Answer::NotSchedulable;
  if (starved) {
    outcome.late_instance = 0;
    return outcome;
  }
  const Wide instances = instances_to_look_at(level);
  Wide worst = 0;
  Wide from = 0;
  for (Wide q = 0; q < instances; ++q) {
    const std::optional<Wide> start = start_of(level, q, std::max(from, level.earliest_start(q)), budget);
    if (!start) return outcome;
    if (q > 0 && *start <= level.arrival(q)) break;  // the busy period ended before this instance
    const Wide response = *start + level.cost - level.arrival(q);
    worst = std::max(worst, response);
    if (response > level.deadline && !outcome.late_instance) {
      outcome.late_instance = q;
      outcome.answer = Answer::NotSchedulable;
      if (unbounded) return outcome;
    }
    from = *start + level.cost;
  }
  outcome.response = worst;
  if (outcome.answer == Answer::Unknown) outcome.answer = Answer::Schedulable;
  return outcome;
}

/// The instance cannot start by `due - C`, so all that goes before a start then must fit as well, and does not.
std::optional<Witness> witness_of(const Level& level, Wide q) {
  const Wide latest_start = std::max<Wide>(level.due(q) - level.cost, 0);
  const std::optional<Duration> interval = to_duration(level.due(q));
  const std::optional<Duration> load = to_duration(level.work_before(q + 1, latest_start));
  if (!interval || !load) return std::nullopt;
  Witness witness;
  witness.task = level.task;
  witness.interval = *interval;
  witness.load = *load;
  witness.blocking = Duration{level.blocking};
  witness.blocker = level.blocker;
  for (const Interference& other : level.higher) {
    const Wide jobs = level.jobs_before(other, latest_start);
    if (jobs > 0) witness.by_task.push_back({other.task, Duration{static_cast<std::int64_t>(jobs) * other.cost}});
  }
  if (level.cost > 0) witness.by_task.push_back({level.task, Duration{static_cast<std::int64_t>(q + 1) * level.cost}});
  std::ranges::sort(witness.by_task, {}, &TaskLoad::task);
  return witness;
}

/// For each position in `order`, the task below it with the largest C > 0; of equal ones the highest.
std::vector<std::optional<std::size_t>> longest_below(std::span<const TaskTiming> tasks,
                                                      std::span<const std::size_t> order) {
  std::vector<std::optional<std::size_t>> longest(order.size());
  for (std::size_t at = order.size(); at-- > 1;) {
    const std::size_t task = order[at];
    longest[at - 1] = longest[at];
    if (tasks[task].wcet.count() > 0 && (!longest[at] || tasks[task].wcet >= tasks[*longest[at]].wcet))
      longest[at - 1] = task;
  }
  return longest;
}

Level level_of(std::span<const TaskTiming> tasks, std::size_t task, std::optional<std::size_t> blocker) {
  Level level;
  level.cost = tasks[task].wcet.count();
  level.period = tasks[task].period.count();
  level.deadline = tasks[task].deadline.count();
  level.jitter = tasks[task].jitter.count();
  level.task = TaskId{task};
  if (blocker) {
    level.blocking = tasks[*blocker].wcet.count();
    level.blocker = TaskId{*blocker};
  }
  return level;
}

/// Takes one level's outcome into the verdict: a task that fails outweighs one that could not be decided.
void record(Verdict& verdict, const Level& level, const LevelOutcome& outcome) {
  if (outcome.response) verdict.worst_response[level.task.index()] = to_duration(*outcome.response);
  if (outcome.answer == Answer::NotSchedulable && verdict.answer != Answer::NotSchedulable) {
    verdict.answer = Answer::NotSchedulable;
    if (outcome.late_instance) verdict.witness = witness_of(level, *outcome.late_instance);
  }
  if (outcome.answer == Answer::Unknown && verdict.answer == Answer::Schedulable) verdict.answer = Answer::Unknown;
}

}  // namespace

std::vector<std::size_t> priority_order(std::span<const TaskTiming> tasks, Policy policy) {
  TUTTI_EXPECTS(policy == Policy::Rm || policy == Policy::Dm, "only RM and DM give fixed priorities");
  std::vector<std::size_t> order(tasks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {},
                           [&](std::size_t i) { return policy == Policy::Rm ? tasks[i].period : tasks[i].deadline; });
  return order;
}

Verdict np_fp_response_time(std::span<const TaskTiming> tasks, Policy policy) {
  expect_valid_timing(tasks);
  const std::vector<std::size_t> order = priority_order(tasks, policy);
  const std::vector<std::optional<std::size_t>> blockers = longest_below(tasks, order);
  Verdict verdict;
  verdict.test = kNpFpResponseTime;
  verdict.exactness = Exactness::Exact;
  verdict.answer = Answer::Schedulable;
  verdict.worst_response.resize(tasks.size());
  std::vector<Interference> higher;
  UtilizationSum use;
  // One for all levels, so that the whole test ends; large sets need some visits for each pair of tasks.
  const auto count = static_cast<std::int64_t>(std::min<std::size_t>(tasks.size(), 10'000));
  StepBudget budget(kVisitsPerWalk + 16 * count * count);
  for (std::size_t at = 0; at < order.size(); ++at) {
    Level level = level_of(tasks, order[at], blockers[at]);
    level.higher = higher;
    level.higher_slack = use.most_slack();
    level.higher_use = use.compare_with_one();
    use.add(Duration{level.cost}, Duration{level.period});
    level.total_use = use.compare_with_one();
    record(verdict, level, look_at(level, budget));
    if (level.cost > 0) higher.push_back({level.cost, level.period, level.jitter, level.task});
  }
  if (verdict.answer == Answer::NotSchedulable && !verdict.witness)
    verdict.reason =
        "some job is late, but the interval from the start of its busy period or the load in it is too long to give";
  if (verdict.answer == Answer::Unknown)
    verdict.reason = "the utilisation is too close to 1 for periods so far apart: a busy period is too long to follow";
  return verdict;
}

}  // namespace tutti
