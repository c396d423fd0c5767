#include "sched/admission/sooner_plans.hpp"

#include <algorithm>
#include <numeric>

#include "sched/tasks/cut.hpp"

namespace tutti::internal {
namespace {

/// Budget of all plans, in pairs of streams: about the cost of a plan and its bound.
constexpr std::size_t kMostWork = 50'000;

std::size_t work_of_planning(const Task& task, Bytes cut) {
  std::size_t work = 0;
  for (const Batch* batch : batches_of(task))
    work += chunks_of(*batch, cut) * batch->streams().size() * (batch->streams().size() + 8);
  return work;
}

}  // namespace

SoonerPlans find_sooner_plans(const TaskSet& set, const AdmissionVerdict& asked) {
  const auto searching = std::ranges::find_if(planners(), &Planner::searches);
  SoonerPlans found;
  if (searching == planners().end() || asked.planner == &*searching) return found;
  std::vector<std::size_t> order(set.tasks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto share = [&](std::size_t task) {
    return static_cast<double>(asked.timings[task].wcet.count()) /
           static_cast<double>(asked.timings[task].period.count());
  };
  std::ranges::stable_sort(order, std::ranges::greater(), share);
  const Effort effort = effort_of(set);
  std::size_t left = kMostWork;
  for (const std::size_t i : order) {
    const Task& task = set.tasks[i];
    const Bytes cut = cut_in_force(set, task);
    const std::size_t work = work_of_planning(task, cut);
    if (work > left) ++found.not_asked;
    if (work == 0 || work > left) continue;
    left -= work;
    const JobBound bound = bound_job(task, set.machine, *searching, cut, effort);
    const Duration wcet = wcet_of(bound, set.preemption).bound();
    const double gain = 1 - static_cast<double>(wcet.count()) / static_cast<double>(asked.timings[i].wcet.count());
    if (gain >= kLeastGain) found.plans.push_back({TaskId{i}, &*searching, wcet, gain});
  }
  std::ranges::sort(found.plans, {}, &SoonerPlan::task);
  return found;
}

}  // namespace tutti::internal
