#include "runtime/dispatch/led_ways.hpp"

#include <algorithm>
#include <numeric>

namespace tutti::internal {

LedWays led_ways(const OperationSet& set, const LocalDeadlines& deadlines, Policy policy, std::vector<LedTask>& tasks) {
  LedWays ways;
  ways.held = deadlines.held;
  ways.resources = static_cast<std::uint32_t>(set.resources.size());
  const std::size_t count = set.operations.size();
  std::vector<std::size_t> order(count);  // [places] the operation there
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t operation) { return set.operations[operation].resource; });
  std::vector<std::uint32_t> place(count);  // [operations]
  for (std::uint32_t i = 0; i < count; ++i) place[order[i]] = i;

  ways.operations.resize(count);
  std::uint32_t next_batch = 0;
  for (std::size_t o = 0; o < count; ++o) {
    const Operation& operation = set.operations[o];
    LedOperation& led = ways.operations[place[o]];
    LedTask& task = tasks[operation.task.index()];
    led.task = static_cast<std::uint32_t>(operation.task.index());
    led.resource = static_cast<std::uint32_t>(operation.resource);
    led.first_batch = next_batch;
    led.regions = static_cast<std::uint32_t>(operation.regions().size());
    led.guard = deadlines.guards[o].count();
    led.key = policy_of_resources(policy) == Policy::Edf
                  ? add_saturating(deadlines.guards[o], deadlines.deadlines[o]).count()
                  : deadlines.from_soonest(o).count();
    led.worst = operation.worst().count();
    if (task.batches == 0) task.first_batch = next_batch;
    task.batches += led.regions;
    next_batch += led.regions;
  }
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].first_step = static_cast<std::uint32_t>(ways.steps.size());
    tasks[i].steps = static_cast<std::uint32_t>(set.jobs[i].size());
    for (const StepOperations& step : set.jobs[i]) {
      ways.steps.push_back({static_cast<std::uint32_t>(ways.streams.size()), static_cast<std::uint32_t>(step.size())});
      for (const auto& stream : step) {
        ways.streams.push_back(place[stream.front()]);
        for (std::size_t s = 0; s + 1 < stream.size(); ++s)
          ways.operations[place[stream[s]]].follower = place[stream[s + 1]];
      }
    }
  }
  return ways;
}

}  // namespace tutti::internal
