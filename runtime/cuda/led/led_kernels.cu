#include "runtime/cuda/base/gpu_block.cuh"
#include "runtime/cuda/led/led_kernels.hpp"

namespace tutti::internal::cuda {
namespace {

/// Words of this GPU, of its peers and of the host.
struct GpuMemory {
  template <class Word>
  __device__ static Word load(const Word* word) {
    return ::cuda::atomic_ref<Word, ::cuda::thread_scope_system>(*const_cast<Word*>(word))
        .load(::cuda::std::memory_order_acquire);
  }
  template <class Word>
  __device__ static void store(Word* word, Word value) {
    ::cuda::atomic_ref<Word, ::cuda::thread_scope_system>(*word).store(value, ::cuda::std::memory_order_release);
  }
  template <class Word>
  __device__ static Word look(const Word* word) {
    return *const_cast<const volatile Word*>(word);
  }
  template <class Word>
  __device__ static void put(Word* word, Word value) {
    *const_cast<volatile Word*>(word) = value;
  }
  __device__ static void publish() {
    ::cuda::atomic_thread_fence(::cuda::std::memory_order_release, ::cuda::thread_scope_system);
  }
  __device__ static void settle() {
    ::cuda::atomic_thread_fence(::cuda::std::memory_order_seq_cst, ::cuda::thread_scope_system);
  }
  /// Sets a word unless somebody else has. @return its value then
  __device__ static std::uint64_t exchange(std::uint64_t* word, std::uint64_t was, std::uint64_t value) {
    const std::uint64_t found = atomicCAS(reinterpret_cast<unsigned long long*>(word), was, value);
    return found == was ? value : found;
  }
};

__global__ void led_gate(LedHold hold) {
  LedLooks<GpuMemory> looks(hold);
  while (!looks.passes(global_time())) {
  }
}

__global__ void led_keep_awake(const LedGate* until, LedFar far) {
  LedVigil<GpuMemory> vigil(until, far);
  while (!vigil.step()) {
  }
}

__global__ void led_wait(const LedLane* other, std::uint32_t steps, std::uint32_t step, const LedLane* lane) {
  while (!has_come<GpuMemory>(other, steps, step, lane)) {
  }
}

__global__ void led_step(LedLane* lane) { mark_step<GpuMemory>(lane); }

__global__ void led_end(LedLane* lane, LedEnd* ended) { mark_end<GpuMemory>(lane, ended); }

__global__ void led_release(LedGate* gate, std::uint32_t run) { GpuMemory::store(&gate->run, run); }

struct GpuTimer {
  __device__ std::uint64_t operator()() const { return global_time(); }
};

/// Brings the state of a run into the memory of the multiprocessor: a load that acquires empties its cache, and each
/// that follows would take as long as one of the GPU's memory.
__device__ LedWork brought_here(LedWork work) {
  extern __shared__ uint4 here[];
  const uint4* const there = reinterpret_cast<const uint4*>(work.state);
#pragma unroll 8
  for (std::uint32_t i = 0; i < work.state_size / sizeof(uint4); ++i) here[i] = there[i];
  work.move_state(reinterpret_cast<std::byte*>(here));
  return work;
}

__global__ void conduct_jobs(LedWork work) {
  if (work.state_size > 0) work = brought_here(work);
  auto conductor = conductor_of_jobs<GpuMemory>(work);
  while (conductor.step(GpuTimer{})) {
  }
}

__global__ void conduct_operations(LedWork work) {
  if (work.state_size > 0) work = brought_here(work);
  auto conductor = conductor_of_operations<GpuMemory>(work);
  while (conductor.step(GpuTimer{})) {
  }
}

}  // namespace

void launch_led_gate(cudaStream_t stream, const LedHold& hold) { led_gate<<<1, 1, 0, stream>>>(hold); }

void launch_led_keep_awake(cudaStream_t stream, const LedGate* until, const LedFar& far) {
  led_keep_awake<<<1, 1, 0, stream>>>(until, far);
}

void launch_led_wait(cudaStream_t stream, const LedLane* other, std::uint32_t steps, std::uint32_t step,
                     const LedLane* lane) {
  led_wait<<<1, 1, 0, stream>>>(other, steps, step, lane);
}

void launch_led_step(cudaStream_t stream, LedLane* lane) { led_step<<<1, 1, 0, stream>>>(lane); }

void launch_led_end(cudaStream_t stream, LedLane* lane, LedEnd* ended) { led_end<<<1, 1, 0, stream>>>(lane, ended); }

void launch_led_release(cudaStream_t stream, LedGate* gate, std::uint32_t run) {
  led_release<<<1, 1, 0, stream>>>(gate, run);
}

void launch_conductor(cudaStream_t stream, LedWork work) {
  constexpr std::uint32_t kRoom = 48 << 10;  // that every kernel may have
  if (work.state_size > kRoom) work.state_size = 0;
  if (work.overlaps)
    conduct_operations<<<1, 1, work.state_size, stream>>>(work);
  else
    conduct_jobs<<<1, 1, work.state_size, stream>>>(work);
}

cudaError_t load_led_kernels() {
  cudaFuncAttributes attributes;
  for (const void* kernel :
       {reinterpret_cast<const void*>(led_gate), reinterpret_cast<const void*>(led_keep_awake),
        reinterpret_cast<const void*>(led_wait), reinterpret_cast<const void*>(led_step),
        reinterpret_cast<const void*>(led_end), reinterpret_cast<const void*>(led_release),
        reinterpret_cast<const void*>(conduct_jobs), reinterpret_cast<const void*>(conduct_operations)})
    if (const cudaError_t status = cudaFuncGetAttributes(&attributes, kernel); status != cudaSuccess) return status;
  return cudaSuccess;
}

}  // namespace tutti::internal::cuda
