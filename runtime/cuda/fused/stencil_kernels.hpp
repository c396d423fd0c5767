#pragma once
#include <cuda_runtime_api.h>

#include "model/control/fused_limits.hpp"
#include "runtime/cuda/fused/stencil_block.hpp"

namespace tutti::internal::cuda {

/// A kernel of its own for each part of an iteration.
enum class StencilPart : std::uint8_t {
  Pack,    ///< the layers that peers get
  Inner,   ///< the layers between
  Unpack,  ///< the layers that peers sent
};

/// Launches the kernel of a part.
/// @param most_blocks  >= 1; where the part has more points than their threads, each takes several
/// @param threads      of a block
/// @param round        counts on over launches
/// @return the status of the launch
[[nodiscard]] cudaError_t launch_stencil(cudaStream_t stream, StencilPart part, std::uint32_t most_blocks,
                                         std::uint32_t threads, std::uint64_t round, const StencilWork& work);

/// Launches the fused kernel of one rank.
/// @param blocks   as `fused_blocks` says
[[nodiscard]] cudaError_t launch_fused_stencil(cudaStream_t stream, std::uint32_t blocks, std::uint32_t threads,
                                               const FusedMemory& memory, const StencilWork& work);

/// SMs of the current GPU, and blocks on each of the fused kernel and of that of the inner layers; loads all kernels of
/// this header.
[[nodiscard]] cudaError_t find_stencil_slots(std::uint32_t threads, FusedSlots& fused, FusedSlots& inner);

}  // namespace tutti::internal::cuda
