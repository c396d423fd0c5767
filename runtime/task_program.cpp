#include "runtime/task_program.hpp"

#include <algorithm>
#include <cstring>

namespace tutti {

Expected<void> TaskProgram::run(Job& job) {
  Clock& clock = job.executor().clock();
  if (job.task().steps.empty()) clock.wait_until(clock.now() + job.task().declared_wcet.value_or(Duration{0}));
  std::size_t batch = 0;
  for (const JobStep& step : job.task().steps) {
    if (const auto* host = std::get_if<HostStep>(&step)) {
      clock.wait_until(clock.now() + host->time);
    } else if (auto result = batchOp(job.executor(), job.batches()[batch++]); !result) {
      return tl::unexpected(std::move(result.error()));
    }
  }
  return {};
}

Expected<BufferView> PatternProgram::make_buffer(DeviceBackend& backend, VertexId where, Bytes size) {
  auto buffer = backend.allocate(where, size);
  if (!buffer) return tl::unexpected(std::move(buffer.error()));
  buffers_.push_back(*std::move(buffer));
  return buffers_.back().view();
}

Expected<BufferView> PatternProgram::source_of(DeviceBackend& backend, const Transfer& transfer, std::size_t buffer_set) {
  const auto fits = [&](const Pending& pending) {
    return pending.buffer_set == buffer_set && pending.gpu == transfer.from && pending.output.size == transfer.size;
  };
  if (const auto found = std::find_if(outputs_.begin(), outputs_.end(), fits); found != outputs_.end()) {
    const BufferView output = found->output;
    outputs_.erase(found);
    return output;
  }
  return make_buffer(backend, transfer.from, transfer.size);
}

/// Whether a batch after this one copies so many bytes from the kernel's GPU.
bool PatternProgram::is_brought_back(const Kernel& kernel, Bytes size, std::size_t batch) const {
  std::size_t position = 0;
  for (const JobStep& step : task_->steps) {
    const auto* operation = std::get_if<BatchOperation>(&step);
    if (operation == nullptr || position++ <= batch) continue;
    for (const CommandStream& stream : operation->streams()) {
      if (stream.transfer && stream.transfer->from == kernel.on && stream.transfer->size == size) return true;
    }
  }
  return false;
}

Expected<std::vector<StreamBinding>> PatternProgram::bind(DeviceBackend& backend, const BatchOperation& operation,
                                                          std::size_t batch, std::size_t buffer_set) {
  std::vector<StreamBinding> bindings;
  for (const CommandStream& stream : operation.streams()) {
    StreamBinding binding;
    if (stream.transfer) {
      const Transfer& transfer = *stream.transfer;
      auto source = source_of(backend, transfer, buffer_set);
      if (!source) return tl::unexpected(std::move(source.error()));
      auto destination = make_buffer(backend, transfer.to, transfer.size);
      if (!destination) return tl::unexpected(std::move(destination.error()));
      binding.source = *source;
      binding.destination = *destination;
    }
    if (stream.kernel && stream.transfer && is_brought_back(*stream.kernel, stream.transfer->size, batch)) {
      auto output = make_buffer(backend, stream.kernel->on, stream.transfer->size);
      if (!output) return tl::unexpected(std::move(output.error()));
      binding.kernel_output = *output;
      outputs_.push_back({buffer_set, stream.kernel->on, *output});
    }
    bindings.push_back(std::move(binding));
  }
  return bindings;
}

}  // namespace tutti
