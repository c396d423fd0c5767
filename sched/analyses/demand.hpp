#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/base/step_budget.hpp"
#include "model/base/wide.hpp"
#include "sched/analyses/analysis.hpp"
#include "sched/analyses/divisor.hpp"

namespace tutti::internal {

/// One task in the processor demand: its k-th job (from 0) fits into every interval of at least `first + k period`.
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

/// Largest load of EDF in an interval of length t, as a step function of t.
///
/// The load is the demand h(t) of all jobs ready and due inside, plus the blocking b(t): the longest non-preemptive
/// region of a job with a later deadline, which may have started just before. A task is demand or blocker, never both,
/// so b(t) is the longest region among the tasks with D - J > t: a task with D > t >= D - J has at least one job in the
/// demand, which its blocking cannot exceed. Where a task leaves b(t), its C enters h(t), so the sum never falls as t
/// grows. Jobs of one task become ready in the order in which they arrive.
///
/// @tparam Int  int64 where `fits_64_bits(tasks)`, else Wide. With int64, `load` is asked below `kEndOf` and only where
///              U <= 1.
template <class Int>
class DemandCurve {
 public:
  explicit DemandCurve(std::span<const TaskTiming> tasks);

  /// h(t) + b(t).
  [[nodiscard]] Int load(Int t) const;
  /// The last t' < t where the demand rises, if there is one.
  [[nodiscard]] std::optional<Int> previous_step(Int t) const;
  /// The shortest interval that ends at a deadline. Tasks with C = 0 count, since a blocker delays them as well.
  [[nodiscard]] Int first_point() const { return first_point_; }
  /// No task blocks an interval this long or longer.
  [[nodiscard]] Int unblocked_from() const { return unblocked_from_; }
  /// Tasks with C > 0, in the order of the file.
  [[nodiscard]] std::span<const DemandStep<Int>> steps() const { return steps_; }
  /// A lower bound on 1 - U, in units of 2^-64, from the reciprocals; 0 where they do not suffice.
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
/// Where load(t) < t, no step between load(t) and t can fail, because the load never falls as t grows: the walk jumps
/// to load(t) at once. The argument needs nothing else, so the load may include blocking. A t that is no step fails
/// only if the step before it does.
///
/// @param end  exclusive; the first deadline is always tested, and no t below it can fail.
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

/// Load of an interval of length t, by task; nothing where 64 bits do not hold the numbers.
[[nodiscard]] std::optional<Witness> demand_witness(std::span<const TaskTiming> tasks, Wide t);

/// Turns the verdict into a refusal, with the witness at the smallest failing t, or a sentence where that is out of
/// reach.
void refuse_by_demand(Verdict& verdict, std::span<const TaskTiming> tasks);

/// Ends the program where a number is outside the range that `TaskTiming` states.
void expect_valid_timing(std::span<const TaskTiming> tasks);

}  // namespace tutti::internal
