#include "runtime/cuda/batches/served_copies.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "model/base/units.hpp"

namespace tutti::internal::cuda {

ServedCopies::ServedCopies(BoundBatch& batch, const std::atomic<bool>& abandoned)
    : batch_(batch), abandoned_(abandoned), copies_(batch.list.commands.size()) {}

ServedCopies::~ServedCopies() {
  for (const auto& copy : copies_)
    if (copy) copy->server->forget(*copy);
}

Expected<void> ServedCopies::bind(std::uint32_t position) {
  const Command& command = batch_.list.commands[position];
  auto copy = std::make_unique<BoundCopy>();
  copy->ends = ends_of(command);
  copy->planned = planned_start(command);
  copy->asked = batch_.board.take<Count>();
  copy->done = batch_.board.take<Count>();
  copy->abandoned = &abandoned_;
  auto ok = command.kind == Command::Kind::Mapped ? bind_mapped(command, *copy) : bind_pageable(command, *copy);
  if (ok) copies_[position] = std::move(copy);
  return ok;
}

void ServedCopies::attend() {
  if (batch_.backend.lost) return;  // nothing of the run is enqueued, and a server may wait for the GPU for ever
  for (const auto& copy : copies_) {
    if (!copy) continue;
    copy->server->forget(*copy);  // of a run whose commands could not all be enqueued
    copy->run = batch_.run;
    copy->paused = {};
    copy->server->attend(*copy, copy->planned < kWaking);
  }
}

void ServedCopies::expect(Duration start) {
  if (batch_.backend.lost) return;
  const Duration now = std::max(batch_.backend.clock.now(), start);
  for (const auto& copy : copies_)
    if (copy) copy->server->expect(*copy, now + copy->planned);
}

Duration ServedCopies::paused() const {
  Duration paused{};
  for (const auto& copy : copies_)
    if (copy) paused += copy->paused;
  return paused;
}

/// When the plan begins a command, which may be a later piece of its stream's transfer.
Duration ServedCopies::planned_start(const Command& command) const {
  const auto& transfer = batch_.bound.plan.timeline.streams[command.stream].transfer;
  const double done =
      static_cast<double>(command.offset) / static_cast<double>(batch_.stream_of(command).transfer->size.count);
  return transfer->start + round_down_ns(done * as_ns(transfer->end - transfer->start));
}

Expected<void> ServedCopies::enqueue(std::uint32_t position) const {
  const cudaStream_t stream = batch_.lanes[batch_.list.commands[position].lane].stream;
  const BoundCopy& copy = *copies_[position];
  const auto by_stream = [&](std::byte* to, const std::byte* from) {
    return check(cudaMemcpyAsync(to, from, copy.ends.bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
  };
  std::byte* const staging = copy.staging.data();
  if (staging != nullptr && !copy.ends.up)
    if (auto ok = by_stream(staging, copy.ends.device); !ok) return ok;
  if (auto ok = CopyServer::enqueue(batch_.backend.driver, stream, copy, batch_.run); !ok) return ok;
  return staging != nullptr && copy.ends.up ? by_stream(copy.ends.device, staging) : Expected<void>{};
}

ServedCopies::Ends ServedCopies::ends_of(const Command& command) const {
  const StreamBinding& binding = batch_.bound.bindings[command.stream];
  const bool up = batch_.backend.machine.vertex(batch_.stream_of(command).transfer->to).kind == VertexKind::Gpu;
  const BufferView& host = up ? binding.source : binding.destination;
  const BufferView& device = up ? binding.destination : binding.source;
  return {up, host.where, host.data + command.offset, device.data + command.offset, command.bytes};
}

Expected<void> ServedCopies::bind_pageable(const Command& command, BoundCopy& copy) {
  const Ends& ends = copy.ends;
  const Vertex& memory = batch_.backend.machine.vertex(ends.memory);
  const auto server = batch_.backend.pageable_server(batch_.lanes[command.lane].device,
                                                     ends.up ? CopyDirection::Up : CopyDirection::Down, memory);
  if (!server) return tl::unexpected(server.error());
  copy.server = (*server)->server.get();
  if (ends.bytes < static_cast<std::size_t>(memory.crossover.count)) {
    auto staging = MemoryPool::instance().take_host(ends.bytes, -1, Contents::Anything);
    if (!staging) return tl::unexpected(std::move(staging.error()));
    copy.staging = *std::move(staging);
    std::byte* const to = ends.up ? copy.staging.data() : ends.host;
    const std::byte* const from = ends.up ? ends.host : copy.staging.data();
    copy.make = [to, from, bytes = ends.bytes] { std::memcpy(to, from, bytes); };
    return {};
  }
  copy.make = [this, &command, &copy, ends, copier = (*server)->copier.get()] {
    const bool done = copier->copy(ends.host, ends.device, ends.bytes);
    copy.paused = copier->paused();
    if (done) return;
    batch_.note(
        machine_error(fmt::format("the copy of pageable memory of stream '{}' failed: the driver refused a piece",
                                  batch_.stream_of(command).name))
            .value());
  };
  return {};
}

Expected<void> ServedCopies::bind_mapped(const Command& command, BoundCopy& copy) {
  const Ends& ends = copy.ends;
  const auto server = batch_.backend.mover(ends.memory);
  if (!server) return tl::unexpected(server.error());
  const auto window = window_of(command);
  if (!window) return tl::unexpected(window.error());
  copy.server = *server;
  copy.make = [this, &command, ends, window = *window] {
    const bool done =
        ends.up ? window->write(ends.device, ends.host, ends.bytes) : window->read(ends.host, ends.device, ends.bytes);
    if (!done)
      batch_.note(machine_error(fmt::format("the mapped copy of stream '{}' failed: GDRCopy refused it",
                                            batch_.stream_of(command).name))
                      .value());
  };
  return {};
}

/// All of the stream's buffer is mapped once, whatever pieces its copy is cut into.
Expected<const BarWindow*> ServedCopies::window_of(const Command& command) {
  auto& window = windows_[command.stream];
  if (window) return window.get();
  const CommandStream& stream = batch_.stream_of(command);
  auto mapped = batch_.backend.gdrcopy().and_then([&](auto&& library) {
    return BarWindow::map(library, ends_of(command).device - command.offset,
                          static_cast<std::size_t>(stream.transfer->size.count));
  });
  if (mapped) return (window = *std::move(mapped)).get();
  Error error = mapped.error();
  error.message = fmt::format("stream '{}' cannot be copied by 'method: mapped': {}, or leave the method out",
                              stream.name, error.message);
  error.place = stream.place;
  return tl::unexpected(std::move(error));
}

}  // namespace tutti::internal::cuda
