#include "sched/analyses/np_edf_jeffay.hpp"

#include <algorithm>

#include "model/base/expects.hpp"
#include "sched/analyses/demand.hpp"
#include "sched/analyses/utilization.hpp"

namespace tutti::internal {
namespace {

/// The right-hand side of the theorem, largest over i, is the load of the interval L.
///
/// For one L the sum is the same for every i with T_i > L, since a floor is 0 from there on: only the largest such C_i
/// matters, which is the blocking. From T_n on the condition has no i left, and U <= 1 is all that is asked.
template <class Int>
WalkEnd walk(std::span<const TaskTiming> tasks) {
  const DemandCurve<Int> curve(tasks);
  if (curve.slack() == 0 && !utilization_at_most_one(tasks)) return WalkEnd::Failure;
  StepBudget budget(kVisitsPerWalk);
  return walk_down(curve, curve.unblocked_from(), budget);
}

}  // namespace

bool np_edf_jeffay_applies(std::span<const TaskTiming> tasks, Policy policy) {
  return policy == Policy::Edf && std::ranges::all_of(tasks, [](const TaskTiming& task) {
           return task.deadline == task.period && task.jitter == Duration::zero() && !task.regions;
         });
}

Answer np_edf_jeffay_answer(std::span<const TaskTiming> tasks, Policy policy) {
  expect_valid_timing(tasks);
  TUTTI_EXPECTS(np_edf_jeffay_applies(tasks, policy), "the theorem covers EDF with D = T and no jitter only");
  if (tasks.empty()) return Answer::Schedulable;
  return answer_of(fits_64_bits(tasks) ? walk<std::int64_t>(tasks) : walk<Wide>(tasks));
}

Verdict np_edf_jeffay(std::span<const TaskTiming> tasks, Policy policy) {
  Verdict verdict;
  verdict.test = kNpEdfJeffay;
  verdict.exactness = Exactness::Exact;
  verdict.answer = np_edf_jeffay_answer(tasks, policy);
  if (verdict.answer == Answer::NotSchedulable) refuse_by_demand(verdict, tasks);
  if (verdict.answer == Answer::Unknown)
    verdict.reason = "the periods are too far apart: too many intervals lie below the longest one to test them all";
  return verdict;
}

}  // namespace tutti::internal
