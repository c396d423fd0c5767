#include <cstdint>
#include <limits>
#include <tuple>

#include <fmt/format.h>

#include "runtime/core/led_run.hpp"
#include "runtime/core/plain_backend.hpp"

namespace tutti::internal {
namespace {

Expected<void> check_buffer(const Topology& machine, const BufferView& buffer, VertexId where, Bytes least,
                            std::string_view stream, std::string_view role) {
  if (least.count == 0 && buffer.size.count == 0) return {};
  const bool host_work = machine.vertex(where).kind == VertexKind::Cpu;
  const bool in_place = host_work ? machine.vertex(buffer.where).kind == VertexKind::Memory : buffer.where == where;
  if (!in_place) {
    return invalid_input(fmt::format("the {} buffer of stream '{}' lies in '{}'; it belongs into {}", role, stream,
                                     machine.vertex(buffer.where).name,
                                     host_work ? "a memory" : fmt::format("'{}'", machine.vertex(where).name)));
  }
  if (buffer.size < least || buffer.data == nullptr) {
    return invalid_input(fmt::format("the {} buffer of stream '{}' has {}; it needs {}", role, stream,
                                     to_string(buffer.size), to_string(least)));
  }
  return {};
}

/// Whether a kernel can access data that lies in a place.
bool reaches(const Topology& machine, const Kernel& kernel, VertexId place) {
  return kernel.on == place ||
         (machine.vertex(kernel.on).kind == VertexKind::Cpu && machine.vertex(place).kind == VertexKind::Memory);
}

}  // namespace

Expected<std::unique_ptr<LedRun>> PlainBackend::lead(LedSet) {
  return invalid_input(fmt::format("backend '{}' has no conductor of its own; the host leads its runs", name()));
}

void fill_kernel_inputs(const Batch& batch, std::span<StreamBinding> bindings) {
  const auto streams = batch.streams();
  for (std::size_t s = 0; s < streams.size(); ++s) {
    const auto& [kernel, transfer] = std::tie(streams[s].kernel, streams[s].transfer);
    StreamBinding& binding = bindings[s];
    if (kernel && kernel->calls.empty() && transfer && binding.kernel_input.data == nullptr &&
        reaches(batch.machine(), *kernel, transfer->to))
      binding.kernel_input = binding.destination.first(bytes_at(batch.machine(), *transfer, transfer->to));
  }
}

std::vector<std::pair<const BufferView*, std::string>> kernel_memory(const StreamBinding& binding) {
  std::vector<std::pair<const BufferView*, std::string>> memory{{&binding.kernel_input, "kernel input"},
                                                                {&binding.kernel_output, "kernel output"}};
  for (const CallBinding& call : binding.calls)
    for (const std::vector<NamedView>* const views : {&call.reads, &call.writes})
      for (const NamedView& view : *views) memory.emplace_back(&view.memory, fmt::format("'{}'", view.name));
  return memory;
}

Expected<void> check_buffer_place(const Vertex& vertex, Bytes size) {
  if (!is_end(vertex.kind)) {
    return invalid_input(
        fmt::format("'{}' is a {}; buffers lie in a memory, a gpu or a device", vertex.name, to_string(vertex.kind)));
  }
  if (size.count < 0) return invalid_input("a buffer has 0 bytes or more");
  return {};
}

Expected<void> check_wrapped(const Vertex& vertex, std::span<const std::byte> memory) {
  if (memory.data() == nullptr && !memory.empty())
    return invalid_input("the memory to wrap has no address; give that of its first byte");
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  if (memory.size() > std::numeric_limits<std::int64_t>::max() || memory.size() > ~address)
    return invalid_input("the memory to wrap ends behind the last address; give its size in bytes");
  return check_buffer_place(vertex, Bytes{static_cast<std::int64_t>(memory.size())});
}

Buffer borrowed(BufferView memory, std::shared_ptr<void> owner) {
  class Owner final : public BufferSource {
   public:
    explicit Owner(std::shared_ptr<void> owner) : owner_(std::move(owner)) {}
    void give_back(const BufferView&) noexcept override { owner_.reset(); }

   private:
    std::shared_ptr<void> owner_;
  };
  return {memory, std::make_shared<Owner>(std::move(owner))};
}

Error kernel_failed(const CommandStream& stream, std::string_view kernel, std::string_view what) {
  return {
      ErrorCode::Kernel,
      fmt::format("kernel '{}' of stream '{}' failed: {}; its batch's results are invalid", kernel, stream.name, what),
      {}};
}

tl::unexpected<Error> does_not_fit(Bytes size, std::string_view place, Bytes used, Bytes total) {
  return machine_error(fmt::format("{} more do not fit on {}: {} of {} are in use", to_string(size), place,
                                   to_string(used), to_string(total)));
}

Expected<void> check_number_of_bindings(const Batch& batch, std::size_t bindings) {
  if (bindings == batch.streams().size()) return {};
  return invalid_input(
      fmt::format("the batch has {} streams and {} bindings; bind each stream", batch.streams().size(), bindings));
}

Expected<void> check_bindings(const Batch& batch, std::span<const StreamBinding> bindings) {
  const Topology& machine = batch.machine();
  const auto streams = batch.streams();
  if (auto ok = check_number_of_bindings(batch, bindings.size()); !ok) return ok;
  for (std::size_t s = 0; s < streams.size(); ++s) {
    const CommandStream& stream = streams[s];
    const StreamBinding& binding = bindings[s];
    if (stream.transfer) {
      const Transfer& transfer = *stream.transfer;
      for (const auto& [buffer, end, role] : {std::tuple(&binding.source, transfer.from, "source"),
                                              std::tuple(&binding.destination, transfer.to, "destination")}) {
        const Bytes least = bytes_at(machine, transfer, end);
        if (auto ok = check_buffer(machine, *buffer, end, least, stream.name, role); !ok) return ok;
      }
    }
    if (!stream.kernel) continue;
    if (!binding.calls.empty() && binding.calls.size() != stream.kernel->calls.size())
      return invalid_input(fmt::format("stream '{}' has {} kernels with buffers and memory for {}; bind each",
                                       stream.name, stream.kernel->calls.size(), binding.calls.size()));
    for (const auto& [buffer, role] : kernel_memory(binding)) {
      if (buffer->data == nullptr && buffer->size.count == 0) continue;
      if (auto ok = check_buffer(machine, *buffer, stream.kernel->on, Bytes{0}, stream.name, role); !ok) return ok;
    }
  }
  return {};
}

}  // namespace tutti::internal
