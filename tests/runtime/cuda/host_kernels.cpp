// The kernels of device_kernels.hpp, written for GPUs that are executed on the host.
#include <list>
#include <mutex>

#include "runtime/cuda/handles.hpp"
#include "tests/runtime/cuda/device_kernels.hpp"
#include "tests/support/host_cuda/host_cuda.hpp"

namespace tutti::internal::test {
namespace {

using host_cuda::Instant;
using Ended = std::optional<Instant>;

struct Call {
  HostKernel kernel;
  KernelLaunch launch;
};

void call(void* raw) {
  const auto* what = static_cast<const Call*>(raw);
  what->kernel(what->launch);
}

/// Calls that are still to be made; kept to the end of the program.
Call* keep(Call call) {
  static std::mutex mutex;
  static auto* const calls = new std::list<Call>;
  const std::lock_guard lock(mutex);
  return &calls->emplace_back(std::move(call));
}

}  // namespace

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

DeviceKernel device_mark(HostKernel mark) {
  return [mark](const KernelLaunch& launch, DeviceStream stream) {
    cudaLaunchHostFunc(stream, call, keep({mark, launch}));
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

DeviceKernel device_allocates() {
  return [](const KernelLaunch&, DeviceStream) {
    void* memory = nullptr;
    if (cudaMalloc(&memory, 1 << 20) == cudaSuccess) cudaFree(memory);
  };
}

DeviceKernel device_waits() {
  return [](const KernelLaunch&, DeviceStream stream) { cudaStreamSynchronize(stream); };
}

DeviceKernel device_uses_default_stream() {
  return [](const KernelLaunch&, DeviceStream) {
    host_cuda::launch(nullptr, [](Instant, Instant now) { return Ended(now); });
  };
}

DeviceKernel device_pins() {
  return [](const KernelLaunch&, DeviceStream) {
    void* memory = nullptr;
    if (cudaHostAlloc(&memory, 4096, cudaHostAllocDefault) == cudaSuccess) cudaFreeHost(memory);
  };
}

DeviceKernel device_frees() {
  return [](const KernelLaunch& launch, DeviceStream) { cudaFree(launch.output.data()); };
}

std::size_t free_device_memory() {
  std::size_t free = 0, total = 0;
  cudaSetDevice(0);
  cudaMemGetInfo(&free, &total);
  return free;
}

}  // namespace tutti::internal::test
