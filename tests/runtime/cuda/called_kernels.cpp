// The kernels of device_kernels.hpp that are made of calls of the CUDA runtime, and so are the same on GPUs and where
// the host executes them.
#include <algorithm>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/cuda/base/handles.hpp"
#include "tests/runtime/cuda/device_kernels.hpp"

namespace tutti::internal::test {
namespace {

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

DeviceKernel device_mark(HostKernel mark) {
  return [mark](const KernelLaunch& launch, DeviceStream stream) {
    cudaLaunchHostFunc(stream, call, keep({mark, launch}));
  };
}

std::span<std::byte> pinned(std::size_t size) {
  void* memory = nullptr;
  cudaHostAlloc(&memory, size, cudaHostAllocDefault);
  return {static_cast<std::byte*>(memory), size};
}

DeviceKernel device_fetches(std::span<std::byte> to) {
  return [to](const KernelLaunch& launch, DeviceStream stream) {
    cudaMemcpyAsync(to.data(), launch.input.data(), std::min(to.size(), launch.input.size()), cudaMemcpyDeviceToHost,
                    stream);
  };
}

DeviceKernel device_forks(int branches, bool copies) {
  struct Branch {
    cudaStream_t stream = nullptr;
    cudaEvent_t end = nullptr;
  };
  const auto forked = std::make_shared<cudaEvent_t>();
  const auto made = std::make_shared<std::vector<Branch>>();
  const std::span<std::byte> word = pinned(sizeof(int));
  return [=](const KernelLaunch& launch, DeviceStream stream) {
    if (made->empty()) {
      cudaEventCreateWithFlags(forked.get(), cudaEventDisableTiming);
      for (int i = 0; i < branches; ++i) {
        Branch& branch = made->emplace_back();
        cudaStreamCreateWithFlags(&branch.stream, cudaStreamNonBlocking);
        cudaEventCreateWithFlags(&branch.end, cudaEventDisableTiming);
      }
    }
    cudaEventRecord(*forked, stream);
    for (const Branch& branch : *made) {
      cudaStreamWaitEvent(branch.stream, *forked, 0);
      add_one(launch.output, branch.stream);
      if (copies) {
        cudaMemcpyAsync(word.data(), launch.output.data() + sizeof(int), word.size(), cudaMemcpyDeviceToHost,
                        branch.stream);
        cudaMemsetAsync(launch.output.data() + 2 * sizeof(int), 1, sizeof(int), branch.stream);
        cudaMemcpyAsync(launch.output.data() + sizeof(int), word.data(), word.size(), cudaMemcpyHostToDevice,
                        branch.stream);
      }
      cudaEventRecord(branch.end, branch.stream);
      cudaStreamWaitEvent(stream, branch.end, 0);
    }
    add_one(launch.output, stream);
  };
}

DeviceKernel device_counts(int kernels) {
  return [kernels](const KernelLaunch& launch, DeviceStream stream) {
    for (int i = 0; i < kernels; ++i) add_one(launch.output, stream);
  };
}

DeviceKernel device_mix() {
  return [](const KernelLaunch& launch, DeviceStream stream) {
    for (std::size_t k = 0; k < launch.writes.size(); ++k) mix_into(launch, k, stream);
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
