#include <algorithm>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/runtime/cuda/device_kernels.hpp"

namespace tutti::internal::test {
namespace {

__global__ void invert(const unsigned char* input, unsigned char* output, std::size_t size) {
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x)
    output[i] = static_cast<unsigned char>(~input[i]);
}

__global__ void slow(unsigned long long ns) {
  unsigned long long start = 0, now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - start < ns);
}

__global__ void fault(volatile int* nowhere) { *nowhere = 1; }

__global__ void hang(volatile int* word) {
  while (*word == 0) {
  }
}

__global__ void add_one(int* word) { atomicAdd(word, 1); }

void add_one(std::span<std::byte> output, cudaStream_t stream) {
  add_one<<<1, 1, 0, stream>>>(reinterpret_cast<int*>(output.data()));
}

struct Call {
  HostKernel kernel;
  KernelLaunch launch;
};

void call(void* raw) {
  const auto* what = static_cast<const Call*>(raw);
  what->kernel(what->launch);
}

/// Calls that the driver may still have to make; kept to the end of the program.
Call* keep(Call call) {
  static std::mutex mutex;
  static std::list<Call> calls;
  const std::lock_guard lock(mutex);
  return &calls.emplace_back(std::move(call));
}

}  // namespace

DeviceKernel device_invert() {
  return [](const KernelLaunch& launch, DeviceStream stream) {
    invert<<<4, 256, 0, stream>>>(reinterpret_cast<const unsigned char*>(launch.input.data()),
                                  reinterpret_cast<unsigned char*>(launch.output.data()), launch.input.size());
  };
}

DeviceKernel device_mark(HostKernel mark) {
  return [mark](const KernelLaunch& launch, DeviceStream stream) {
    cudaLaunchHostFunc(stream, call, keep({mark, launch}));
  };
}

DeviceKernel device_slow() {
  return [](const KernelLaunch& launch, DeviceStream stream) {
    slow<<<1, 1, 0, stream>>>(3 * static_cast<unsigned long long>(launch.declared.count()));
  };
}

DeviceKernel device_fault() {
  return [](const KernelLaunch&, DeviceStream stream) { fault<<<1, 1, 0, stream>>>(reinterpret_cast<int*>(8)); };
}

DeviceKernel device_hang() {
  return [](const KernelLaunch& launch, DeviceStream stream) {
    hang<<<1, 1, 0, stream>>>(reinterpret_cast<volatile int*>(const_cast<std::byte*>(launch.input.data())));
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
  return [](const KernelLaunch&, DeviceStream) { slow<<<1, 1>>>(10); };
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
