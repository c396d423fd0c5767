#include "runtime/dispatch/journal_plan.hpp"

#include <string>
#include <utility>

#include "model/batch/engine_lanes.hpp"
#include "model/transfer/transfer_method.hpp"

namespace tutti::internal {
namespace {

/// A chunk of a job: a plan of its own.
struct PlannedChunk {
  TaskId task;
  std::uint32_t chunk = 0;
  std::uint32_t batch = 0;
  PlannedStreams planned;
  std::vector<std::uint32_t> streams;  ///< positions in the batch
};

PlannedStreams streams_of(const ExecutionPlan& plan) {
  return {&plan.batch, &plan.timeline, plan.latest ? &*plan.latest : nullptr};
}

std::vector<PlannedChunk> chunks_of_batches(const PlannedTaskSet& planned) {
  std::vector<PlannedChunk> chunks;
  for (std::size_t t = 0; t < planned.bounds.size(); ++t) {
    const auto batches = batches_of(planned.tasks.tasks[t]);
    std::uint32_t chunk = 0;
    for (std::uint32_t b = 0; b < planned.bounds[t].plans.size(); ++b)
      for (const ExecutionPlan& plan : planned.bounds[t].plans[b])
        chunks.push_back({TaskId(t), chunk++, b, streams_of(plan), places_in(*batches[b], plan.batch)});
  }
  return chunks;
}

std::vector<PlannedChunk> chunks_of_operations(const TaskSet& tasks, const OverlapPlan& overlap) {
  std::vector<PlannedChunk> chunks;
  std::vector<std::uint32_t> next(tasks.tasks.size());
  for (std::size_t o = 0; o < overlap.operations.operations.size(); ++o) {
    const Operation& operation = overlap.operations.operations[o];
    const auto& steps = tasks.tasks[operation.task.index()].steps;
    for (std::size_t p = 0; p < operation.parts.size(); ++p)
      for (const ExecutionPlan& plan : overlap.plans[o][p]) {
        std::uint32_t batch = 0;
        for (std::size_t s = 0; s < operation.parts[p].step; ++s) batch += std::holds_alternative<Batch>(steps[s]);
        chunks.push_back({operation.task,
                          next[operation.task.index()]++,
                          batch,
                          streams_of(plan),
                          {static_cast<std::uint32_t>(operation.parts[p].stream)}});
      }
  }
  return chunks;
}

void add_machine(JournalPlan& to, const Topology& machine) {
  for (const Vertex& vertex : machine.vertices())
    to.vertices.push_back({vertex.name, std::string(to_string(vertex.kind))});
  for (const Link& link : machine.links())
    to.links.push_back({link.from.value, link.to.value, link.bandwidth.nominal.value});
  for (const SharedCapacity& shared : machine.shared()) {
    JournalShared& kept = to.shared.emplace_back(JournalShared{shared.name, shared.capacity.nominal.value});
    for (const CapacityMember& member : shared.members) {
      kept.links.push_back(member.link.index());
      kept.costs.push_back(member.cost);
    }
  }
}

void add_transfer(JournalStream& to, const EngineLanes& lanes, const PlannedStreams& plan, std::size_t s) {
  const Transfer& transfer = *plan.batch->streams()[s].transfer;
  const TransferInterval& planned = *plan.timeline->streams[s].transfer;
  to.method = planned.method.name;
  to.bytes = transfer.size;
  to.copy = PlannedInterval{planned.start, planned.end};
  const RouteView route = find_route(plan.batch->machine(), transfer);
  for (const auto& leg : {route.first, route.second})
    for (const LinkId link : leg) to.links.push_back(link.index());
  for (const std::size_t lane : lanes.of_transfer(*plan.batch, s)) to.copy_lanes.push_back(lane);
}

void add_streams(JournalPlan& to, const EngineLanes& lanes, const PlannedChunk& chunk) {
  const PlannedStreams& plan = chunk.planned;
  for (std::size_t s = 0; s < plan.timeline->streams.size(); ++s) {
    const StreamTimeline& line = plan.timeline->streams[s];
    JournalStream stream{chunk.task, chunk.chunk, chunk.batch, chunk.streams[s], line.name};
    if (plan.latest != nullptr) stream.latest = add_saturating(plan.latest->streams[s], plan.latest->held_up);
    if (line.transfer) add_transfer(stream, lanes, plan, s);
    if (const auto& kernel = line.kernel) {
      stream.kernel = PlannedInterval{kernel->start, kernel->end};
      stream.kernel_lanes.push_back(lanes.of(kernel->on));
    }
    to.streams.push_back(std::move(stream));
  }
}

JournalPlan plan_of(const Topology& machine, std::span<const PlannedChunk> chunks) {
  JournalPlan made;
  add_machine(made, machine);
  std::vector<const Batch*> batches;
  for (const PlannedChunk& chunk : chunks) batches.push_back(chunk.planned.batch);
  const EngineLanes lanes(machine, batches);
  for (const EngineLane& lane : lanes.all())
    made.lanes.push_back({machine.vertex(lane.device).name, std::string(lane.engine)});
  for (const PlannedChunk& chunk : chunks) add_streams(made, lanes, chunk);
  return made;
}

}  // namespace

JournalPlan journal_plan(const PlannedTaskSet& planned) {
  if (!planned.tasks.machine) return {};
  return plan_of(*planned.tasks.machine,
                 planned.overlap ? chunks_of_operations(planned.tasks, *planned.overlap) : chunks_of_batches(planned));
}

JournalPlan journal_plan(const Topology& machine, std::span<const PlannedStreams> batches) {
  std::vector<PlannedChunk> chunks;
  for (std::size_t b = 0; b < batches.size(); ++b)
    chunks.push_back({TaskId(b), 0, 0, batches[b], places_in(*batches[b].batch, *batches[b].batch)});
  return plan_of(machine, chunks);
}

std::vector<std::uint32_t> places_in(const Batch& whole, const Batch& chunk) {
  const bool all = whole.streams().size() == chunk.streams().size();
  std::vector<std::uint32_t> places;
  for (std::uint32_t s = 0; s < whole.streams().size(); ++s)
    if (all || whole.streams()[s].transfer) places.push_back(s);
  return places;
}

std::optional<Duration> predicted_length(const PlannedTaskSet& planned, TaskId task) {
  const auto& steps = planned.tasks.tasks[task.index()].steps;
  if (planned.overlap || steps.empty() || planned.tasks.tasks[task.index()].declared_wcet) return std::nullopt;
  Duration length{};
  for (const auto& chunks : planned.bounds[task.index()].plans)
    for (const ExecutionPlan& plan : chunks) length = add_saturating(length, plan.timeline.latency);
  for (const JobStep& step : steps)
    if (const auto* host = std::get_if<HostStep>(&step)) length = add_saturating(length, host->time);
  return length;
}

}  // namespace tutti::internal
