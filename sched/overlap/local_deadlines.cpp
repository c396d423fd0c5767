#include "sched/overlap/local_deadlines.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sched/analyses/np_edf_demand.hpp"
#include "sched/analyses/np_fp_response_time.hpp"
#include "sched/analyses/utilization.hpp"

namespace tutti::internal {
namespace {

constexpr int kRounds = 200;
constexpr double kGrowth = 1.2;  // of a weight, a round

/// A job's deadline handed out to its operations.
class HandingOut {
 public:
  /// @param needs, weights  [operations]
  HandingOut(const OperationSet& operations, std::span<const Duration> needs, std::span<const double> weights,
             LocalDeadlines& result)
      : operations_(operations), needs_(needs), weights_(weights), result_(result) {}

  /// @return whether the needs fit into the deadline
  bool hand_out(std::size_t task, Duration deadline) {
    const auto& steps = operations_.jobs[task];
    const Duration needed = longest_way(operations_, needs_, TaskId{task});
    if (needed > deadline) return false;
    Shares shares{deadline - needed};
    for (const StepOperations& step : steps) shares.weights += weight_of(step);
    Duration begin{};
    for (const StepOperations& step : steps) {
      const bool is_last = &step == &steps.back();
      const Duration end = is_last ? deadline : begin + time_of(step, needs_) + shares.take(weight_of(step));
      for (const auto& stream : step) hand_out_in_stream(stream, begin, end);
      begin = end;
    }
    return true;
  }

 private:
  /// What is left of a deadline, for those that have these weights together.
  struct Shares {
    Duration all;
    double weights = 0;
    Duration left = all;

    Duration take(double weight) {
      const Duration share = std::min(left, round_down_ns(as_ns(all) * (weight / weights)));
      left -= share;
      return share;
    }
  };

  [[nodiscard]] double weight_of(std::span<const std::size_t> stream) const {
    double sum = 0;
    for (const std::size_t operation : stream) sum += weights_[operation];
    return sum;
  }
  [[nodiscard]] double weight_of(const StepOperations& step) const {
    double most = 0;
    for (const auto& stream : step) most = std::max(most, weight_of(stream));
    return most;
  }
  void hand_out_in_stream(std::span<const std::size_t> stream, Duration begin, Duration end) {
    Shares shares{end - begin - time_of(stream, needs_), weight_of(stream)};
    Duration at = begin;
    for (const std::size_t operation : stream) {
      const bool is_last = operation == stream.back();
      const Duration until = is_last ? end : at + needs_[operation] + shares.take(weights_[operation]);
      result_.guards[operation] = at;
      result_.deadlines[operation] = until - at;
      at = until;
    }
  }

  const OperationSet& operations_;
  std::span<const Duration> needs_;
  std::span<const double> weights_;
  LocalDeadlines& result_;
};

/// An operation is in time if it waits for one other at most: its own longest time and the longest region of the others
/// on its resource, of its own task too.
std::vector<double> first_weights(const OperationSet& operations) {
  struct Longest {
    Duration region{};
    const Operation* operation = nullptr;
  };
  std::vector<std::array<Longest, 2>> longest(operations.resources.size());
  for (const Operation& operation : operations.operations) {
    auto& [first, second] = longest[operation.resource];
    const Longest own{std::ranges::max(operation.regions()), &operation};
    if (own.region > first.region)
      second = std::exchange(first, own);
    else if (own.region > second.region)
      second = own;
  }
  std::vector<double> weights;
  for (const Operation& operation : operations.operations) {
    const auto& [first, second] = longest[operation.resource];
    const Duration blocked = first.operation == &operation ? second.region : first.region;
    weights.push_back(std::max(as_ns(operation.worst()) + as_ns(blocked), 1.0));
  }
  return weights;
}

Answer answer_for(std::span<const TaskTiming> timings, Policy policy) {
  return policy == Policy::Edf ? np_edf_demand_answer(timings, policy) : np_fp_answer(timings, policy);
}

/// Whether an operation is late behind the longest region of one with a later local deadline, which had just begun.
bool is_blocked_too_long(std::size_t place, const OperationSet& operations, const LocalDeadlines& deadlines) {
  const Operation& operation = operations.operations[place];
  Duration blocking{};
  for (std::size_t other = 0; other < operations.operations.size(); ++other) {
    if (operations.operations[other].resource != operation.resource) continue;
    if (deadlines.deadlines[other] <= deadlines.deadlines[place]) continue;
    for (const OperationPart& part : operations.operations[other].parts)
      blocking = std::max(blocking, std::ranges::max(part.regions));
  }
  return add_saturating(operation.worst(), blocking) > deadlines.deadlines[place];
}

/// Gives more to the operations of resources that fail: to those that can be blocked too long, or to all where none
/// can.
/// @param fails  [resources]
void grow(std::span<double> weights, const OperationSet& operations, const LocalDeadlines& deadlines,
          std::span<const char> fails) {
  std::vector<char> blocked(weights.size()), any(fails.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::size_t resource = operations.operations[i].resource;
    if (fails[resource] == 0 || !is_blocked_too_long(i, operations, deadlines)) continue;
    blocked[i] = any[resource] = 1;
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::size_t resource = operations.operations[i].resource;
    if (fails[resource] != 0 && (blocked[i] != 0 || any[resource] == 0)) weights[i] *= kGrowth;
  }
}

/// Rounds of a search: fewer where a test of fixed priorities must look at many jobs in the longest period.
int rounds_for(const TaskSet& set, const OperationSet& operations) {
  constexpr double kMostJobs = 2e7;  // of all rounds
  if (set.policy == Policy::Edf) return kRounds;
  Duration longest{};
  for (const Task& task : set.tasks) longest = std::max(longest, task.period);
  double jobs = 1;
  for (const Operation& operation : operations.operations)
    jobs += as_ns(longest) / as_ns(set.tasks[operation.task.index()].period);
  return static_cast<int>(std::clamp(kMostJobs / jobs, 1.0, double{kRounds}));
}

/// The search from one start. @param weights  [operations] become others
std::optional<LocalDeadlines> search(const TaskSet& set, const OperationSet& operations,
                                     std::span<const Duration> needs, std::vector<double>& weights) {
  const std::size_t count = needs.size();
  LocalDeadlines found{std::vector<Duration>(count), std::vector<Duration>(count)};
  HandingOut handing(operations, needs, weights, found);
  const Policy policy = policy_of_resources(set.policy);
  for (int round = rounds_for(set, operations); round > 0; --round) {
    for (std::size_t task = 0; task < set.tasks.size(); ++task)
      if (!handing.hand_out(task, set.tasks[task].deadline)) return std::nullopt;
    const auto timings = timings_by_resource(set, operations, found);
    std::vector<char> fails;
    for (const auto& on : timings) {
      const Answer answer = answer_for(on, policy);
      if (answer == Answer::Unknown) return std::nullopt;
      fails.push_back(answer == Answer::Schedulable ? 0 : 1);
    }
    if (std::ranges::count(fails, 1) == 0) return found;
    grow(weights, operations, found, fails);
  }
  return std::nullopt;
}

}  // namespace

Policy policy_of_resources(Policy policy) { return policy == Policy::Edf ? Policy::Edf : Policy::Dm; }

std::vector<std::vector<TaskTiming>> timings_by_resource(const TaskSet& set, const OperationSet& operations,
                                                         const LocalDeadlines& deadlines) {
  std::vector<std::vector<TaskTiming>> timings(operations.resources.size());
  for (std::size_t i = 0; i < operations.operations.size(); ++i) {
    const Operation& operation = operations.operations[i];
    const Task& task = set.tasks[operation.task.index()];
    TaskTiming& timing = timings[operation.resource].emplace_back();
    timing.wcet = operation.worst();
    timing.period = task.period;
    const Duration guard = deadlines.guards[i];
    timing.deadline = deadlines.from_soonest(i);
    timing.jitter = guard == Duration{0} ? task.jitter : timing.deadline - deadlines.deadlines[i];
    std::vector<Duration> regions = operation.regions();
    if (regions.size() > 1) timing.regions = JobRegions::of(std::move(regions));
  }
  return timings;
}

bool fits(const TaskSet& set, const OperationSet& operations) {
  std::vector<UtilizationSum> sums(operations.resources.size());
  for (const Operation& operation : operations.operations) {
    const Duration worst = operation.worst();
    if (worst == Duration::max()) return false;
    sums[operation.resource].add(worst, set.tasks[operation.task.index()].period);
  }
  return std::ranges::all_of(sums, [](const UtilizationSum& sum) { return sum.compare_with_one() <= 0; });
}

bool keep(const TaskSet& set, const OperationSet& operations, const LocalDeadlines& deadlines) {
  return std::ranges::all_of(timings_by_resource(set, operations, deadlines), [&](const auto& timings) {
    return answer_for(timings, policy_of_resources(set.policy)) == Answer::Schedulable;
  });
}

LocalDeadlines at_least(const OperationSet& operations, std::span<const Duration> times) {
  LocalDeadlines result{std::vector<Duration>(times.size()), std::vector<Duration>(times.size())};
  const std::vector<double> even(times.size(), 1);
  HandingOut handing(operations, times, even, result);
  for (std::size_t task = 0; task < operations.jobs.size(); ++task)
    handing.hand_out(task, longest_way(operations, times, TaskId{task}));
  return result;
}

LocalDeadlines in_proportion(const TaskSet& set, const OperationSet& operations) {
  std::vector<Duration> times = worst_times(operations);
  for (Duration& time : times) time = std::max(time, Duration{1});
  std::vector<double> stretch;
  for (std::size_t task = 0; task < set.tasks.size(); ++task)
    stretch.push_back(as_ns(set.tasks[task].deadline) / as_ns(longest_way(operations, times, TaskId{task})));
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double stretched = as_ns(times[i]) * stretch[operations.operations[i].task.index()];
    times[i] = Duration{std::max<std::int64_t>(1, static_cast<std::int64_t>(stretched))};
  }
  LocalDeadlines result = at_least(operations, times);
  result.held = false;
  return result;
}

std::optional<LocalDeadlines> find_local_deadlines(const TaskSet& set, const OperationSet& operations) {
  if (!fits(set, operations)) return std::nullopt;
  const std::size_t count = operations.operations.size();
  std::vector<Duration> needs = worst_times(operations);
  for (Duration& need : needs) need = std::max(need, Duration{1});  // a deadline is never 0
  for (std::size_t task = 0; task < set.tasks.size(); ++task)
    for (const auto& stream : operations.jobs[task].front())
      needs[stream.front()] = add_saturating(needs[stream.front()], set.tasks[task].jitter);
  for (std::size_t task = 0; task < set.tasks.size(); ++task) {  // so no sum below is too large
    const Duration way = longest_way(operations, needs, TaskId{task});
    if (way > set.tasks[task].deadline || way == Duration::max()) return std::nullopt;
  }
  std::vector<double> even(count, 1);
  for (std::vector<double>& weights : std::array{first_weights(operations), std::move(even)})
    if (auto found = search(set, operations, needs, weights)) return found;
  return std::nullopt;
}

}  // namespace tutti::internal
