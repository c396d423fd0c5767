#include "runtime/cuda/plain_copy.hpp"

#include <chrono>
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

Expected<CopyTimes> time_plain_copy(const BufferView& from, const BufferView& to) {
  const auto device = device_of(from, to);
  if (!device) return tl::unexpected(device.error());
  const cuda::DeviceGuard guard(*device);
  const auto stream = cuda::make_stream(*device);
  const auto start = cuda::make_event(*device, cudaEventDefault);
  const auto end = cuda::make_event(*device, cudaEventDefault);
  for (const auto* made : {&start, &end})
    if (!*made) return tl::unexpected(made->error());
  if (!stream) return tl::unexpected(stream.error());
  const auto copy = [&] {
    const auto size = static_cast<std::size_t>(to.size.count);
    return cuda::check(cudaMemcpyAsync(to.data, from.data, size, cudaMemcpyDefault, stream->get()), "cudaMemcpyAsync");
  };
  const auto record = [&](const cuda::Event& event) {
    return cuda::check(cudaEventRecord(event.get(), stream->get()), "cudaEventRecord");
  };
  const auto synchronize = [&] { return cuda::check(cudaStreamSynchronize(stream->get()), "cudaStreamSynchronize"); };
  if (auto ok = record(*start).and_then(copy).and_then([&] { return record(*end); }).and_then(synchronize); !ok)
    return tl::unexpected(std::move(ok.error()));
  const auto on_the_gpu = cuda::elapsed_ns(*start, *end);
  if (!on_the_gpu) return tl::unexpected(on_the_gpu.error());
  const auto called = std::chrono::steady_clock::now();
  if (auto ok = copy().and_then(synchronize); !ok) return tl::unexpected(std::move(ok.error()));
  return CopyTimes{Duration{static_cast<std::int64_t>(std::llround(*on_the_gpu))},
                   std::chrono::steady_clock::now() - called};
}

}  // namespace tutti
