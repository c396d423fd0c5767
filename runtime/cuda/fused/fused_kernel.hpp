#pragma once
#include <cuda_runtime_api.h>

#include "model/control/fused_limits.hpp"
#include "runtime/cuda/fused/fused_block.hpp"

namespace tutti::internal::cuda {

/// Launches the fused kernel of one GPU.
/// @param blocks   as `fused_blocks` says
/// @param threads  of a block; at least as many as peers are waited for at once
/// @return the status of the launch
[[nodiscard]] cudaError_t launch_fused(cudaStream_t stream, std::uint32_t blocks, std::uint32_t threads,
                                       const FusedMemory& memory, const CheckedExchange& work);

/// SMs of the current GPU, and blocks of the fused kernel on each; loads the kernel.
[[nodiscard]] cudaError_t find_fused_slots(std::uint32_t threads, FusedSlots& slots);

}  // namespace tutti::internal::cuda
