#include "sched/overlap/overlap_verdict.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>

#include <fmt/format.h>

#include "sched/analyses/np_edf_response_time.hpp"
#include "sched/analyses/np_fp_response_time.hpp"
#include "sched/tasks/producer_cores.hpp"

namespace tutti::internal {
namespace {

/// Why no local deadlines were found.
std::vector<std::string> doubts(const TaskSet& set, const OverlapVerdict& verdict) {
  const std::size_t bottleneck = verdict.bottleneck();
  const std::string& name = verdict.operations.resources[bottleneck].name;
  if (!fits(set, verdict.operations))
    return {
        fmt::format("'{}' can be in demand for {:.1f} % of the time, with copies at the rates that they have beside "
                    "others",
                    name, 100 * verdict.utilization[bottleneck])};
  return {
      fmt::format("no local deadlines were found that every resource keeps; '{}' is used most, for up to {:.1f} % of "
                  "the time",
                  name, 100 * verdict.utilization[bottleneck])};
}

/// [operations] worst response of each from its guard; its local deadline where no test gives one.
std::vector<Duration> responses_of(const TaskSet& set, const OperationSet& operations,
                                   const LocalDeadlines& deadlines) {
  const Policy policy = policy_of_resources(set.policy);
  std::vector<std::vector<std::optional<Duration>>> of_resource;
  for (const auto& on : timings_by_resource(set, operations, deadlines))
    of_resource.push_back(policy == Policy::Edf ? np_edf_response_time(on, policy).worst_response
                                                : np_fp_response_time(on, policy).worst_response);
  std::vector<std::size_t> met(of_resource.size());
  std::vector<Duration> responses;
  for (std::size_t i = 0; i < operations.operations.size(); ++i) {
    const std::size_t resource = operations.operations[i].resource;
    const std::size_t place = met[resource]++;
    const auto& known = of_resource[resource];
    std::optional<Duration> response = place < known.size() ? known[place] : std::nullopt;
    if (response && !deadlines.held) *response -= deadlines.guards[i];
    responses.push_back(std::min(response.value_or(Duration::max()), deadlines.deadlines[i]));
  }
  return responses;
}

/// Local deadlines that let jobs end sooner: part of what each has beyond its response is taken away, as much as every
/// resource still keeps.
LocalDeadlines tightened(const TaskSet& set, const OperationSet& operations, const LocalDeadlines& found) {
  constexpr std::array kKept{0.0, 0.125, 0.25, 0.5};  // parts of what is left
  const std::vector<Duration> responses = responses_of(set, operations, found);
  for (const double kept : kKept) {
    std::vector<Duration> wanted;
    for (std::size_t i = 0; i < responses.size(); ++i)
      wanted.push_back(
          std::max(Duration{1}, responses[i]) +
          Duration{static_cast<std::int64_t>(kept * static_cast<double>((found.deadlines[i] - responses[i]).count()))});
    const LocalDeadlines tight = at_least(operations, wanted);
    if (keep(set, operations, tight)) return tight;
  }
  return found;
}

/// [tasks] worst response: when the last operation of a job is over.
std::vector<std::optional<Duration>> responses(const TaskSet& set, const OperationSet& operations,
                                               const LocalDeadlines& deadlines) {
  const std::vector<Duration> of_operations = responses_of(set, operations, deadlines);
  std::vector<std::optional<Duration>> worst;
  for (const auto& job : operations.jobs) {
    Duration end{};
    for (const auto& stream : job.back())
      for (const std::size_t operation : stream)
        end = std::max(end, deadlines.guards[operation] + of_operations[operation]);
    worst.emplace_back(end);
  }
  return worst;
}

/// The same without holding operations, where every resource keeps that, too: the bounds stay, and jobs mostly end
/// sooner.
LocalDeadlines released(const TaskSet& set, const OperationSet& operations, const LocalDeadlines& held) {
  LocalDeadlines released = held;
  released.held = false;
  if (!keep(set, operations, released)) return held;
  return responses(set, operations, released) == responses(set, operations, held) ? released : held;
}

/// The most cores of a cpu that the host work of a set can have at once.
int cores_used(const TaskSet& set) {
  if (!set.machine) return 1;
  std::map<VertexId, int> tasks;
  for (const Task& task : set.tasks)
    for (const auto& [cpu, time] : host_times(set, task)) ++tasks[cpu];
  int most = 1;
  for (const auto& [cpu, count] : tasks) most = std::max(most, std::min(count, set.machine->vertex(cpu).cores));
  return most;
}

/// What to join, in the order in which it is tried. GPUs with their engines: all, each alone, all but each. Then
/// engines alone, of all GPUs and of each; of a small set with each choice of GPUs beside, and all of it with fewer
/// cores.
std::vector<Joining> choices_to_join(const TaskSet& set, const OperationSet& apart) {
  constexpr std::size_t kMostGpus = 16;  // of which each is tried
  constexpr std::size_t kSmall = 64;     // operations
  const std::vector<VertexId> all = gpus_of(set);
  const std::span<const VertexId> each(all.data(), all.size() > 1 && all.size() <= kMostGpus ? all.size() : 0);
  std::vector<std::vector<VertexId>> gpus{{}, all};
  for (const VertexId gpu : each) gpus.push_back({gpu});
  for (const VertexId gpu : each) {
    gpus.push_back(all);
    std::erase(gpus.back(), gpu);
  }
  std::vector<Joining> engines{{}, {.peers = all}, {.engines = all, .peers = all}};
  for (const VertexId gpu : each) {
    engines.push_back({.peers = {gpu}});
    engines.push_back({.engines = {gpu}, .peers = {gpu}});
  }
  std::vector<Joining> choices;
  for (std::size_t e = 0; e < engines.size(); ++e)
    for (std::size_t g = 0; g < gpus.size(); ++g) {
      if (e > 0 && g > 0 && apart.operations.size() > kSmall) break;
      choices.push_back(engines[e]);
      choices.back().gpus = gpus[g];
    }
  const std::size_t count = apart.operations.size() > kSmall ? 0 : choices.size();
  for (int cores = cores_used(set) - 1; cores > 0; --cores)
    for (std::size_t c = 0; c < count; ++c) {
      choices.push_back(choices[c]);
      choices.back().most_cores = cores;
    }
  return choices;
}

/// Operations with the local deadlines that were found for them.
struct Kept {
  OperationSet operations;
  LocalDeadlines deadlines;
};

/// [operations] the resource of each: what joining decides.
std::vector<std::size_t> resources_of(const OperationSet& operations) {
  std::vector<std::size_t> resources;
  for (const Operation& operation : operations.operations) resources.push_back(operation.resource);
  return resources;
}

/// Every engine for itself, or some joined.
/// @param apart  the former
std::optional<Kept> find_kept(const TaskSet& set, const OperationSet& apart) {
  if (auto found = find_local_deadlines(set, apart)) return Kept{apart, *std::move(found)};
  std::set<std::vector<std::size_t>> tried{resources_of(apart)};
  for (const Joining& choice : choices_to_join(set, apart)) {
    auto joined = operations_of(set, choice);
    if (!joined || !tried.insert(resources_of(*joined)).second || !fits(set, *joined)) continue;
    if (auto found = find_local_deadlines(set, *joined)) return Kept{*std::move(joined), *std::move(found)};
  }
  return std::nullopt;
}

/// A verdict without an answer yet.
OverlapVerdict begin(const TaskSet& set, OperationSet operations) {
  OverlapVerdict verdict;
  verdict.operations = std::move(operations);
  verdict.worst_responses.resize(set.tasks.size());
  verdict.utilization.resize(verdict.operations.resources.size());
  for (const Operation& operation : verdict.operations.operations)
    verdict.utilization[operation.resource] +=
        as_ns(operation.worst()) / as_ns(set.tasks[operation.task.index()].period);
  return verdict;
}

}  // namespace

std::size_t OverlapVerdict::bottleneck() const {
  return static_cast<std::size_t>(std::ranges::max_element(utilization) - utilization.begin());
}

OverlapVerdict with_deadlines(const TaskSet& set, OperationSet operations, const LocalDeadlines& found) {
  OverlapVerdict verdict = begin(set, std::move(operations));
  verdict.answer = Answer::Schedulable;
  verdict.deadlines = released(set, verdict.operations, tightened(set, verdict.operations, found));
  verdict.worst_responses = responses(set, verdict.operations, *verdict.deadlines);
  return verdict;
}

Expected<OverlapVerdict> decide_overlapping(const TaskSet& set) {
  auto apart = operations_of(set);
  if (!apart) return tl::unexpected(std::move(apart.error()));
  std::vector<OverlapRefusal> refusals = refusals_by_load(set, *apart);
  if (refusals.empty()) refusals = refusals_by_demand(set, *apart);
  if (refusals.empty())
    if (auto kept = find_kept(set, *apart)) return with_deadlines(set, std::move(kept->operations), kept->deadlines);
  OverlapVerdict verdict = begin(set, *std::move(apart));
  verdict.answer = refusals.empty() ? Answer::Unknown : Answer::NotSchedulable;
  for (const OverlapRefusal& refusal : refusals) verdict.reasons.push_back(refusal.reason);
  if (refusals.empty()) verdict.reasons = doubts(set, verdict);
  verdict.refusals = std::move(refusals);
  return verdict;
}

bool may_fit(const TaskSet& set) {
  const auto apart = operations_of(set);
  if (!apart || is_overloaded(set, *apart)) return false;
  return fits(set, *apart) || std::ranges::any_of(choices_to_join(set, *apart), [&](const Joining& choice) {
           const auto joined = operations_of(set, choice);
           return joined && fits(set, *joined);
         });
}

Answer answer_overlapping(const TaskSet& set) {
  const auto apart = operations_of(set);
  if (!apart) return Answer::Unknown;
  if (is_overloaded(set, *apart) || is_overdemanded(set, *apart)) return Answer::NotSchedulable;
  return find_kept(set, *apart) ? Answer::Schedulable : Answer::Unknown;
}

}  // namespace tutti::internal
