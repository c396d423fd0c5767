#include <algorithm>
#include <array>
#include <utility>

#include "model/base/expects.hpp"
#include "model/batch/service_order.hpp"
#include "model/planners/all_at_once.hpp"
#include "model/planners/bandwidth_allocation.hpp"
#include "model/planners/completion_aligned.hpp"
#include "model/planners/gate_search.hpp"
#include "model/planners/planner.hpp"
#include "model/planners/static_allocation.hpp"
#include "model/planners/time_division.hpp"

namespace tutti::internal {
namespace {

constexpr std::array kPlanners{
    Planner{"best", "completion_aligned, or gate_search where that is clearly sooner", RateRule::MaxMin, true,
            plan_best},
    Planner{"completion_aligned", "all streams finish together; each starts as late as it can", RateRule::MaxMin, false,
            plan_completion_aligned},
    Planner{"all_at_once", "every stream starts at once", RateRule::MaxMin, false, plan_all_at_once},
    Planner{"bandwidth_allocation", "every stream keeps a fixed share of the bandwidth", RateRule::Allocated, false,
            plan_bandwidth_allocation},
    Planner{"static_allocation", "every transfer of the application keeps its share, whether the others run or not",
            RateRule::Static, false, plan_static_allocation},
    Planner{"time_division", "one transfer at a time, longest kernel first", RateRule::MaxMin, false,
            plan_time_division},
    Planner{"gate_search", "the best starts that a short search finds from the others'", RateRule::MaxMin, true,
            plan_gate_search},
};

}  // namespace

std::span<const Planner> planners() { return kPlanners; }

const Planner* find_planner(std::string_view name) {
  const auto found = std::find_if(kPlanners.begin(), kPlanners.end(), [&](const Planner& p) { return p.name == name; });
  return found == kPlanners.end() ? nullptr : &*found;
}

double predict(const Planner& planner, const Batch& batch, Basis basis, BatchSimulation& workspace, Effort effort) {
  workspace.load(batch.machine(), basis, batch, planner.rates);
  if (planner.arrange == plan_best) {
    plan_best_of_batch(workspace, batch, effort);
  } else {
    planner.arrange(workspace, effort);
  }
  return workspace.latency_ns();
}

ExecutionPlan plan(const Planner& planner, Batch batch, Basis basis, Effort effort) {
  BatchSimulation workspace;
  const Duration predicted = round_up_ns(predict(planner, batch, basis, workspace, effort));
  workspace.rerun_forward();  // gates of a plan are whole nanoseconds: these are the times that follow from them
  Timeline timeline = make_timeline(batch.machine(), batch, workspace);
  timeline.latency = std::max(timeline.latency, predicted);
  auto commands = commands_of(workspace.batch(), batch, timeline);
  const Bytes chunk = pacing_chunk(planner.rates, batch.machine());
  return {std::move(batch), std::move(timeline), planner.rates, basis, std::move(commands), chunk};
}

Timeline replay(const ExecutionPlan& plan, Basis basis) { return replay(plan, plan.batch, basis); }

Timeline replay(const ExecutionPlan& plan, const Batch& other, Basis basis) {
  TUTTI_EXPECTS(plan.timeline.streams.size() == other.streams().size(),
                "the plan has one row for each stream of the batch");
  BatchSimulation workspace;
  workspace.load(other.machine(), basis, other, plan.rates);
  std::vector<std::uint32_t> order;
  if (workspace.contended()) service_order(workspace.batch(), plan.timeline, order);
  workspace.run_in_order(gates_of(workspace, plan.timeline), order);
  return make_timeline(other.machine(), other, workspace);
}

}  // namespace tutti::internal
