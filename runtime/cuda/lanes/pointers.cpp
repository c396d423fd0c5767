#include "runtime/cuda/lanes/pointers.hpp"

#include <array>

#include <fmt/format.h>

namespace tutti::internal::cuda {
namespace {

/// What the driver says of the first and of the last byte. @pre there is one
Expected<std::array<cudaPointerAttributes, 2>> ends_of(std::span<const std::byte> memory) {
  std::array<cudaPointerAttributes, 2> ends{};
  for (const auto& [address, found] : {std::pair(&memory.front(), &ends[0]), std::pair(&memory.back(), &ends[1])})
    if (auto ok = check(cudaPointerGetAttributes(found, address), "cudaPointerGetAttributes"); !ok)
      return tl::unexpected(std::move(ok.error()));
  return ends;
}

/// Kind of memory by the driver, as the end of "the buffer is ...".
std::string text_of(const cudaPointerAttributes& found) {
  switch (found.type) {
    case cudaMemoryTypeHost: return "pinned host memory";
    case cudaMemoryTypeManaged: return "managed memory, which may move";
    case cudaMemoryTypeDevice: return fmt::format("memory of GPU {}", found.device);
    default: return "host memory that is not pinned";
  }
}

bool is_of_gpu(const cudaPointerAttributes& found, int device) {
  return found.type == cudaMemoryTypeDevice && found.device == device;
}

Expected<void> check_pointer(const BoundDevices& bound, const CommandStream& stream, const BufferView& buffer,
                             Bytes size, std::string_view role) {
  if (size.count <= 0) return {};
  const Vertex& vertex = bound.machine.vertex(buffer.where);
  const bool on_gpu = vertex.kind == VertexKind::Gpu;
  const auto ends = ends_of(buffer.first(size).bytes());
  if (!ends) return tl::unexpected(ends.error());
  for (const cudaPointerAttributes& found : *ends) {
    const bool right =
        on_gpu ? is_of_gpu(found, bound.device_of(buffer.where))
               : found.type == cudaMemoryTypeHost || (vertex.pageable && found.type == cudaMemoryTypeUnregistered);
    if (right) continue;
    const std::string remedy =
        on_gpu ? fmt::format("allocate it through the backend, or by cudaMalloc on GPU {}, which is '{}'",
                             bound.device_of(buffer.where), vertex.name)
               : "allocate it through the backend, pin all of it with cudaHostRegister, or let it lie in a memory that "
                 "the machine calls pageable";
    return invalid_input(fmt::format("the {} buffer of stream '{}' is {}{}; {}", role, stream.name,
                                     &found == ends->data() ? "" : "in part ", text_of(found), remedy),
                         stream.place);
  }
  return {};
}

}  // namespace

Expected<bool> lies_at(const BoundDevices& bound, VertexId where, std::span<const std::byte> memory) {
  const Vertex& vertex = bound.machine.vertex(where);
  const bool on_gpu = vertex.kind == VertexKind::Gpu;
  const auto ends = ends_of(memory);
  if (!ends) return tl::unexpected(ends.error());
  for (const cudaPointerAttributes& found : *ends) {
    if (found.type == cudaMemoryTypeManaged)
      return invalid_input(
          "the memory to wrap is managed memory, which may move; allocate it with cudaMalloc or cudaHostAlloc");
    const bool right = on_gpu ? is_of_gpu(found, bound.device_of(where)) : found.type != cudaMemoryTypeDevice;
    if (!right)
      return invalid_input(
          fmt::format("the memory to wrap is {}, and '{}' is {}; name the place that it lies in", text_of(found),
                      vertex.name, on_gpu ? fmt::format("GPU {}", bound.device_of(where)) : "a memory of the host"));
  }
  if (ends->front().type != ends->back().type)
    return invalid_input("the memory to wrap is pinned in part; pin all of it, or nothing");
  return on_gpu || vertex.pageable || ends->front().type == cudaMemoryTypeHost;
}

Expected<void> check_pointers(const BoundDevices& bound, const BoundPlan& plan) {
  const auto streams = plan.plan.batch.streams();
  for (std::size_t s = 0; s < streams.size(); ++s) {
    const auto& [name, transfer, kernel, place, copied] = streams[s];
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
    for (const auto& [buffer, role] : kernel_memory(binding))
      if (auto ok = check_pointer(bound, streams[s], *buffer, buffer->size, role); !ok) return ok;
  }
  return {};
}

}  // namespace tutti::internal::cuda
