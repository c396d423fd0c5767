#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sched/analyses/step_budget.hpp"
#include "sched/analyses/wide.hpp"
#include "sched/analysis.hpp"

namespace tutti {

/// One task as processor demand sees it: its k-th job (from 0) is wholly inside every interval of `first + k period`.
struct DemandStep {
  std::int64_t first = 0;   ///< D - J; negative where a job can be ready only after its deadline
  std::int64_t period = 1;  ///< > 0
  std::int64_t cost = 0;    ///< C > 0
  TaskId task;
};

/// How much work non-preemptive EDF may have to do inside an interval of length t, as a staircase over t.
///
/// The demand h(t) of all jobs ready and due inside, plus the blocking b(t): the longest job with a later deadline that
/// may have started just before. A task is demand or blocker, never both, so b(t) is the largest C among the tasks
/// with D - J > t: of a task with D > t >= D - J at least one job counts as demand, which blocking cannot exceed.
/// Where a task leaves b(t), its C enters h(t), so the sum never falls as t grows. Its jobs become ready in the order
/// in which they arrive.
class DemandCurve {
 public:
  explicit DemandCurve(std::span<const TaskTiming> tasks);

  /// h(t) + b(t).
  [[nodiscard]] Wide load(Wide t) const;
  /// The last t' < t where the staircase rises, if there is one.
  [[nodiscard]] std::optional<Wide> previous_step(Wide t) const;
  /// The shortest interval with a deadline at its end; also of tasks with C = 0, which wait for a blocker as well.
  [[nodiscard]] Wide first_point() const { return first_point_; }
  /// No task blocks an interval this long or longer.
  [[nodiscard]] Wide unblocked_from() const { return steps_.empty() ? first_point_ : Wide{steps_.back().first}; }
  /// Tasks with C > 0, by rising `first`.
  [[nodiscard]] std::span<const DemandStep> steps() const { return steps_; }
  /// The largest C among `steps()[index..]`.
  [[nodiscard]] std::int64_t blocking_from(std::size_t index) const { return blocking_from_[index]; }

 private:
  std::vector<DemandStep> steps_;
  std::vector<std::int64_t> blocking_from_;  ///< [n + 1]; the last is 0
  Wide first_point_ = kFar;
};

enum class WalkEnd : std::uint8_t { NoFailure, Failure, OutOfBudget };

/// Quick processor-demand analysis: looks for a t below `end` where the load exceeds t, from the far end towards 0.
///
/// Where the load at t is less than t, no step in between can fail, because the load never rises on the way down: the
/// walk jumps there at once. That argument needs a load that never falls as t grows, and nothing else, so blocking
/// may be part of it.
///
/// @param curve  has load(t), previous_step(t), first_point() and steps(); load never falls as t grows.
/// @source [ZB09] algorithm QPA.
template <class Curve>
[[nodiscard]] WalkEnd walk_down(const Curve& curve, Wide end, StepBudget& budget) {
  const Wide first = curve.first_point();
  if (curve.load(first) > first) return WalkEnd::Failure;
  const auto visits = static_cast<std::int64_t>(curve.steps().size()) + 1;
  std::optional<Wide> t = curve.previous_step(end);
  while (t && *t > first) {
    if (!budget.spend(2 * visits)) return WalkEnd::OutOfBudget;
    const Wide load = curve.load(*t);
    if (load > *t) return WalkEnd::Failure;
    if (load <= first) return WalkEnd::NoFailure;
    t = load < *t ? load : curve.previous_step(*t);
  }
  return WalkEnd::NoFailure;
}

/// Where a walk from 0 upwards ended.
struct FirstFailure {
  WalkEnd end = WalkEnd::NoFailure;
  Wide t = 0;  ///< with Failure: the smallest t whose load exceeds it
};

/// The smallest failing t below `end`, found by visiting every step.
[[nodiscard]] FirstFailure walk_up(const DemandCurve& curve, Wide end, StepBudget& budget);

/// What must be done in an interval of length t; nothing where 64 bits do not hold the numbers.
[[nodiscard]] std::optional<Witness> demand_witness(const DemandCurve& curve, std::span<const TaskTiming> tasks,
                                                    Wide t);

/// Turns the verdict into a refusal, with the witness at the smallest failing t, or a sentence where that is out of
/// reach.
void refuse_by_demand(Verdict& verdict, std::span<const TaskTiming> tasks);

/// Ends the program on a set that breaks what `TaskTiming` promises.
void expect_valid_timing(std::span<const TaskTiming> tasks);

}  // namespace tutti
