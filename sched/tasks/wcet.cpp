#include "sched/tasks/wcet.hpp"

#include <numeric>
#include <span>

#include "model/base/expects.hpp"
#include "model/base/wide.hpp"
#include "model/batch/safe_bound.hpp"
#include "sched/tasks/cut.hpp"

namespace tutti::internal {

Wcet batch_wcet(Duration length, const Margin& margin) {
  const auto stretched = to_duration(length.count() + ceil_product(length.count(), margin.relative));
  return Wcet(stretched ? add_saturating(*stretched, margin.absolute) : Duration::max());
}

bool runs_in_regions(const JobBound& bound, Preemption preemption) {
  return preemption == Preemption::BetweenBatches && bound.regions.size() > 1;
}

Wcet wcet_of(const JobBound& bound, Preemption preemption) {
  if (!runs_in_regions(bound, preemption)) return bound.wcet;
  return Wcet(std::accumulate(bound.regions.begin(), bound.regions.end(), Duration{0}, add_saturating));
}

namespace {

/// At guaranteed bandwidths, with their latest finishes.
std::vector<ExecutionPlan> plans_of(std::span<const Batch> batches, const Planner& planner, Effort effort) {
  std::vector<ExecutionPlan> plans;
  for (const Batch& batch : batches) {
    ExecutionPlan& planned = plans.emplace_back(plan(planner, batch, Basis::Guaranteed, effort));
    planned.latest = latest_finish(planned);
  }
  return plans;
}

}  // namespace

JobBound bound_job(const Task& task, const std::optional<Topology>& machine, const Planner& planner, Bytes cut_above,
                   Effort effort) {
  JobBound bound;
  std::vector<Duration> regions;
  Duration before{};  // host steps in front of the first batch
  const SetupTimes costs = machine ? machine->setup() : SetupTimes{};
  const auto add = [&](Duration time) {
    Duration& region = regions.empty() ? before : regions.back();
    region = add_saturating(region, time);
  };
  for (const JobStep& step : task.steps) {
    if (const auto* host = std::get_if<HostStep>(&step)) {
      add(host->time);
      continue;
    }
    TUTTI_EXPECTS(machine.has_value(), "a task with batches comes with its machine");
    const Chunks chunks = cut(std::get<Batch>(step), cut_above);
    const std::vector<ExecutionPlan> planned = plans_of(chunks.batches, planner, effort);
    auto& plans = bound.plans.emplace_back();
    for (const std::size_t chunk : chunks.order) {
      plans.push_back(planned[chunk]);
      regions.push_back(std::exchange(before, Duration{0}));
      add(batch_wcet(planned[chunk].latest->batch, machine->margin()).bound());
      add(costs.dispatch.guaranteed);
    }
  }
  if (regions.empty()) regions.push_back(before);
  if (task.declared_wcet) regions = {*task.declared_wcet};
  bound.held_up = bound.plans.empty() || task.declared_wcet ? Duration{0} : costs.job.guaranteed;
  bound.wcet = Wcet(std::accumulate(regions.begin(), regions.end(), bound.held_up, add_saturating));
  for (Duration& region : regions) region = add_saturating(region, bound.held_up);
  bound.regions = std::move(regions);
  return bound;
}

}  // namespace tutti::internal
