#include "runtime/cuda/base/gpu_block.cuh"
#include "runtime/cuda/fused/ping_pong_kernel.hpp"

namespace tutti::internal::cuda {
namespace {

__global__ void ping_pong(const PingPongWork work) {
  __shared__ std::uint64_t shared;
  GpuBlock block(&shared);
  run_ping_pong_block(block, work, blockIdx.x);
}

}  // namespace

cudaError_t launch_ping_pong(cudaStream_t stream, std::uint32_t threads, const PingPongWork& work) {
  ping_pong<<<work.blocks, threads, 0, stream>>>(work);
  return cudaGetLastError();
}

cudaError_t find_ping_pong_slots(std::uint32_t threads, FusedSlots& slots) {
  return find_slots(ping_pong, threads, slots);
}

}  // namespace tutti::internal::cuda
