#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/step_budget.hpp"
#include "model/wide.hpp"
#include "sched/analyses/analysis.hpp"
#include "sched/analyses/divisor.hpp"

namespace tutti {

/// One task as processor demand sees it: its k-th job (from 0) is wholly inside every interval of `first + k period`.
template <class Int>
struct DemandStep {
  Int first = 0;            ///< D - J; negative where a job can be ready only after its deadline
  Divisor<Int> period;      ///< > 0
  std::int64_t cost = 0;    ///< C > 0
  std::int64_t region = 0;  ///< the longest region of its jobs, with which it can block; at most C

  /// Jobs wholly inside an interval of length t.
  [[nodiscard]] Int jobs_within(Int t) const { return t < first ? Int{0} : period.floor(t - first) + 1; }
};

/// (T - (D - J)) C / T, rounded up: h(t) <= U t + the sum of these from t = max (D - J) on.
template <class Int>
[[nodiscard]] Wide utilization_offset(const DemandStep<Int>& step) {
  const std::int64_t period = step.period.number();
  if (step.first == period) return 0;
  const Wide scaled = (Wide{period} - step.first) * step.cost;  // within 2^127: each factor is within 2^63
  return scaled > 0 ? ceil_div(scaled, period) : -floor_div(-scaled, period);
}

/// How much work EDF may have to do inside an interval of length t, as a staircase over t.
///
/// The demand h(t) of all jobs ready and due inside, plus the blocking b(t): the longest job, or region of one that can
/// be preempted between its regions, with a later deadline that may have started just before. A task is demand or
/// blocker, never both, so b(t) is the longest region among the tasks with D - J > t: of a task with D > t >= D - J at
/// least one job counts as demand, which blocking cannot exceed. Where a task leaves b(t), its C enters h(t), so the
/// sum never falls as t grows. Its jobs become ready in the order in which they arrive.
///
/// @tparam Int  int64 where `fits_64_bits(tasks)`, else Wide. With int64, `load` is asked below `kEndOf` and only where
///              U <= 1.
template <class Int>
class DemandCurve {
 public:
  explicit DemandCurve(std::span<const TaskTiming> tasks);

  /// h(t) + b(t).
  [[nodiscard]] Int load(Int t) const;
  /// The last t' < t where the staircase rises, if there is one.
  [[nodiscard]] std::optional<Int> previous_step(Int t) const;
  /// The shortest interval with a deadline at its end; also of tasks with C = 0, which wait for a blocker as well.
  [[nodiscard]] Int first_point() const { return first_point_; }
  /// No task blocks an interval this long or longer.
  [[nodiscard]] Int unblocked_from() const { return unblocked_from_; }
  /// Tasks with C > 0, in the order of the file.
  [[nodiscard]] std::span<const DemandStep<Int>> steps() const { return steps_; }
  /// A lower bound on 1 - U, in units of 2^-64, from the reciprocals; 0 where they do not tell.
  [[nodiscard]] UnsignedWide slack() const;

 private:
  std::vector<DemandStep<Int>> steps_;
  Int first_point_ = kEndOf<Int>;
  Int unblocked_from_ = 0;
};

enum class WalkEnd : std::uint8_t { NoFailure, Failure, OutOfBudget };

[[nodiscard]] constexpr Answer answer_of(WalkEnd end) {
  if (end == WalkEnd::OutOfBudget) return Answer::Unknown;
  return end == WalkEnd::NoFailure ? Answer::Schedulable : Answer::NotSchedulable;
}

/// Quick processor-demand analysis: looks for a t below `end` where the load exceeds t, from the far end towards 0.
///
/// Where the load at t is less than t, no step in between can fail, because the load never rises on the way down: the
/// walk jumps there at once. That argument needs a load that never falls as t grows, and nothing else, so blocking
/// may be part of it. A t that is no step fails only if the step before it does.
///
/// @param end  below the first deadline nothing fails, but that one is looked at always.
/// @source [ZB09] algorithm QPA.
template <class Int>
[[nodiscard]] WalkEnd walk_down(const DemandCurve<Int>& curve, Int end, StepBudget& budget) {
  const Int first = curve.first_point();
  const auto visits = static_cast<std::int64_t>(curve.steps().size()) + 1;
  for (Int t = std::max<Int>(end - 1, first);;) {
    if (!budget.spend(2 * visits)) return WalkEnd::OutOfBudget;
    const Int load = curve.load(t);
    if (load > t) return WalkEnd::Failure;
    if (load <= first) return WalkEnd::NoFailure;
    t = load < t ? load : std::max(first, curve.previous_step(t).value_or(first));
  }
}

/// Where a walk from 0 upwards ended.
template <class Int>
struct FirstFailure {
  WalkEnd end = WalkEnd::NoFailure;
  Int t = 0;  ///< with Failure: the smallest t whose load exceeds it
};

/// The smallest failing t below `end`, found by visiting every step.
template <class Int>
[[nodiscard]] FirstFailure<Int> walk_up(const DemandCurve<Int>& curve, Int end, StepBudget& budget);

/// What must be done in an interval of length t; nothing where 64 bits do not hold the numbers.
[[nodiscard]] std::optional<Witness> demand_witness(std::span<const TaskTiming> tasks, Wide t);

/// Turns the verdict into a refusal, with the witness at the smallest failing t, or a sentence where that is out of
/// reach.
void refuse_by_demand(Verdict& verdict, std::span<const TaskTiming> tasks);

/// Ends the program on a set that breaks what `TaskTiming` promises.
void expect_valid_timing(std::span<const TaskTiming> tasks);

}  // namespace tutti
