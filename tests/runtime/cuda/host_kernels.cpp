// The kernels of device_kernels.hpp, written for GPUs that are executed on the host.

#include "runtime/cuda/handles.hpp"
#include "tests/runtime/cuda/device_kernels.hpp"
#include "tests/support/host_cuda/host_cuda.hpp"

namespace tutti::internal::test {
namespace {

using host_cuda::Instant;
using Ended = std::optional<Instant>;

}  // namespace

void add_one(std::span<std::byte> output, DeviceStream stream) {
  host_cuda::launch(stream,
                    [word = reinterpret_cast<int*>(output.data())](Instant, Instant now) -> Ended {
                      ++*word;
                      return now;
                    },
                    {output.data()});
}

DeviceKernel device_invert() {
  return [](const KernelLaunch& launch, DeviceStream stream) {
    host_cuda::launch(stream,
                      [input = launch.input, output = launch.output](Instant, Instant now) -> Ended {
                        for (std::size_t i = 0; i < input.size(); ++i) output[i] = ~input[i];
                        return now;
                      },
                      {launch.input.data(), launch.output.data()});
  };
}

DeviceKernel device_slow() {
  return [](const KernelLaunch& launch, DeviceStream stream) {
    const auto length = static_cast<Instant>(3 * launch.declared.count());
    host_cuda::launch(stream, [=](Instant begin, Instant now) {
      return now < begin + length ? std::nullopt : Ended(begin + length);
    });
  };
}

DeviceKernel device_fault() {
  return [](const KernelLaunch&, DeviceStream stream) {
    host_cuda::launch(stream, [](Instant, Instant now) { return Ended(now); }, {reinterpret_cast<const void*>(8)});
  };
}

DeviceKernel device_hang() {
  return [](const KernelLaunch&, DeviceStream stream) {
    host_cuda::launch(stream, [](Instant, Instant) -> Ended { return std::nullopt; });
  };
}

DeviceKernel device_uses_default_stream() {
  return [](const KernelLaunch&, DeviceStream) {
    host_cuda::launch(nullptr, [](Instant, Instant now) { return Ended(now); });
  };
}

}  // namespace tutti::internal::test
