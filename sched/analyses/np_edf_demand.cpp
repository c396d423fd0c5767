#include "sched/analyses/np_edf_demand.hpp"

#include <algorithm>

#include "model/expects.hpp"
#include "sched/analyses/demand.hpp"
#include "sched/utilization.hpp"

namespace tutti {
namespace {

/// Every t that fails is below this, from h(t) <= U t + X with X = sum of (T - (D - J)) C / T, which holds from
/// t = max (D - J) on; there nothing blocks any more, so failure asks for t < X / (1 - U).
/// X and 1 - U are rounded so that the bound only grows.
/// @source [GRS96] the bound from the utilisation.
/// @pre     no `first` is negative.
std::optional<Wide> utilization_bound(const DemandCurve& curve, UnsignedWide slack) {
  Wide offset = 0;  // X, rounded up
  for (const DemandStep& step : curve.steps()) {
    const Wide scaled = (Wide{step.period} - step.first) * step.cost;  // within 2^127: each factor is within 2^63
    offset += scaled > 0 ? ceil_div(scaled, step.period) : -floor_div(-scaled, step.period);
  }
  if (offset <= 0) return curve.unblocked_from();
  if (slack == 0 || (offset >> 63) != 0) return std::nullopt;
  const UnsignedWide length = (static_cast<UnsignedWide>(offset) << 64) / slack + 1;
  if (length >= static_cast<UnsignedWide>(kFar)) return std::nullopt;
  return std::max(curve.unblocked_from(), static_cast<Wide>(length));
}

/// If any t fails, one below this does: the end L of the busy period of jobs that all become ready together and then
/// every T.
///
/// All jobs ready before L fill it exactly, and they include the first of every task, hence any blocker. So for t >= L
/// the load at t is at most L + h(t - L), and where t fails, t - L has failed before. Jitter enters the load only
/// through D - J, so nothing changes when the tasks are taken as punctual with deadline D - J. Where U = 1, L is at
/// most a hyperperiod.
/// @source [GRS96] the synchronous busy period.
std::optional<Wide> busy_period_bound(const DemandCurve& curve, StepBudget& budget) {
  Wide length = 0;
  for (const DemandStep& step : curve.steps()) length += step.cost;
  while (length < kFar) {
    if (!budget.spend(static_cast<std::int64_t>(curve.steps().size()))) return std::nullopt;
    Wide work = 0;
    for (const DemandStep& step : curve.steps())
      work = capped_sum(work, work_of(ceil_div(length, step.period), step.cost));
    if (work == length) return length;
    length = work;
  }
  return std::nullopt;
}

std::optional<Wide> smaller(std::optional<Wide> a, std::optional<Wide> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

/// A length below which some t fails if any does, where one is within reach.
std::optional<Wide> bound_on_failures(const DemandCurve& curve, const UtilizationSum& sum) {
  const std::optional<Wide> by_utilization = utilization_bound(curve, sum.slack());
  if (by_utilization == curve.unblocked_from()) return by_utilization;  // short enough: no longer than the deadlines
  StepBudget budget(kVisitsPerWalk / 4);
  return smaller(by_utilization, busy_period_bound(curve, budget));
}

/// @pre  U <= 1.
WalkEnd search(std::span<const TaskTiming> tasks, const UtilizationSum& sum) {
  const DemandCurve curve(tasks);
  if (curve.first_point() < 0) return WalkEnd::Failure;  // ready only after its deadline
  const std::optional<Wide> bound = bound_on_failures(curve, sum);
  if (bound) {
    StepBudget budget(kVisitsPerWalk);
    const WalkEnd end = walk_down(curve, *bound, budget);
    if (end != WalkEnd::OutOfBudget) return end;
  }
  // Failures are often short ones: look from the near end, too.
  StepBudget budget(kVisitsPerWalk / 4);
  return walk_up(curve, bound.value_or(kFar), budget).end;
}

}  // namespace

Verdict np_edf_demand(std::span<const TaskTiming> tasks, Policy policy) {
  expect_valid_timing(tasks);
  TUTTI_EXPECTS(policy == Policy::Edf, "processor demand answers for EDF only");
  Verdict verdict;
  verdict.test = kNpEdfDemand;
  verdict.exactness = Exactness::Exact;
  verdict.answer = Answer::NotSchedulable;
  const UtilizationSum sum = utilization_sum(tasks);
  if (tasks.empty()) {
    verdict.answer = Answer::Schedulable;
  } else if (sum.compare_with_one() <= 0) {
    switch (search(tasks, sum)) {
      case WalkEnd::NoFailure: verdict.answer = Answer::Schedulable; break;
      case WalkEnd::Failure: break;
      case WalkEnd::OutOfBudget: verdict.answer = Answer::Unknown; break;
    }
  }
  if (verdict.answer == Answer::NotSchedulable) refuse_by_demand(verdict, tasks);
  if (verdict.answer == Answer::Unknown)
    verdict.reason =
        "the utilisation is too close to 1 for periods so far apart: too many intervals would have to be tested";
  return verdict;
}

}  // namespace tutti
