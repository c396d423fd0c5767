#include "runtime/cuda/base/gpu_block.cuh"
#include "runtime/cuda/fused/fused_kernel.hpp"

namespace tutti::internal::cuda {
namespace {

__global__ void fused(const FusedMemory memory, CheckedExchange work) {
  __shared__ std::uint64_t shared;
  GpuBlock block(&shared);
  run_fused_block(block, memory, work);
}

}  // namespace

cudaError_t launch_fused(cudaStream_t stream, std::uint32_t blocks, std::uint32_t threads, const FusedMemory& memory,
                         const CheckedExchange& work) {
  fused<<<blocks, threads, 0, stream>>>(memory, work);
  return cudaGetLastError();
}

cudaError_t find_fused_slots(std::uint32_t threads, FusedSlots& slots) { return find_slots(fused, threads, slots); }

}  // namespace tutti::internal::cuda
