#include <algorithm>
#include <array>

#include "sched/analyses/np_edf_demand.hpp"
#include "sched/analyses/np_edf_jeffay.hpp"
#include "sched/analyses/np_edf_response_time.hpp"
#include "sched/analyses/np_exploration.hpp"
#include "sched/analyses/np_fp_response_time.hpp"
#include "sched/analyses/utilization_check.hpp"
#include "sched/analysis.hpp"

namespace tutti {
namespace {

bool always(std::span<const TaskTiming>, Policy) { return true; }
bool under_edf(std::span<const TaskTiming>, Policy policy) { return policy == Policy::Edf; }
bool under_fixed_priority(std::span<const TaskTiming>, Policy policy) { return policy != Policy::Edf; }

constexpr std::array kAnalyses{
    Analysis{kUtilizationCheck, Exactness::Necessary, always, utilization_check},
    Analysis{kNpEdfJeffay, Exactness::Exact, np_edf_jeffay_applies, np_edf_jeffay},
    Analysis{kNpEdfDemand, Exactness::Exact, under_edf, np_edf_demand},
    Analysis{kNpEdfResponseTime, Exactness::Exact, under_edf, np_edf_response_time},
    Analysis{kNpFpResponseTime, Exactness::Exact, under_fixed_priority, np_fp_response_time},
    Analysis{kNpExploration, Exactness::Exact, np_exploration_applies, np_exploration, Arrivals::Periodic},
};

}  // namespace

std::span<const Analysis> analyses() { return kAnalyses; }

Answer answer_of(std::span<const TaskTiming> tasks, Policy policy) {
  for (const Analysis& analysis : analyses()) {
    if (!analysis.applies(tasks, policy)) continue;
    if (const Answer answer = ask(analysis, tasks, policy).answer; answer != Answer::Unknown) return answer;
  }
  return Answer::Unknown;
}

Verdict ask(const Analysis& analysis, std::span<const TaskTiming> tasks, Policy policy) {
  Verdict verdict = analysis.decide(tasks, policy);
  const bool periodic =
      std::ranges::any_of(tasks, [](const TaskTiming& task) { return task.arrivals == Arrivals::Periodic; });
  if (verdict.exactness != Exactness::Exact || !periodic || analysis.exact_for == Arrivals::Periodic) return verdict;
  verdict.exactness = Exactness::Sufficient;
  if (verdict.answer != Answer::NotSchedulable) return verdict;
  verdict.answer = Answer::Unknown;
  verdict.witness.reset();
  verdict.late_run.clear();
  verdict.reason = "sporadic arrivals would miss a deadline, which says nothing about these offsets";
  return verdict;
}

}  // namespace tutti
