#include "runtime/dispatch/task_program.hpp"

#include <algorithm>

namespace tutti::internal {
Expected<void> TaskProgram::on_host_step(Job& job, std::size_t step) {
  Clock& clock = job.executor().clock();
  const Duration end = clock.now() + std::get<HostStep>(job.task().steps[step]).time;
  clock.wait_until(std::min(end, job.ends_by.value_or(end)));
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

Expected<BufferView> PatternProgram::source_of(DeviceBackend& backend, const Transfer& transfer, const StreamFlow& flow,
                                               std::size_t buffer_set) {
  const Bytes size = bytes_at(machine_, transfer, transfer.from);
  if (flow.written_by) {
    const auto output = outputs_.extract({buffer_set, flow.written_by->batch, flow.written_by->stream});
    if (output && output.mapped().size >= size) return output.mapped();
  }
  auto buffer = make_buffer(backend, transfer.from, size);
  if (buffer && machine_.vertex(transfer.from).kind != VertexKind::Gpu)
    fill_with_pattern(buffer->bytes(), seed_ + buffers_.size());
  return buffer;
}

Expected<void> PatternProgram::make_sets(DeviceBackend& backend, std::size_t sets) {
  buffers_.clear();
  outputs_.clear();
  return named_.make_sets(backend, sets);
}

Expected<std::vector<StreamBinding>> PatternProgram::bind(DeviceBackend& backend, const Batch& operation,
                                                          std::size_t batch, std::size_t choice) {
  if (named_.is_used()) return named_.bind(operation, choice);
  std::vector<StreamBinding> bindings(operation.streams().size());
  const auto flow_of = [&](std::size_t s) {
    return batch < flow_.size() && s < flow_[batch].size() ? flow_[batch][s] : StreamFlow{};
  };
  for (std::size_t s = 0; s < bindings.size(); ++s) {
    const auto& transfer = operation.streams()[s].transfer;
    if (!transfer) continue;
    auto source = source_of(backend, *transfer, flow_of(s), choice);
    if (!source) return tl::unexpected(std::move(source.error()));
    auto destination = make_buffer(backend, transfer->to, bytes_at(machine_, *transfer, transfer->to));
    if (!destination) return tl::unexpected(std::move(destination.error()));
    bindings[s].source = *source;
    bindings[s].destination = *destination;
  }
  for (std::size_t s = 0; s < bindings.size(); ++s) {  // for later batches, so that no stream of this one takes it
    if (!flow_of(s).is_copied) continue;
    const CommandStream& stream = operation.streams()[s];
    auto output = make_buffer(backend, stream.kernel->on, stream.transfer->size);
    if (!output) return tl::unexpected(std::move(output.error()));
    bindings[s].kernel_output = *output;
    outputs_.emplace(std::tuple(choice, batch, s), *output);
  }
  return bindings;
}

}  // namespace tutti::internal
