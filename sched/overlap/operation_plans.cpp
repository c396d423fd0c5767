#include "sched/overlap/operation_plans.hpp"

#include <utility>

#include "model/base/expects.hpp"
#include "model/planners/planner.hpp"
#include "sched/tasks/cut.hpp"

namespace tutti::internal {
namespace {

/// The stream of a batch in its chunks: all but the last leave out kernels without a transfer.
std::size_t place_in_chunk(const Batch& whole, std::size_t stream, bool is_last) {
  if (is_last) return stream;
  std::size_t place = 0;
  for (std::size_t s = 0; s < stream; ++s) place += whole.streams()[s].transfer ? 1 : 0;
  return place;
}

/// The kernel of a stream alone.
CommandStream kernel_of(const CommandStream& stream) { return {stream.name, {}, stream.kernel, stream.place}; }

/// @param dispatching  in its longest time
ExecutionPlan plan_region(const Topology& machine, CommandStream stream, Duration longest, Duration dispatching) {
  auto alone = Batch::make(machine, {std::move(stream)});
  TUTTI_EXPECTS(alone.has_value(), "a part of a valid batch is one");
  ExecutionPlan planned = plan(planners().front(), *std::move(alone), Basis::Guaranteed);
  const SetupTimes& costs = machine.setup();
  LatestFinish& latest = planned.latest.emplace();
  latest.held_up = costs.job.guaranteed;
  latest.batch = longest - dispatching - costs.job.guaranteed;
  latest.streams = {latest.batch};
  return planned;
}

std::vector<ExecutionPlan> plan_part(const TaskSet& set, const Task& task, const OperationPart& part,
                                     Duration dispatching) {
  const auto* whole = std::get_if<Batch>(&task.steps[part.step]);
  if (whole == nullptr) return {};
  const Chunks chunks = cut(*whole, cut_in_force(set, task));
  std::vector<ExecutionPlan> regions;
  for (std::size_t r = 0; r < part.regions.size(); ++r) {
    const std::size_t c = part.kind == OperationPart::Kind::Kernel ? chunks.size() - 1 : r;
    const std::size_t place = place_in_chunk(*whole, part.stream, c + 1 == chunks.size());
    const CommandStream& stream = chunks[c].streams()[place];
    const Topology& machine = whole->machine();
    regions.push_back(plan_region(
        machine, part.kind == OperationPart::Kind::Kernel ? kernel_of(stream) : leg_of(machine, stream, part.leg),
        part.regions[r], dispatching));
  }
  return regions;
}

}  // namespace

OverlapPlan plan_operations(const TaskSet& set, OperationSet operations, LocalDeadlines deadlines) {
  OverlapPlan plan{std::move(operations), std::move(deadlines), {}};
  for (const Operation& operation : plan.operations.operations) {
    auto& parts = plan.plans.emplace_back();
    for (const OperationPart& part : operation.parts)
      parts.push_back(plan_part(set, set.tasks[operation.task.index()], part, plan.operations.dispatching));
  }
  return plan;
}

}  // namespace tutti::internal
