#include "sched/analyses/np_edf_jeffay.hpp"

#include <algorithm>
#include <vector>

#include "model/expects.hpp"
#include "sched/analyses/demand.hpp"
#include "sched/utilization.hpp"

namespace tutti {
namespace {

struct PeriodicCost {
  std::int64_t period = 1;
  std::int64_t cost = 0;
};

/// The right-hand side of the theorem, largest over i, as a function of L.
///
/// For one L the sum is the same for every i with T_i > L, since a floor is 0 from there on: only the largest such C_i
/// matters. Where L reaches T_i, C_i moves from the maximum into the sum, so the whole never falls.
class JeffayCurve {
 public:
  explicit JeffayCurve(std::span<const TaskTiming> tasks) {
    for (const TaskTiming& task : tasks) steps_.push_back({task.period.count(), task.wcet.count()});
    std::ranges::stable_sort(steps_, {}, &PeriodicCost::period);
    longest_from_.assign(steps_.size() + 1, 0);
    for (std::size_t i = steps_.size(); i-- > 0;) longest_from_[i] = std::max(longest_from_[i + 1], steps_[i].cost);
  }

  [[nodiscard]] Wide load(Wide length) const {
    Wide sum = 0;
    std::size_t i = 0;
    for (; i < steps_.size() && steps_[i].period <= length; ++i)
      sum = capped_sum(sum, work_of(floor_div(length, steps_[i].period), steps_[i].cost));
    return capped_sum(sum, longest_from_[i]);
  }

  /// The last point before `length` where a floor of a task with C > 0 jumps.
  [[nodiscard]] std::optional<Wide> previous_step(Wide length) const {
    std::optional<Wide> latest;
    for (const PeriodicCost& step : steps_) {
      if (step.period >= length) break;
      const Wide jump = floor_div(length - 1, step.period) * step.period;
      if (step.cost > 0 && (!latest || jump > *latest)) latest = jump;
    }
    return latest;
  }

  [[nodiscard]] Wide first_point() const { return steps_.front().period; }
  [[nodiscard]] Wide longest_period() const { return steps_.back().period; }
  [[nodiscard]] std::span<const PeriodicCost> steps() const { return steps_; }

 private:
  std::vector<PeriodicCost> steps_;         ///< by rising period
  std::vector<std::int64_t> longest_from_;  ///< [n + 1] the largest C_i from here on; the last is 0
};

Answer decide(std::span<const TaskTiming> tasks) {
  if (tasks.empty()) return Answer::Schedulable;
  if (!utilization_at_most_one(tasks)) return Answer::NotSchedulable;
  const JeffayCurve curve(tasks);
  StepBudget budget(kVisitsPerWalk);
  // From T_n on the condition has no i left, and U <= 1 is all that is asked.
  switch (walk_down(curve, curve.longest_period(), budget)) {
    case WalkEnd::NoFailure: return Answer::Schedulable;
    case WalkEnd::Failure: return Answer::NotSchedulable;
    case WalkEnd::OutOfBudget: break;
  }
  return Answer::Unknown;
}

}  // namespace

bool np_edf_jeffay_applies(std::span<const TaskTiming> tasks, Policy policy) {
  return policy == Policy::Edf && std::ranges::all_of(tasks, [](const TaskTiming& task) {
           return task.deadline == task.period && task.jitter == Duration::zero();
         });
}

Verdict np_edf_jeffay(std::span<const TaskTiming> tasks, Policy policy) {
  expect_valid_timing(tasks);
  TUTTI_EXPECTS(np_edf_jeffay_applies(tasks, policy), "the theorem covers EDF with D = T and no jitter only");
  Verdict verdict;
  verdict.test = kNpEdfJeffay;
  verdict.exactness = Exactness::Exact;
  verdict.answer = decide(tasks);
  if (verdict.answer == Answer::NotSchedulable) refuse_by_demand(verdict, tasks);
  if (verdict.answer == Answer::Unknown)
    verdict.reason = "the periods are too far apart: too many intervals lie below the longest one to test them all";
  return verdict;
}

}  // namespace tutti
