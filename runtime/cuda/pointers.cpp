#include "runtime/cuda/pointers.hpp"

#include <array>

#include <fmt/format.h>

namespace tutti::internal::cuda {
namespace {

Expected<void> check_pointer(const BoundDevices& bound, const CommandStream& stream, const BufferView& buffer,
                             Bytes size, std::string_view role) {
  if (size.count <= 0) return {};
  const Vertex& vertex = bound.machine.vertex(buffer.where);
  const bool on_gpu = vertex.kind == VertexKind::Gpu;
  for (const std::byte* address : {buffer.data, buffer.data + size.count - 1}) {
    cudaPointerAttributes found{};
    if (auto ok = check(cudaPointerGetAttributes(&found, address), "cudaPointerGetAttributes"); !ok) return ok;
    const bool right =
        on_gpu ? found.type == cudaMemoryTypeDevice && found.device == bound.device_of(buffer.where)
               : found.type == cudaMemoryTypeHost || (vertex.pageable && found.type == cudaMemoryTypeUnregistered);
    if (right) continue;
    const std::string remedy =
        on_gpu ? fmt::format("allocate it through the backend, or by cudaMalloc on GPU {}, which is '{}'",
                             bound.device_of(buffer.where), vertex.name)
               : "allocate it through the backend, pin all of it with cudaHostRegister, or let it lie in a memory that "
                 "the machine calls pageable";
    return invalid_input(fmt::format("the {} buffer of stream '{}' is {}{}; {}", role, stream.name,
                                     address == buffer.data ? "" : "in part ", text_of(found), remedy),
                         stream.place);
  }
  return {};
}

}  // namespace

std::string text_of(const cudaPointerAttributes& found) {
  switch (found.type) {
    case cudaMemoryTypeHost: return "pinned host memory";
    case cudaMemoryTypeManaged: return "managed memory, which may move";
    case cudaMemoryTypeDevice: return fmt::format("memory of GPU {}", found.device);
    default: return "host memory that is not pinned";
  }
}

Expected<bool> lies_at(const BoundDevices& bound, VertexId where, std::span<const std::byte> memory) {
  const Vertex& vertex = bound.machine.vertex(where);
  const bool on_gpu = vertex.kind == VertexKind::Gpu;
  std::array<cudaPointerAttributes, 2> found{};  // of the first and of the last byte
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::byte* const address = i == 0 ? memory.data() : memory.data() + memory.size() - 1;
    if (auto ok = check(cudaPointerGetAttributes(&found[i], address), "cudaPointerGetAttributes"); !ok)
      return tl::unexpected(std::move(ok.error()));
  }
  const auto is_right = [&](const cudaPointerAttributes& one) {
    return on_gpu ? one.type == cudaMemoryTypeDevice && one.device == bound.device_of(where)
                  : one.type == cudaMemoryTypeHost || one.type == cudaMemoryTypeUnregistered;
  };
  for (const cudaPointerAttributes& one : found)
    if (one.type == cudaMemoryTypeManaged) {
      return invalid_input(
          "the memory to wrap is managed memory, which may move; allocate it with cudaMalloc or cudaHostAlloc");
    } else if (!is_right(one)) {
      return invalid_input(
          fmt::format("the memory to wrap is {}, and '{}' is {}; name the place that it lies in", text_of(one),
                      vertex.name, on_gpu ? fmt::format("GPU {}", bound.device_of(where)) : "a memory of the host"));
    }
  if (found[0].type != found[1].type)
    return invalid_input("the memory to wrap is pinned in part; pin all of it, or nothing");
  return on_gpu || vertex.pageable || found[0].type == cudaMemoryTypeHost;
}

Expected<void> check_pointers(const BoundDevices& bound, const BoundPlan& plan) {
  const auto streams = plan.plan.batch.streams();
  for (std::size_t s = 0; s < streams.size(); ++s) {
    const auto& [name, transfer, kernel, place] = streams[s];
    const StreamBinding& binding = plan.bindings[s];
    if (transfer) {
      for (const auto& [buffer, role] :
           {std::pair(&binding.source, "source"), std::pair(&binding.destination, "destination")})
        if (auto ok =
                check_pointer(bound, streams[s], *buffer, bytes_at(bound.machine, *transfer, buffer->where), role);
            !ok)
          return ok;
    }
    if (!kernel || bound.machine.vertex(kernel->on).kind != VertexKind::Gpu) continue;
    for (const auto& [buffer, role] :
         {std::pair(&binding.kernel_input, "kernel input"), std::pair(&binding.kernel_output, "kernel output")})
      if (auto ok = check_pointer(bound, streams[s], *buffer, buffer->size, role); !ok) return ok;
  }
  return {};
}

}  // namespace tutti::internal::cuda
