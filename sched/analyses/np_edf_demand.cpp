#include "sched/analyses/np_edf_demand.hpp"

#include <algorithm>

#include "model/base/expects.hpp"
#include "sched/analyses/demand.hpp"
#include "sched/analyses/utilization.hpp"

namespace tutti::internal {
namespace {

/// Upper bound on every t that fails, from h(t) <= U t + X with X = sum of (T - (D - J)) C / T. This holds from
/// t = max (D - J) on, where nothing blocks any more, so failure requires t < X / (1 - U). X and 1 - U are rounded so
/// that the bound only grows.
/// @source [GRS96] the bound from the utilisation.
/// @pre     no `first` is negative.
template <class Int>
std::optional<Wide> utilization_bound(const DemandCurve<Int>& curve, UnsignedWide slack) {
  Wide offset = 0;  // X, rounded up
  for (const DemandStep<Int>& step : curve.steps()) offset += utilization_offset(step);
  if (offset <= 0) return curve.unblocked_from();
  if (slack == 0 || (offset >> 63) != 0) return std::nullopt;
  const UnsignedWide length = (static_cast<UnsignedWide>(offset) << 64) / slack + 1;
  if (length >= static_cast<UnsignedWide>(kFar)) return std::nullopt;
  return std::max<Wide>(curve.unblocked_from(), static_cast<Wide>(length));
}

/// Length L of the synchronous busy period: all tasks become ready together and then every T. If any t fails, one below
/// L does.
///
/// All jobs ready before L fill it exactly, and they include the first of every task, hence any blocker. So for t >= L
/// the load at t is at most L + h(t - L), and where t fails, t - L has failed before. Jitter enters the load only
/// through D - J, so nothing changes when the tasks are taken as punctual with deadline D - J. Where U = 1, L is at
/// most a hyperperiod.
/// @source [GRS96] the synchronous busy period.
template <class Int>
std::optional<Wide> busy_period_bound(const DemandCurve<Int>& curve, StepBudget& budget) {
  Int length = 0;
  for (const DemandStep<Int>& step : curve.steps()) length += step.cost;
  while (length < kEndOf<Int>) {
    if (!budget.spend(static_cast<std::int64_t>(curve.steps().size()))) return std::nullopt;
    Int work = 0;
    for (const DemandStep<Int>& step : curve.steps())
      work = capped_sum(work, work_of(ceil_div(length, step.period), step.cost));
    if (work == length) return length;
    length = work;
  }
  return std::nullopt;
}

/// Walks down from the utilisation bound or, where it is missing or the walk too long, from the end of the busy period.
/// @pre  U <= 1, no `first` is negative.
template <class Int>
WalkEnd search(const DemandCurve<Int>& curve, UnsignedWide slack) {
  const auto visits = static_cast<std::int64_t>(curve.steps().size()) + 1;
  std::optional<Wide> bound = utilization_bound(curve, slack);
  if (bound && *bound < kEndOf<Int>) {
    StepBudget few(64 * visits);
    const WalkEnd end = walk_down(curve, static_cast<Int>(*bound), few);
    if (end != WalkEnd::OutOfBudget) return end;
  }
  StepBudget for_bound(kVisitsPerWalk / 4);
  const std::optional<Wide> busy = busy_period_bound(curve, for_bound);
  if (!bound || (busy && *busy < *bound)) bound = busy;
  if (bound && *bound < kEndOf<Int>) {
    StepBudget budget(kVisitsPerWalk);
    const WalkEnd end = walk_down(curve, static_cast<Int>(*bound), budget);
    if (end != WalkEnd::OutOfBudget) return end;
  }
  // Failing intervals are often short: walk up from 0, too.
  StepBudget budget(kVisitsPerWalk / 4);
  return walk_up(curve, static_cast<Int>(std::min<Wide>(bound.value_or(kFar), kEndOf<Int>)), budget).end;
}

template <class Int>
WalkEnd decide(std::span<const TaskTiming> tasks) {
  const DemandCurve<Int> curve(tasks);
  UnsignedWide slack = curve.slack();
  if (slack == 0) {
    const UtilizationSum sum = utilization_sum(tasks);
    if (sum.compare_with_one() > 0) return WalkEnd::Failure;
    slack = sum.slack();
  }
  if (curve.first_point() < 0) return WalkEnd::Failure;  // ready only after its deadline
  return search(curve, slack);
}

}  // namespace

Answer np_edf_demand_answer(std::span<const TaskTiming> tasks, Policy policy) {
  expect_valid_timing(tasks);
  TUTTI_EXPECTS(policy == Policy::Edf, "processor demand answers for EDF only");
  if (tasks.empty()) return Answer::Schedulable;
  return answer_of(fits_64_bits(tasks) ? decide<std::int64_t>(tasks) : decide<Wide>(tasks));
}

Verdict np_edf_demand(std::span<const TaskTiming> tasks, Policy policy) {
  Verdict verdict;
  verdict.test = kNpEdfDemand;
  verdict.exactness = Exactness::Exact;
  verdict.answer = np_edf_demand_answer(tasks, policy);
  if (verdict.answer == Answer::NotSchedulable) refuse_by_demand(verdict, tasks);
  if (verdict.answer == Answer::Unknown)
    verdict.reason =
        "the utilisation is too close to 1 for periods so far apart: too many intervals would have to be tested";
  return verdict;
}

}  // namespace tutti::internal
