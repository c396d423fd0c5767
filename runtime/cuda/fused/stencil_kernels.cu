#include <algorithm>

#include "runtime/cuda/base/gpu_block.cuh"
#include "runtime/cuda/fused/stencil_kernels.hpp"

namespace tutti::internal::cuda {
namespace {

__device__ std::uint64_t first_point() { return std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ std::uint64_t point_step() { return std::uint64_t{gridDim.x} * blockDim.x; }

__global__ void pack_stencil(const StencilWork work, const std::uint64_t round) {
  work.pack_layer(round, blockIdx.y, nullptr, first_point(), point_step());
}

__global__ void compute_stencil(const StencilWork work, const std::uint64_t round) {
  work.compute_inner(round, first_point(), point_step());
}

__global__ void unpack_stencil(const StencilWork work, const std::uint64_t round) {
  work.unpack_layer(round, blockIdx.y, static_cast<std::uint32_t>(round % kStencilBuffers), first_point(),
                    point_step());
}

__global__ void fused_stencil(const FusedMemory memory, StencilWork work) {
  __shared__ std::uint64_t shared;
  GpuBlock block(&shared);
  run_fused_block(block, memory, work);
}

std::uint32_t blocks_for(std::uint64_t points, std::uint32_t most, std::uint32_t threads) {
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>((points + threads - 1) / threads, 1, most));
}

}  // namespace

cudaError_t launch_stencil(cudaStream_t stream, StencilPart part, std::uint32_t most_blocks, std::uint32_t threads,
                           std::uint64_t round, const StencilWork& work) {
  const dim3 layers(blocks_for(work.face(), std::max(most_blocks / kStencilPeers, 1U), threads), kStencilPeers);
  switch (part) {
    case StencilPart::Pack: pack_stencil<<<layers, threads, 0, stream>>>(work, round); break;
    case StencilPart::Inner: {
      const std::uint64_t points = std::uint64_t{work.layers - 2} * work.face();
      compute_stencil<<<blocks_for(points, most_blocks, threads), threads, 0, stream>>>(work, round);
      break;
    }
    case StencilPart::Unpack: unpack_stencil<<<layers, threads, 0, stream>>>(work, round); break;
  }
  return cudaGetLastError();
}

cudaError_t launch_fused_stencil(cudaStream_t stream, std::uint32_t blocks, std::uint32_t threads,
                                 const FusedMemory& memory, const StencilWork& work) {
  fused_stencil<<<blocks, threads, 0, stream>>>(memory, work);
  return cudaGetLastError();
}

cudaError_t find_stencil_slots(std::uint32_t threads, FusedSlots& fused, FusedSlots& inner) {
  FusedSlots other;  // asking loads a kernel
  if (const auto status = find_slots(pack_stencil, threads, other); status != cudaSuccess) return status;
  if (const auto status = find_slots(unpack_stencil, threads, other); status != cudaSuccess) return status;
  if (const auto status = find_slots(compute_stencil, threads, inner); status != cudaSuccess) return status;
  return find_slots(fused_stencil, threads, fused);
}

}  // namespace tutti::internal::cuda
