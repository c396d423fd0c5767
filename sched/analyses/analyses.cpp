#include <algorithm>
#include <array>

#include "sched/analyses/analysis.hpp"
#include "sched/analyses/np_edf_demand.hpp"
#include "sched/analyses/np_edf_jeffay.hpp"
#include "sched/analyses/np_edf_response_time.hpp"
#include "sched/analyses/np_exploration.hpp"
#include "sched/analyses/np_fp_response_time.hpp"
#include "sched/analyses/utilization_check.hpp"

namespace tutti::internal {
namespace {

bool always(std::span<const TaskTiming>, Policy) { return true; }
bool under_edf(std::span<const TaskTiming>, Policy policy) { return policy == Policy::Edf; }
bool under_fixed_priority(std::span<const TaskTiming>, Policy policy) { return !is_by_deadline(policy); }

constexpr std::array kAnalyses{
    Analysis{kUtilizationCheck, Exactness::Necessary, always, utilization_check},
    Analysis{kNpEdfJeffay, Exactness::Exact, np_edf_jeffay_applies, np_edf_jeffay, np_edf_jeffay_answer},
    Analysis{kNpEdfDemand, Exactness::Exact, under_edf, np_edf_demand, np_edf_demand_answer},
    Analysis{kNpEdfResponseTime, Exactness::Exact, under_edf, np_edf_response_time},
    Analysis{kNpFpResponseTime, Exactness::Exact, under_fixed_priority, np_fp_response_time, np_fp_answer},
    Analysis{kNpExploration, Exactness::Exact, np_exploration_applies, np_exploration, np_exploration_answer,
             Arrivals::Periodic},
};

bool arrives_with_others(const TaskTiming& task) { return task.arrives_with.has_value(); }

/// Whether the test is exact for sporadic arrivals only, and these tasks arrive strictly periodically or together.
bool is_only_sufficient(const Analysis& analysis, std::span<const TaskTiming> tasks) {
  return analysis.exact_for == Arrivals::Sporadic && std::ranges::any_of(tasks, [](const TaskTiming& task) {
           return task.arrivals == Arrivals::Periodic || arrives_with_others(task);
         });
}

}  // namespace

std::span<const Analysis> analyses() { return kAnalyses; }

Answer answer_of(std::span<const TaskTiming> tasks, Policy policy) {
  for (const Analysis& analysis : analyses()) {
    if (!analysis.applies(tasks, policy)) continue;
    const Answer answer =
        analysis.answer == nullptr ? analysis.decide(tasks, policy).answer : analysis.answer(tasks, policy);
    const bool refuses = answer == Answer::NotSchedulable && analysis.exactness == Exactness::Exact;
    if (answer != Answer::Unknown && !(refuses && is_only_sufficient(analysis, tasks))) return answer;
  }
  return Answer::Unknown;
}

Verdict ask(const Analysis& analysis, std::span<const TaskTiming> tasks, Policy policy) {
  Verdict verdict = analysis.decide(tasks, policy);
  if (verdict.exactness != Exactness::Exact || !is_only_sufficient(analysis, tasks)) return verdict;
  verdict.exactness = Exactness::Sufficient;
  if (verdict.answer != Answer::NotSchedulable) return verdict;
  verdict.answer = Answer::Unknown;
  verdict.witness.reset();
  verdict.late_run.clear();
  verdict.reason =
      std::ranges::any_of(tasks, arrives_with_others)
          ? "tasks that arrive apart would miss a deadline, which says nothing about those that arrive together"
          : "sporadic arrivals would miss a deadline, which says nothing about these offsets";
  return verdict;
}

}  // namespace tutti::internal
