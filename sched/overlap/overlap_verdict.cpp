#include "sched/overlap/overlap_verdict.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sched/analyses/np_edf_response_time.hpp"
#include "sched/analyses/np_fp_response_time.hpp"
#include "sched/analyses/utilization.hpp"

namespace tutti::internal {
namespace {

/// Utilization of each resource. @param time  of an operation
template <class Time>
std::vector<UtilizationSum> utilizations(const TaskSet& set, const OperationSet& operations, const Time& time) {
  std::vector<UtilizationSum> sums(operations.resources.size());
  for (const Operation& operation : operations.operations)
    sums[operation.resource].add(time(operation), set.tasks[operation.task.index()].period);
  return sums;
}

/// What proves that a deadline can be missed, whatever the order.
std::vector<std::string> refusals(const TaskSet& set, const OperationSet& operations) {
  std::vector<std::string> reasons;
  const auto sums = utilizations(set, operations, [](const Operation& operation) { return operation.alone; });
  for (std::size_t r = 0; r < sums.size(); ++r)
    if (sums[r].compare_with_one() > 0)
      reasons.push_back(
          fmt::format("'{}' is in demand for more than all the time, even if every copy runs alone; use another "
                      "engine or GPU for part of its work",
                      operations.resources[r].name));
  for (std::size_t i = 0; i < set.tasks.size(); ++i) {
    const Task& task = set.tasks[i];
    const Duration latest = add_saturating(task.jitter, longest_way(operations, TaskId{i}, &Operation::alone));
    if (latest > task.deadline)
      reasons.push_back(
          fmt::format("task '{}' takes up to {} from its arrival with the machine for itself; its deadline "
                      "is {}",
                      task.name, to_string(latest), to_string(task.deadline)));
  }
  return reasons;
}

/// Why no local deadlines were found.
std::vector<std::string> doubts(const TaskSet& set, const OverlapVerdict& verdict) {
  const std::size_t bottleneck = verdict.bottleneck();
  const std::string& name = verdict.operations.resources[bottleneck].name;
  const auto sums = utilizations(set, verdict.operations, [](const Operation& operation) { return operation.worst(); });
  if (sums[bottleneck].compare_with_one() > 0)
    return {fmt::format("'{}' can be in demand for {:.1f} % of the time where other copies run beside its own", name,
                        100 * verdict.utilization[bottleneck])};
  return {
      fmt::format("no local deadlines were found that every resource keeps; '{}' is used most, for up to {:.1f} % of "
                  "the time",
                  name, 100 * verdict.utilization[bottleneck])};
}

/// Worst responses of tasks: from those of the operations that end their jobs.
std::vector<std::optional<Duration>> responses(const TaskSet& set, const OperationSet& operations,
                                               const LocalDeadlines& deadlines) {
  const auto timings = timings_by_resource(set, operations, deadlines);
  std::vector<std::vector<std::optional<Duration>>> of_resource;
  for (const auto& on : timings) {
    const Policy policy = policy_of_resources(set.policy);
    of_resource.push_back(policy == Policy::Edf ? np_edf_response_time(on, policy).worst_response
                                                : np_fp_response_time(on, policy).worst_response);
  }
  std::vector<std::size_t> met(timings.size());
  std::vector<Duration> ends;  // [operations] from the arrival
  for (std::size_t i = 0; i < operations.operations.size(); ++i) {
    const std::size_t resource = operations.operations[i].resource;
    const std::size_t place = met[resource]++;
    const auto& known = of_resource[resource];
    const auto response = place < known.size() ? known[place] : std::nullopt;
    ends.push_back(deadlines.guards[i] + std::min(response.value_or(Duration::max()), deadlines.deadlines[i]));
  }
  std::vector<std::optional<Duration>> worst;
  for (const auto& job : operations.jobs) {
    Duration end{};
    for (const auto& stream : job.back())
      for (const std::size_t operation : stream) end = std::max(end, ends[operation]);
    worst.emplace_back(end);
  }
  return worst;
}

}  // namespace

std::size_t OverlapVerdict::bottleneck() const {
  return static_cast<std::size_t>(std::ranges::max_element(utilization) - utilization.begin());
}

OverlapVerdict with_deadlines(const TaskSet& set, OperationSet operations) {
  OverlapVerdict verdict;
  verdict.operations = std::move(operations);
  verdict.worst_responses.resize(set.tasks.size());
  verdict.utilization.resize(verdict.operations.resources.size());
  for (const Operation& operation : verdict.operations.operations)
    verdict.utilization[operation.resource] +=
        as_ns(operation.worst()) / as_ns(set.tasks[operation.task.index()].period);
  verdict.deadlines = find_local_deadlines(set, verdict.operations);
  if (!verdict.deadlines) {
    verdict.reasons = doubts(set, verdict);
    return verdict;
  }
  verdict.answer = Answer::Schedulable;
  verdict.worst_responses = responses(set, verdict.operations, *verdict.deadlines);
  return verdict;
}

Expected<OverlapVerdict> decide_overlapping(const TaskSet& set) {
  auto operations = operations_of(set);
  if (!operations) return tl::unexpected(std::move(operations.error()));
  std::vector<std::string> reasons = refusals(set, *operations);
  OverlapVerdict verdict = with_deadlines(set, *std::move(operations));
  if (reasons.empty()) return verdict;
  verdict.answer = Answer::NotSchedulable;
  verdict.reasons = std::move(reasons);
  return verdict;
}

}  // namespace tutti::internal
