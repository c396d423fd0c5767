#include "sched/admission/chain_admission.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "sched/chains/chain_latency.hpp"

namespace tutti::internal {
namespace {

/// A task of the chain whose jobs may end without an output though all keep to their Wcets; null: there is none.
const Task* without_output(const Chain& chain, const TaskSet& set, std::span<const TaskTiming> timings) {
  for (const TaskId task : chain.tasks) {
    const OverrunRule& rule = set.tasks[task.index()].overrun;
    const bool leaves_out = rule.policy != OverrunPolicy::Continue || rule.suspend_after > 0;
    if (leaves_out && rule.budget && *rule.budget < timings[task.index()].wcet) return &set.tasks[task.index()];
  }
  return nullptr;
}

/// The bound of a chain in words.
std::string bound_text(const std::optional<Duration>& latency, const Task* without) {
  if (without != nullptr)
    return fmt::format("there is no bound, since jobs of '{}' over their budget may end without a result",
                       without->name);
  return fmt::format("the bound is {}", latency ? to_string(*latency) : "more than 292 years");
}

}  // namespace

bool has_chain_deadlines(const TaskSet& set) {
  return std::ranges::any_of(set.chains, [](const Chain& chain) { return chain.deadline.has_value(); });
}

AdmissionVerdict with_chains(AdmissionVerdict verdict, const TaskSet& set) {
  verdict.chain_latencies.assign(set.chains.size(), std::nullopt);
  if (verdict.answer != Answer::Schedulable) return verdict;
  for (std::size_t i = 0; i < set.chains.size(); ++i) {
    const Chain& chain = set.chains[i];
    const auto stages = stages_of(chain, set, verdict.timings, verdict.worst_responses, verdict.partitions);
    const Task* without = without_output(chain, set, verdict.timings);
    const auto latency = without == nullptr ? worst_case_latency(stages, set.policy) : std::nullopt;
    verdict.chain_latencies[i] = latency;
    if (!chain.deadline || (latency && *latency <= *chain.deadline)) continue;
    verdict.answer = Answer::Unknown;
    verdict.admitted.reset();
    verdict.reasons.push_back(fmt::format("chain '{}': no proof that its reaction time keeps its deadline of {}; {}",
                                          chain.name, to_string(*chain.deadline), bound_text(latency, without)));
  }
  if (verdict.admitted) verdict.admitted->chain_latencies_ = verdict.chain_latencies;
  return verdict;
}

}  // namespace tutti::internal
