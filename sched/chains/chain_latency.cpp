#include "sched/chains/chain_latency.hpp"

#include <algorithm>
#include <compare>
#include <cstdint>

#include "model/base/expects.hpp"
#include "model/base/wide.hpp"
#include "sched/tasks/priority.hpp"

namespace tutti::internal {
namespace {

/// Most steps of all walks of a chain; beyond, periods are added up.
constexpr std::int64_t kMostSteps = 10'000;

/// Whether a ready job of `a` is served before one of `b` under fixed priorities.
bool is_more_urgent(const ChainStage& a, const ChainStage& b, Policy policy) {
  const std::int64_t rank_a = priority_rank(a.timing, policy);
  const std::int64_t rank_b = priority_rank(b.timing, policy);
  return rank_a < rank_b || (rank_a == rank_b && a.position < b.position);
}

/// How long after a job of a stage a job of the next one has arrived that starts before that one finishes.
struct Lag {
  Wide longest = 0;         ///< ns
  bool is_reached = false;  ///< if not, it is less

  /// The longest where arrivals are whole ns apart.
  [[nodiscard]] Wide whole() const { return is_reached ? longest : longest - 1; }

  friend auto operator<=>(const Lag&, const Lag&) = default;
};

Lag lag(const ChainStage& stage, const ChainStage& next, Policy policy) {
  const TaskTiming& timing = stage.timing;
  // It starts before f(k) <= a(k) + R.
  Lag lag{stage.worst_response.count(), false};
  if (!stage.dispatcher || stage.dispatcher != next.dispatcher) return lag;
  // It takes no time and starts at the instant at which the last region does, or before.
  lag = {lag.longest - timing.last_region().count(), true};
  // Only strictly periodic sets hold the machine for the best case. A job in regions may still be under way.
  const bool holds_it = timing.arrivals == Arrivals::Periodic && !next.timing.regions;
  if (holds_it) lag.longest -= next.timing.best_case.count();
  // It starts before job k is ready, or is more urgent.
  const Lag before_ready{timing.jitter.count(), false};
  if (!is_by_deadline(policy)) return is_more_urgent(stage, next, policy) ? std::min(lag, before_ready) : lag;
  const Lag more_urgent{Wide{timing.deadline.count()} - next.timing.deadline.count(), next.position < stage.position};
  return std::min(lag, std::max(before_ready, more_urgent));
}

/// Rounds down, also below 0.
Wide floor_of(Wide dividend, std::int64_t divisor) {
  return dividend >= 0 ? floor_div(dividend, divisor) : -ceil_div(-dividend, divisor);
}

/// From the arrival of a job to that of the first one of the next stage that reads its output or a later one, at most.
Wide step(const ChainStage& stage, const ChainStage& next, const Lag& lag) {
  const bool together = stage.timing.arrives_with && stage.timing.arrives_with == next.timing.arrives_with;
  if (!together) return lag.longest + next.longest_gap.count();
  const std::int64_t period = next.timing.period.count();
  return (floor_of(lag.whole(), period) + 1) * period;
}

/// The least common multiple of the periods, in arrivals of the first task; nothing where these are too many.
std::optional<std::int64_t> walks_of(std::span<const ChainStage> chain) {
  Wide multiple = 1;
  for (const ChainStage& stage : chain) multiple = common_multiple(multiple, stage.timing.period.count());
  if (multiple >= kFar) return std::nullopt;
  const Wide walks = multiple / chain.front().timing.period.count();
  if (walks > kMostSteps / static_cast<std::int64_t>(chain.size())) return std::nullopt;
  return static_cast<std::int64_t>(walks);
}

/// Longest time from an arrival of the first task, before the one that observes the event, to the arrival of the job of
/// the last task that depends on it; all tasks run for ever. Arrivals are strictly periodic.
Wide longest_walk(std::span<const ChainStage> chain, std::span<const Lag> lags, std::int64_t walks) {
  Wide longest = 0;
  for (std::int64_t k = 1; k <= walks; ++k) {
    const TaskTiming& first = chain.front().timing;
    const Wide event = first.offset.count() + Wide{k - 1} * first.period.count();
    Wide arrival = event + first.period.count();
    for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
      const TaskTiming& next = chain[i + 1].timing;
      const Wide since_offset = arrival + lags[i].whole() - next.offset.count();
      arrival = next.offset.count() + (floor_of(since_offset, next.period.count()) + 1) * next.period.count();
    }
    longest = std::max(longest, arrival - event);
  }
  return longest;
}

}  // namespace

Duration longest_gap(const Task& task) {
  if (!task.release.is_external()) return task.period;
  const Wide period = task.period.count();
  Wide gap = std::max<Wide>(task.release.missing_after.count(), period);
  // The first early trigger in a row comes less than a period after a job's arrival, and none of them starts one.
  if (task.release.early == EarlyTriggers::Drop) gap += period;
  return to_duration(gap).value_or(Duration::max());
}

std::optional<Duration> worst_case_latency(std::span<const ChainStage> chain, Policy policy) {
  TUTTI_EXPECTS(!chain.empty(), "a chain has a task");
  std::vector<Lag> lags;
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) lags.push_back(lag(chain[i], chain[i + 1], policy));
  const bool periodic = chain.front().timing.arrivals == Arrivals::Periodic;
  const auto walks = periodic ? walks_of(chain) : std::nullopt;
  Wide latency = chain.back().worst_response.count();
  if (walks) {
    latency += longest_walk(chain, lags, *walks);
  } else {
    latency += chain.front().longest_gap.count();
    for (std::size_t i = 0; i + 1 < chain.size(); ++i) latency += step(chain[i], chain[i + 1], lags[i]);
  }
  return to_duration(latency);
}

std::vector<ChainStage> stages_of(const Chain& chain, const TaskSet& set, std::span<const TaskTiming> timings,
                                  std::span<const std::optional<Duration>> responses,
                                  std::span<const Partition> partitions) {
  std::vector<ChainStage> stages;
  for (const TaskId task : chain.tasks) {
    const std::size_t at = task.index();
    ChainStage& stage = stages.emplace_back();
    stage.timing = timings[at];
    stage.longest_gap = longest_gap(set.tasks[at]);
    stage.worst_response = responses[at].value_or(set.tasks[at].deadline);
    stage.position = at;
    for (std::size_t i = 0; i < partitions.size(); ++i)
      if (std::ranges::binary_search(partitions[i].tasks, task)) stage.dispatcher = i;
  }
  return stages;
}

}  // namespace tutti::internal
