#pragma once
#include <cuda_runtime_api.h>

#include "model/control/fused_limits.hpp"
#include "runtime/cuda/fused/ping_pong_block.hpp"

namespace tutti::internal::cuda {

/// Launches the kernel of one rank, with `work.blocks` blocks.
/// @param threads  of a block
/// @return the status of the launch
[[nodiscard]] cudaError_t launch_ping_pong(cudaStream_t stream, std::uint32_t threads, const PingPongWork& work);

/// SMs of the current GPU, and blocks of that kernel on each; loads it.
[[nodiscard]] cudaError_t find_ping_pong_slots(std::uint32_t threads, FusedSlots& slots);

}  // namespace tutti::internal::cuda
