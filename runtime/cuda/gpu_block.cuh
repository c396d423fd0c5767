#pragma once
#include <cstdint>

#include "model/control/fused_limits.hpp"

namespace tutti::internal::cuda {

/// A thread of a block on a GPU, for `run_fused_block`.
class GpuBlock {
 public:
  __device__ explicit GpuBlock(std::uint64_t* shared) : shared_(shared) {}

  __device__ static std::uint32_t thread() { return threadIdx.x; }
  __device__ static std::uint32_t threads() { return blockDim.x; }

  template <class Call>
  __device__ std::uint64_t lead(Call call) const {
    __syncthreads();  // behind all that the threads did, and behind their last look at the shared word
    if (threadIdx.x == 0) *shared_ = call();
    __syncthreads();
    return *shared_;
  }
  __device__ static bool any(bool mine) {
    __syncwarp();  // a receiver's threads come one by one, and a barrier takes whole warps
    return __syncthreads_or(mine) != 0;
  }

  __device__ static std::uint64_t add(std::uint64_t* word) { return add_fenced(word, 1); }
  __device__ static void add_some(std::uint64_t* word, std::uint64_t count) {
    atomicAdd(reinterpret_cast<Word*>(word), static_cast<Word>(count));
  }
  __device__ static void set(std::uint64_t* word, std::uint64_t value) {
    __threadfence_system();
    *const_cast<volatile std::uint64_t*>(word) = value;
  }
  __device__ static bool wait(const std::uint64_t* word, std::uint64_t value, const volatile std::uint64_t* stop) {
    constexpr std::uint32_t kLooks = 1024;  // polls of host memory slow the GPU's copies down
    for (std::uint32_t look = 1; *const_cast<const volatile std::uint64_t*>(word) < value; ++look)
      if (look % kLooks == 0 && *stop != 0) return false;
    __threadfence_system();
    return true;
  }

 private:
  using Word = unsigned long long;  // as atomic functions take it

  __device__ static std::uint64_t add_fenced(std::uint64_t* word, std::uint64_t count) {
    __threadfence_system();
    const std::uint64_t before = atomicAdd(reinterpret_cast<Word*>(word), static_cast<Word>(count));
    __threadfence_system();
    return before;
  }

  std::uint64_t* shared_;
};

/// Blocks of a kernel that the current GPU has at once.
template <class Kernel>
[[nodiscard]] cudaError_t find_slots(Kernel kernel, std::uint32_t threads, FusedSlots& slots) {
  int device = 0, processors = 0, blocks = 0;
  if (const auto status = cudaGetDevice(&device); status != cudaSuccess) return status;
  if (const auto status = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
      status != cudaSuccess)
    return status;
  if (const auto status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, static_cast<int>(threads), 0);
      status != cudaSuccess)
    return status;
  slots.processors = static_cast<std::uint32_t>(processors);
  slots.blocks_of_each = static_cast<std::uint32_t>(blocks);
  slots.threads = threads;
  return cudaSuccess;
}

}  // namespace tutti::internal::cuda
