#include "runtime/cuda/batches/enqueuer.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/transfer/transfer_method.hpp"
#include "runtime/core/command_marks.hpp"
#include "runtime/cuda/base/kernels.hpp"
#include "runtime/cuda/lanes/builtin_kernels.hpp"

namespace tutti::internal::cuda {
namespace {

/// Runs of commands that may be enqueued before the data of a batch is final: those before the first that reads it
/// then.
std::size_t final_runs(const CommandList& list) {
  const auto reads = [&](const Run& run) { return list.commands[run.begin].kind == Command::Kind::Inline; };
  return static_cast<std::size_t>(std::ranges::find_if(list.runs, reads) - list.runs.begin());
}

}  // namespace

// ---- preparing

Expected<std::unique_ptr<Enqueuer>> Enqueuer::make(BoundBatch& batch) {
  std::unique_ptr<Enqueuer> made(new Enqueuer(batch));
  if (auto ok = made->prepare(); !ok) return tl::unexpected(std::move(ok.error()));
  return made;
}

Expected<void> Enqueuer::prepare() {
  const CommandList& list = batch_.list;
  copies_.resize(list.runs.size());
  rings_.resize(list.commands.size());
  kernels_.resize(list.commands.size());
  for (std::uint32_t run = 0; run < copies_.size(); ++run) bind_copies(run);
  for (std::uint32_t position = 0; position < list.commands.size(); ++position) {
    host_work_.push_back({this, position});
    if (list.commands[position].kind == Command::Kind::Staged)
      if (auto ok = make_ring(position); !ok) return ok;
    if (list.commands[position].is_served())
      if (auto ok = served_.bind(position); !ok) return ok;
    if (list.commands[position].is_kernel())
      if (auto ok = bind_kernel(position); !ok) return ok;
  }
  std::vector<std::size_t> of_kernels;
  for (const BoundKernel& kernel : kernels_) of_kernels.push_back(kernel.captured.operations);
  const std::size_t fitting = runs_that_fit(list, kQueueCapacity, batch_.backend.machine.staging_chunk(), of_kernels);
  may_block_ = may_block_ || fitting < list.runs.size();
  ahead_ = std::min(fitting, final_runs(list));
  return {};
}

void Enqueuer::bind_copies(std::uint32_t run) {
  const auto [begin, end] = batch_.list.runs[run];
  for (std::uint32_t i = begin; i < end; ++i) {
    const Command& command = batch_.list.commands[i];
    if (command.kind != Command::Kind::Copy) continue;
    const StreamBinding& binding = batch_.bound.bindings[command.stream];
    copies_[run].add(binding.destination.data + command.offset, binding.source.data + command.offset, command.bytes);
  }
}

Expected<void> Enqueuer::make_ring(std::uint32_t position) {
  const Topology& machine = batch_.backend.machine;
  const Command& command = batch_.list.commands[position];
  auto ring = std::make_unique<Ring>();
  const auto declared = static_cast<std::size_t>(machine.staging_chunk().count);
  ring->chunk = std::min(declared == 0 ? command.bytes : declared, command.bytes);
  const VertexId via = find_route(machine, *batch_.stream_of(command).transfer).via;
  auto memory = MemoryPool::instance().take_host(std::min(Ring::kChunks * ring->chunk, command.bytes),
                                                 batch_.backend.numa_node_of(via), Contents::Anything);
  if (!memory) return tl::unexpected(std::move(memory.error()));
  ring->memory = *std::move(memory);
  ring->first_filled = batch_.board.take<Count>();
  for (std::size_t i = 0; i < Ring::kChunks; ++i) {
    for (auto [events, lane] : {std::pair(&ring->filled, command.lane), {&ring->drained, command.last_lane}}) {
      auto event = make_event(batch_.lanes[lane].device, cudaEventDisableTiming);
      if (!event) return tl::unexpected(std::move(event.error()));
      (*events)[i] = *std::move(event);
    }
  }
  rings_[position] = std::move(ring);
  return {};
}

Expected<void> Enqueuer::bind_kernel(std::uint32_t position) {
  const Command& command = batch_.list.commands[position];
  const CommandStream& stream = batch_.stream_of(command);
  const StreamBinding& binding = batch_.bound.bindings[command.stream];
  BoundKernel& kernel = kernels_[position];
  kernel.calls = calls_of(batch_.backend.kernels, batch_.backend.machine, stream, binding);
  if (command.kind == Command::Kind::HostWork) return {};
  auto calls = device_calls_of(stream, kernel.calls);
  if (!calls) return tl::unexpected(std::move(calls.error()));
  kernel.on_gpu = *std::move(calls);
  if (kernel.calls.size() == 1 && kernel.calls.front().forms->is_builtin()) return {};  // one launch each
  auto captured = capture_kernels(batch_.backend, batch_.lanes[command.lane].device, stream, kernel.on_gpu);
  if (!captured) return tl::unexpected(std::move(captured.error()));
  kernel.captured = *std::move(captured);
  may_block_ = may_block_ || kernel.captured.graph == nullptr;
  return {};
}

// ---- a run

void Enqueuer::arm() {
  served_.attend();
  for (BatchDevice& device : batch_.devices) {
    if (!device.start) continue;
    if (batch_.follows != nullptr)
      device.start->close_linked();
    else
      batch_.note(device.start->close(), "launch_doorbell", batch_.list.commands.front());
  }
  enqueued_ = 0;  // behind what a thread reads that opens the gates of a call that does not come back
  if (!batch_.timed_by_host()) enqueue_to(ahead_);
}

void Enqueuer::enqueue_rest() {
  if (!batch_.timed_by_host()) enqueue_to(batch_.list.runs.size());
}

void Enqueuer::enqueue_due(Duration since) {
  while (enqueued_ < batch_.list.runs.size()) {
    const auto gate = batch_.list.commands[batch_.list.runs[enqueued_].begin].gate;
    if (gate && batch_.list.gates[*gate] > since) return;
    if (batch_.backend.serialize && !last_has_ended()) return;
    enqueue_next();
  }
}

void Enqueuer::enqueue_to(std::size_t end) {
  while (enqueued_ < end && !batch_.backend.lost) enqueue_next();
}

bool Enqueuer::last_has_ended() const {
  if (enqueued_ == 0) return true;
  const Command& last = batch_.list.commands[batch_.list.runs[enqueued_ - 1].end - 1];
  return answer(cudaStreamQuery(batch_.lanes[last.last_lane].stream)) == cudaSuccess;
}

void Enqueuer::enqueue_next() {
  const std::uint32_t next = enqueued_.load(std::memory_order_relaxed);
  enqueue(next);
  enqueued_.store(next + 1, std::memory_order_release);
}

void Enqueuer::enqueue(std::uint32_t run) {
  const auto [begin, end] = batch_.list.runs[run];
  const Command& command = batch_.list.commands[begin];
  batch_.note(cudaSetDevice(batch_.lanes[command.lane].device), "cudaSetDevice", command);
  release_command(begin);
  do_work(run);
  if (batch_.bound.overlaps) batch_.enqueued = batch_.backend.clock.now();
  note_point(batch_.points[end - 1].end, command);
}

/// Holds a command until its gate is open and the commands that it waits for have ended, and records that instant.
void Enqueuer::release_command(std::uint32_t position) {
  const Command& command = batch_.list.commands[position];
  if (batch_.gate == GateKind::MemoryWait && (command.gate ? 1 : 0) + command.waits.size() > 1) {
    hold_by_memory(command);
  } else {
    if (command.gate) hold_at_gate(position);
    for (const std::uint32_t before : command.waits) wait_for(batch_.points[before].end, position);
  }
  const Event& start = batch_.points[position].start;
  if (start) batch_.note(cudaEventRecord(start.get(), batch_.lanes[command.lane].stream), "cudaEventRecord", command);
}

/// The stream itself waits for all signals, in as few operations as it can.
void Enqueuer::hold_by_memory(const Command& command) {
  std::array<Awaited, kMostAwaited> signals;
  std::size_t count = 0;
  const auto wait = [&] {
    batch_.note(cuda::hold_by_memory(batch_.backend.driver, batch_.lanes[command.lane].stream,
                                     std::span(signals).first(count)));
    count = 0;
  };
  const auto add = [&](Signal<Count> signal, Count value) {
    if (count == signals.size()) wait();
    signals[count++] = {signal, value};
  };
  if (command.gate) add(batch_.gates[*command.gate], batch_.run);
  for (const std::uint32_t before : command.waits) {
    const Point& point = batch_.points[before].end;
    add(batch_.lanes[point.lane].progress, batch_.lanes[point.lane].base + point.step);
  }
  wait();
}

void Enqueuer::hold_at_gate(std::uint32_t position) {
  const Command& command = batch_.list.commands[position];
  Lane& lane = batch_.lanes[command.lane];
  const auto& start = batch_.devices[lane.place].start;
  if (!start)
    return batch_.note(
        hold_stream(batch_.backend.driver, batch_.gate, lane.stream, batch_.gates[*command.gate], batch_.run));
  const Duration offset = batch_.list.gates[*command.gate];
  const HostSignal<TimerValue> released = batch_.points[position].released;
  if (batch_.follows == nullptr)
    return batch_.note(start->hold(lane.stream, offset, released), "launch_timer_gate", command);
  wait_for_run_before(lane, command);
  batch_.note(start->start_and_hold(lane.stream, offset, batch_.devices[lane.place].began, released),
              "launch_linked_gate", command);
}

/// Holds a lane until the run before has ended, in all its lanes. By events: nothing else runs on a GPU then that would
/// keep a stream from seeing one.
void Enqueuer::wait_for_run_before(Lane& lane, const Command& command) {
  if (std::exchange(lane.begun, true)) return;
  for (const Lane& before : batch_.follows->lanes)
    batch_.note(cudaStreamWaitEvent(lane.stream, before.ended.get(), 0), "cudaStreamWaitEvent", command);
}

/// Holds a command until another lane has reached a point. A stream may see an event only when other copies of its GPU
/// are over, so where possible it waits for the other lane's progress signal.
void Enqueuer::wait_for(const Point& point, std::uint32_t position) {
  const Command& command = batch_.list.commands[position];
  const Lane& lane = batch_.lanes[command.lane];
  const Lane& other = batch_.lanes[point.lane];
  Signal<Count> signal = other.progress;
  if (point.is_watched_on(lane.place)) signal = batch_.devices[lane.place].progress[point.lane];
  const Count value = other.base + point.step;
  if (batch_.timed_by_host()) {
    batch_.note(cudaStreamWaitEvent(lane.stream, point.event.get(), 0), "cudaStreamWaitEvent", command);
  } else if (batch_.timed_by_gpus()) {
    batch_.note(hold_by_kernel(lane.stream, signal, value, batch_.points[position].released));
  } else {
    batch_.note(hold_stream(batch_.backend.driver, batch_.gate, lane.stream, signal, value));
  }
}

void Enqueuer::note_point(const Point& point, const Command& command) {
  if (!point.event) return;
  const Lane& lane = batch_.lanes[point.lane];
  if (command.lane != command.last_lane) batch_.note(cudaSetDevice(lane.device), "cudaSetDevice", command);
  const bool last = &point == lane.points.back();
  if (last && lane.ended) batch_.note(cudaEventRecord(lane.ended.get(), lane.stream), "cudaEventRecord", command);
  if (point.step != 0) {  // first: the host or a lane waits for it, and the event delays it by 3 us
    const auto set = [&](Signal<Count> signal) {
      batch_.note(set_in_stream(batch_.backend.driver, lane.stream, signal, lane.base + point.step));
    };
    for (const std::uint32_t place : point.watchers) set(batch_.devices[place].progress[point.lane]);
    set(lane.progress);
  }
  batch_.note(cudaEventRecord(point.event.get(), lane.stream), "cudaEventRecord", command);
  if (!last || !batch_.backend.sleeps()) return;
  StreamWaker& waker = batch_.bound.overlaps ? *batch_.backend.caller : batch_.backend.conductor.waker();
  batch_.note(waker.call_from(lane.stream), "cudaLaunchHostFunc", command);
}

// ---- commands

void Enqueuer::do_work(std::uint32_t run) {
  const std::uint32_t position = batch_.list.runs[run].begin;
  const Command& command = batch_.list.commands[position];
  switch (command.kind) {
    case Command::Kind::Copy:
    case Command::Kind::Nothing: return copy(run);
    case Command::Kind::Rows: return copy_rows(position);
    case Command::Kind::SmCopy: return copy_by_kernel(position);
    case Command::Kind::Inline: return copy_inline(position);
    case Command::Kind::Staged: return copy_staged(position);
    case Command::Kind::Pageable:
    case Command::Kind::Mapped: return batch_.note(served_.enqueue(position));
    case Command::Kind::Kernel: return launch(position);
    case Command::Kind::HostWork:
      return batch_.note(cudaLaunchHostFunc(batch_.lanes[command.lane].stream, run_host_work, &host_work_[position]),
                         "cudaLaunchHostFunc", command);
  }
}

void Enqueuer::copy(std::uint32_t run) {
  const Command& command = batch_.list.commands[batch_.list.runs[run].begin];
  const cudaStream_t stream = batch_.lanes[command.lane].stream;
  Copies& copies = copies_[run];
  const bool together = batch_.bound.plan.timeline.streams[command.stream].transfer->method.together;
  const cudaError_t status = !batch_.backend.batches_copies ? copies.enqueue_each(stream, 0, copies.count())
                             : together                     ? copies.enqueue(stream, 0, copies.count())
                                                            : copies.enqueue(stream);
  batch_.note(status, "cudaMemcpyAsync", command);
}

void Enqueuer::copy_rows(std::uint32_t position) {
  const Command& command = batch_.list.commands[position];
  const StreamBinding& binding = batch_.bound.bindings[command.stream];
  batch_.note(cuda::copy_rows(batch_.backend.machine, *batch_.stream_of(command).transfer, binding.destination.data,
                              binding.source.data, batch_.lanes[command.lane].stream),
              "cudaMemcpy2DAsync", command);
}

void Enqueuer::copy_by_kernel(std::uint32_t position) {
  const Command& command = batch_.list.commands[position];
  const StreamBinding& binding = batch_.bound.bindings[command.stream];
  launch_copy(batch_.lanes[command.lane].stream, binding.destination.data + command.offset,
              binding.source.data + command.offset, command.bytes);
  batch_.note(cudaGetLastError(), "launch_copy", command);
}

void Enqueuer::copy_inline(std::uint32_t position) {
  const Command& command = batch_.list.commands[position];
  const StreamBinding& binding = batch_.bound.bindings[command.stream];
  const cudaStream_t stream = batch_.lanes[command.lane].stream;
  std::byte* const to = binding.destination.data + command.offset;
  const std::byte* const from = binding.source.data + command.offset;
  if (can_write_in_stream(to, command.bytes))
    return batch_.note(write_in_stream(batch_.backend.driver, stream, to, from, command.bytes));
  launch_inline(stream, to, from, command.bytes);
  batch_.note(cudaGetLastError(), "launch_inline", command);
}

/// Copies chunk by chunk through a ring in host memory: the first leg fills, the second drains, each waiting for the
/// other only where the ring is full or empty. The second leg waits for the first chunk by a signal, for the reason
/// given at `wait_for`, and for later chunks by events, since a signal would cost 11 us each. An event costs 3 us, so
/// none is recorded without a leg that waits for it.
void Enqueuer::copy_staged(std::uint32_t position) {
  const Command& command = batch_.list.commands[position];
  const Ring& ring = *rings_[position];
  for (std::size_t offset = 0, i = 0; offset < command.bytes; offset += ring.chunk, ++i) {
    const Chunk chunk{i, offset, std::min(ring.chunk, command.bytes - offset),
                      ring.memory.data() + i % Ring::kChunks * ring.chunk};
    fill(command, ring, chunk);
    drain(command, ring, chunk);
  }
  batch_.note(cudaSetDevice(batch_.lanes[command.lane].device), "cudaSetDevice", command);
  note_point(batch_.points[position].leg_end, command);
}

void Enqueuer::fill(const Command& command, const Ring& ring, const Chunk& chunk) {
  const Lane& lane = batch_.lanes[command.lane];
  const std::byte* const source = batch_.bound.bindings[command.stream].source.data + chunk.offset;
  const std::size_t slot = chunk.index % Ring::kChunks;
  batch_.note(cudaSetDevice(lane.device), "cudaSetDevice", command);
  if (chunk.index >= Ring::kChunks)
    batch_.note(cudaStreamWaitEvent(lane.stream, ring.drained[slot].get(), 0), "cudaStreamWaitEvent", command);
  batch_.note(cudaMemcpyAsync(chunk.data, source, chunk.bytes, cudaMemcpyDeviceToHost, lane.stream), "cudaMemcpyAsync",
              command);
  if (by_signal(chunk)) {
    batch_.note(set_in_stream(batch_.backend.driver, lane.stream, ring.first_filled, batch_.run));
  } else {
    batch_.note(cudaEventRecord(ring.filled[slot].get(), lane.stream), "cudaEventRecord", command);
  }
}

void Enqueuer::drain(const Command& command, const Ring& ring, const Chunk& chunk) {
  const Lane& lane = batch_.lanes[command.last_lane];
  std::byte* const destination = batch_.bound.bindings[command.stream].destination.data + chunk.offset;
  const std::size_t slot = chunk.index % Ring::kChunks;
  batch_.note(cudaSetDevice(lane.device), "cudaSetDevice", command);
  if (by_signal(chunk)) {
    batch_.note(hold_by_kernel(lane.stream, ring.first_filled, batch_.run));
  } else {
    batch_.note(cudaStreamWaitEvent(lane.stream, ring.filled[slot].get(), 0), "cudaStreamWaitEvent", command);
  }
  batch_.note(cudaMemcpyAsync(destination, chunk.data, chunk.bytes, cudaMemcpyHostToDevice, lane.stream),
              "cudaMemcpyAsync", command);
  if (chunk.offset + Ring::kChunks * ring.chunk < command.bytes)
    batch_.note(cudaEventRecord(ring.drained[slot].get(), lane.stream), "cudaEventRecord", command);
}

/// Calls a kernel of a command. @return whether it did not throw
template <class Call>
bool Enqueuer::call_kernel(const Command& command, const BoundCall& kernel, const Call& call) {
  const auto thrown = thrown_by(call);
  if (thrown) kernel_failed(command, kernel.name, *thrown);
  return !thrown;
}

void Enqueuer::launch(std::uint32_t position) {
  const Command& command = batch_.list.commands[position];
  const cudaStream_t stream = batch_.lanes[command.lane].stream;
  if (const cudaGraphExec_t graph = kernels_[position].captured.graph.get(); graph != nullptr)
    return batch_.note(cudaGraphLaunch(graph, stream), "cudaGraphLaunch", command);
  for (const DeviceCall& call : kernels_[position].on_gpu)
    if (!call_kernel(command, call.bound, [&] { call.form(call.bound.launch(), stream); })) break;
  if (const cudaError_t status = cudaGetLastError(); status != cudaSuccess)
    kernel_failed(command, batch_.stream_of(command).kernel->name, cudaGetErrorString(status));
}

void Enqueuer::run_host_work(void* work) {
  const auto [enqueuer, position] = *static_cast<const HostWork*>(work);
  if (enqueuer->abandoned_) return;
  const Command& command = enqueuer->batch_.list.commands[position];
  for (const BoundCall& call : enqueuer->kernels_[position].calls)
    if (!enqueuer->call_kernel(command, call, [&] { call.forms->host(call.launch()); })) break;
}

/// Host work may ask no driver, and has not failed since a GPU is broken.
void Enqueuer::kernel_failed(const Command& command, std::string_view kernel, std::string_view what) {
  Error error = tutti::internal::kernel_failed(batch_.stream_of(command), kernel, what);
  command.kind == Command::Kind::HostWork ? batch_.note(std::move(error)) : batch_.note_call(std::move(error));
}

}  // namespace tutti::internal::cuda
