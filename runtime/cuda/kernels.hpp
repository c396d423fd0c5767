#pragma once
#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace tutti::cuda {

/// When a gate let its stream go, on the timer of its GPU, ns: in pinned memory, written by the gate.
struct ReleaseStamp {
  std::uint64_t seen = 0;  ///< what the gate waited for first; 0: that was there already
  std::uint64_t released = 0;
};

/// Holds a stream until a word of host memory has come to a value, counted round: one thread that polls.
/// @param stamp  may be null
void launch_poll(cudaStream_t stream, const std::uint32_t* word, std::uint32_t value, ReleaseStamp* stamp = nullptr);

/// Holds a stream until an instant of its GPU's timer: one thread that polls a word of host memory until it is not 0,
/// and then the timer until it is at the word's value and `offset` more.
/// @param most  by which the word's value may be after the instant at which the thread sees it; beyond that the clocks
///              were wrong, and it is cut
void launch_timer_gate(cudaStream_t stream, const std::uint64_t* start, std::uint64_t offset, std::uint64_t most,
                       ReleaseStamp* stamp);

/// Answers the host a number of times: writes the GPU's timer into `answers[i]` when `asked` has come to i + 1.
void launch_echo(cudaStream_t stream, const std::uint32_t* asked, std::uint64_t* answers, std::uint32_t rounds);

/// Takes a time, by the GPU's own clock.
void launch_spin(cudaStream_t stream, std::uint64_t ns);

/// Fletcher's sum over 32-bit words, as the host's `checksum`.
/// @param sum  8 bytes in device memory
void launch_checksum(cudaStream_t stream, const std::byte* input, std::size_t size, std::byte* sum);

}  // namespace tutti::cuda
