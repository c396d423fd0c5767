#pragma once
#include <cstdint>

#include <cuda/atomic>

#include "model/control/fused_limits.hpp"

namespace tutti::internal::cuda {

/// The GPU's timer, ns.
__device__ inline std::uint64_t global_time() {
  std::uint64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

/// A thread of a block on a GPU, for `run_fused_block` and `run_ping_pong_block`.
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

  // Counted words are of this GPU. What they release reaches other GPUs behind a `set`, which is of system scope: the
  // order is transitive.
  __device__ static std::uint64_t draw(std::uint64_t* word) {
    return OnGpu(*word).fetch_add(1, ::cuda::std::memory_order_relaxed);
  }
  __device__ static std::uint64_t add(std::uint64_t* word) {
    return OnGpu(*word).fetch_add(1, ::cuda::std::memory_order_acq_rel);
  }
  __device__ static void add_some(std::uint64_t* word, std::uint64_t count) {
    OnGpu(*word).fetch_add(count, ::cuda::std::memory_order_relaxed);
  }
  __device__ static void set(std::uint64_t* word, std::uint64_t value) {
    InSystem(*word).store(value, ::cuda::std::memory_order_release);
  }
  __device__ static bool wait(const std::uint64_t* word, std::uint64_t value, const volatile std::uint64_t* stop) {
    constexpr std::uint32_t kLooks = 1024;  // polls of host memory slow the GPU's copies down
    const InSystem waited(*const_cast<std::uint64_t*>(word));
    for (std::uint32_t look = 1; waited.load(::cuda::std::memory_order_relaxed) < value; ++look)
      if (look % kLooks == 0 && *stop != 0) return false;
    static_cast<void>(waited.load(::cuda::std::memory_order_acquire));  // words only grow
    return true;
  }
  __device__ static void rest(std::uint64_t ns) {
    const std::uint64_t start = global_time();
    while (global_time() - start < ns) {
    }
  }

 private:
  using OnGpu = ::cuda::atomic_ref<std::uint64_t, ::cuda::thread_scope_device>;
  using InSystem = ::cuda::atomic_ref<std::uint64_t, ::cuda::thread_scope_system>;

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
