#include "runtime/cuda/plain_copy.hpp"

#include <cmath>

#include "runtime/cuda/handles.hpp"

namespace tutti {
namespace {

Expected<int> device_of(const BufferView& from, const BufferView& to) {
  for (const BufferView* buffer : {&to, &from}) {
    cudaPointerAttributes attributes{};
    if (auto ok = cuda::check(cudaPointerGetAttributes(&attributes, buffer->data), "cudaPointerGetAttributes"); !ok)
      return tl::unexpected(std::move(ok.error()));
    if (attributes.type == cudaMemoryTypeDevice) return attributes.device;
  }
  return machine_trouble("neither end of the copy is on a GPU");
}

}  // namespace

Expected<Duration> time_plain_copy(const BufferView& from, const BufferView& to) {
  const auto device = device_of(from, to);
  if (!device) return tl::unexpected(device.error());
  const cuda::DeviceGuard guard(*device);
  const auto stream = cuda::make_stream(*device);
  const auto start = cuda::make_event(*device, cudaEventDefault);
  const auto end = cuda::make_event(*device, cudaEventDefault);
  for (const auto* made : {&start, &end})
    if (!*made) return tl::unexpected(made->error());
  if (!stream) return tl::unexpected(stream.error());
  const auto size = static_cast<std::size_t>(to.size.count);
  for (const auto& [status, call] :
       {std::pair(cudaEventRecord(start->get(), stream->get()), "cudaEventRecord"),
        {cudaMemcpyAsync(to.data, from.data, size, cudaMemcpyDefault, stream->get()), "cudaMemcpyAsync"},
        {cudaEventRecord(end->get(), stream->get()), "cudaEventRecord"},
        {cudaStreamSynchronize(stream->get()), "cudaStreamSynchronize"}})
    if (auto ok = cuda::check(status, call); !ok) return tl::unexpected(std::move(ok.error()));
  return cuda::elapsed_ns(*start, *end).map([](double ns) {
    return Duration{static_cast<std::int64_t>(std::llround(ns))};
  });
}

}  // namespace tutti
