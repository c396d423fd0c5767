#include "model/batch/execution_plan.hpp"

#include <algorithm>

#include "model/batch/service_order.hpp"

namespace tutti::internal {
namespace {

constexpr Bytes kPacingChunk{8LL << 20};

/// Planned instant at which this many bytes of a transfer have arrived.
Duration planned_at(const TransferInterval& transfer, Bytes bytes) {
  auto left = static_cast<double>(bytes.count);
  for (const Segment& segment : transfer.segments) {
    const auto size = static_cast<double>(segment.bytes.count);
    if (left < size) {
      const auto length = static_cast<double>((segment.end - segment.start).count());
      return segment.start + Duration{static_cast<std::int64_t>(length * left / size)};
    }
    left -= size;
  }
  return transfer.end;
}

/// When a gate opens: that of a stream at this planned instant.
Duration opens_at(const Timeline& timeline, Duration instant) {
  return std::max(instant - timeline.setup, Duration{0});
}

/// Appends the chunks of a transfer, each with a gate.
void add_chunks(const ExecutionPlan& plan, PlannedCommand chunk, std::vector<PlannedCommand>& pieces) {
  const TransferInterval& planned = *plan.timeline.streams[chunk.stream].transfer;
  const SetupTimes& costs = plan.machine().setup();
  const CopyKind route = plan.batch.work()[chunk.stream].route;
  const auto bytes = static_cast<double>(plan.chunk.count);
  const Duration setup = costs.gate.nominal + round_up_ns(costs.transfer.of(route).ns(Basis::Nominal, bytes));
  const Bytes size = chunk.bytes;
  if (!chunk.gate) chunk.gate = opens_at(plan.timeline, chunk.start);
  while (true) {
    chunk.bytes = std::min(plan.chunk, size - chunk.offset);
    const Bytes next = chunk.offset + chunk.bytes;
    chunk.end = next == size ? planned.end : planned_at(planned, next);
    pieces.push_back(chunk);
    if (next == size) return;
    chunk.offset = next;
    chunk.start = std::max(chunk.start, planned_at(planned, next) - setup);
    chunk.gate = opens_at(plan.timeline, chunk.start);
  }
}

}  // namespace

Bytes pacing_chunk(RateRule rates, const Topology& machine) {
  if (rates == RateRule::MaxMin) return Bytes{0};
  return machine.staging_chunk().count > 0 ? machine.staging_chunk() : kPacingChunk;
}

std::vector<PlannedCommand> commands_of(const EngineQueues& queues, const Batch& batch, const Timeline& timeline) {
  std::vector<PlannedCommand> commands;
  for (std::uint32_t c = 0; c < queues.queues().size(); ++c) {
    const auto [begin, end] = queues.queues()[c];
    for (std::uint32_t position = begin; position < end; ++position) {
      const Step& step = queues.step(position);
      if (!step.first) continue;
      const StreamTimeline& line = timeline.streams[step.stream];
      PlannedCommand command;
      command.stream = step.stream;
      command.queue = c;
      command.kernel = step.kernel;
      command.locks = queues.locks(step);
      command.bytes = step.kernel ? Bytes{} : batch.streams()[step.stream].transfer->size;
      command.start = step.kernel ? line.kernel->start : planned_start(*line.transfer);
      command.end = step.kernel ? line.kernel->end : line.transfer->end;
      if (position == begin) command.gate = opens_at(timeline, line.gate);
      commands.push_back(command);
    }
  }
  return commands;
}

std::vector<PlannedCommand> pieces_of(const ExecutionPlan& plan) {
  std::vector<PlannedCommand> pieces;
  for (const PlannedCommand& command : plan.commands) {
    const bool cut = plan.chunk.count > 0 && command.bytes.count > 0 &&
                     !plan.batch.streams()[command.stream].transfer->is_strided() &&
                     !plan.timeline.streams[command.stream].transfer->method.chunked;
    if (cut)
      add_chunks(plan, command, pieces);
    else
      pieces.push_back(command);
  }
  return pieces;
}

}  // namespace tutti::internal
