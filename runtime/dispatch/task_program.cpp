#include "runtime/dispatch/task_program.hpp"

#include <algorithm>
#include <cstring>

#include "model/base/random.hpp"

namespace tutti::internal {
namespace {

/// Bytes that are the same for the same seed.
void fill(std::span<std::byte> bytes, std::uint64_t seed) {
  Random random(seed);
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    const std::uint64_t x = random.next();
    std::memcpy(bytes.data() + at, &x, std::min<std::size_t>(8, bytes.size() - at));
  }
}

}  // namespace

Expected<void> TaskProgram::on_host_step(Job& job, std::size_t step) {
  Clock& clock = job.executor().clock();
  clock.wait_until(clock.now() + std::get<HostStep>(job.task().steps[step]).time);
  return {};
}

Expected<void> TaskProgram::on_work(Job& job) {
  Clock& clock = job.executor().clock();
  clock.wait_until(clock.now() + job.takes.value_or(job.task().declared_wcet.value_or(Duration{0})));
  return {};
}

Expected<BufferView> PatternProgram::make_buffer(DeviceBackend& backend, VertexId where, Bytes size) {
  auto buffer = backend.allocate(where, size);
  if (!buffer) return tl::unexpected(std::move(buffer.error()));
  buffers_.push_back(*std::move(buffer));
  return buffers_.back().view();
}

Expected<BufferView> PatternProgram::source_of(DeviceBackend& backend, const Transfer& transfer,
                                               std::size_t buffer_set) {
  const auto fits = [&](const Pending& output) { return is_same(output, buffer_set, transfer.from, transfer.size); };
  if (const auto found = std::find_if(outputs_.begin(), outputs_.end(), fits); found != outputs_.end()) {
    const BufferView output = found->output;
    outputs_.erase(found);
    return output;
  }
  auto buffer = make_buffer(backend, transfer.from, bytes_at(machine_, transfer, transfer.from));
  if (buffer && machine_.vertex(transfer.from).kind != VertexKind::Gpu) fill(buffer->bytes(), seed_ + buffers_.size());
  return buffer;
}

/// Whether a batch after this one copies this many bytes from the kernel's GPU, and no kernel has written them yet.
bool PatternProgram::is_brought_back(const Pending& output, std::size_t batch) const {
  const auto same = [&](const Pending& other) {
    return is_same(other, output.buffer_set, output.gpu, output.output.size);
  };
  std::ptrdiff_t wanted = -std::count_if(outputs_.begin(), outputs_.end(), same);
  const auto batches = batches_of(*task_);
  for (std::size_t b = batch + 1; b < batches.size(); ++b) {
    for (const CommandStream& stream : batches[b]->streams()) {
      if (stream.transfer && stream.transfer->from == output.gpu && stream.transfer->size == output.output.size)
        ++wanted;
    }
  }
  return wanted > 0;
}

Expected<std::vector<StreamBinding>> PatternProgram::bind(DeviceBackend& backend, const Batch& operation,
                                                          std::size_t batch, std::size_t buffer_set) {
  if (batch == 0 && buffer_set == 0) {  // a new run
    buffers_.clear();
    outputs_.clear();
  }
  std::vector<StreamBinding> bindings(operation.streams().size());
  for (std::size_t s = 0; s < bindings.size(); ++s) {
    const auto& transfer = operation.streams()[s].transfer;
    if (!transfer) continue;
    auto source = source_of(backend, *transfer, buffer_set);
    if (!source) return tl::unexpected(std::move(source.error()));
    auto destination = make_buffer(backend, transfer->to, bytes_at(machine_, *transfer, transfer->to));
    if (!destination) return tl::unexpected(std::move(destination.error()));
    bindings[s].source = *source;
    bindings[s].destination = *destination;
  }
  for (std::size_t s = 0; s < bindings.size(); ++s) {  // for later batches, so that no stream of this one takes it
    const CommandStream& stream = operation.streams()[s];
    if (!stream.kernel || !stream.transfer) continue;
    Pending pending{buffer_set, stream.kernel->on, {stream.kernel->on, nullptr, stream.transfer->size}};
    if (!is_brought_back(pending, batch)) continue;
    auto output = make_buffer(backend, pending.gpu, stream.transfer->size);
    if (!output) return tl::unexpected(std::move(output.error()));
    bindings[s].kernel_output = pending.output = *output;
    outputs_.push_back(pending);
  }
  return bindings;
}

}  // namespace tutti::internal
