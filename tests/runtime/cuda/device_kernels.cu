#include <cooperative_groups.h>

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

__global__ void increment(int* word) { atomicAdd(word, 1); }

constexpr int kCooperating = 1024;  // threads of a block, the most there are

__global__ void cooperate(int* words) {
  if (threadIdx.x == 0) atomicAdd(words, 1);
  cooperative_groups::this_grid().sync();
  if (blockIdx.x == 0 && threadIdx.x == 0) words[1] = atomicAdd(words, 0);
}

constexpr int kMostRead = 8;
struct Mixed {
  const unsigned char* in[kMostRead];
  std::size_t sizes[kMostRead];
  int count;
  unsigned first;  // term of the sum
  unsigned char* out;
  std::size_t size;
};

__global__ void mix(Mixed what) {
  for (std::size_t j = blockIdx.x * blockDim.x + threadIdx.x; j < what.size; j += gridDim.x * blockDim.x) {
    unsigned sum = what.first;
    for (int r = 0; r < what.count; ++r)
      sum += (2 * r + 3) * what.in[r][what.in[r] == what.out ? j : (7 * j + r) % what.sizes[r]];
    what.out[j] = static_cast<unsigned char>(sum);
  }
}

}  // namespace

void mix_into(const KernelLaunch& launch, std::size_t written, DeviceStream stream) {
  Mixed what{};
  for (const ReadBuffer& read : launch.reads) {
    what.in[what.count] = reinterpret_cast<const unsigned char*>(read.bytes.data());
    what.sizes[what.count++] = read.bytes.size();
  }
  what.first = static_cast<unsigned>(written) + 1;
  what.out = reinterpret_cast<unsigned char*>(launch.writes[written].bytes.data());
  what.size = launch.writes[written].bytes.size();
  mix<<<1, 128, 0, stream>>>(what);
}

void add_one(std::span<std::byte> output, DeviceStream stream) {
  increment<<<1, 1, 0, stream>>>(reinterpret_cast<int*>(output.data()));
}

DeviceKernel device_invert() {
  return [](const KernelLaunch& launch, DeviceStream stream) {
    invert<<<4, 256, 0, stream>>>(reinterpret_cast<const unsigned char*>(launch.input.data()),
                                  reinterpret_cast<unsigned char*>(launch.output.data()), launch.input.size());
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

std::size_t cooperating_places() {
  int each = 0, multiprocessors = 0;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, cooperate, kCooperating, 0);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0);
  return static_cast<std::size_t>(each * multiprocessors);
}

DeviceKernel device_cooperates(std::size_t blocks) {
  return [blocks](const KernelLaunch& launch, DeviceStream stream) {
    auto* words = reinterpret_cast<int*>(launch.output.data());
    void* arguments[] = {&words};
    cudaMemsetAsync(words, 0, 2 * sizeof(int), stream);
    cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(cooperate), dim3(static_cast<unsigned>(blocks)),
                                dim3(kCooperating), arguments, 0, stream);
  };
}

DeviceKernel device_uses_default_stream() {
  return [](const KernelLaunch&, DeviceStream) { slow<<<1, 1>>>(10); };
}

}  // namespace tutti::internal::test
