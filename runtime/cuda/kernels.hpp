#pragma once
#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace tutti::cuda {

/// Holds a stream until a word of host memory has come to a value, counted round: one thread that polls.
void launch_poll(cudaStream_t stream, const std::uint32_t* word, std::uint32_t value);

/// Takes a time, by the GPU's own clock.
void launch_spin(cudaStream_t stream, std::uint64_t ns);

/// Fletcher's sum over 32-bit words, as the host's `checksum`.
/// @param sum  8 bytes in device memory
void launch_checksum(cudaStream_t stream, const std::byte* input, std::size_t size, std::byte* sum);

}  // namespace tutti::cuda
