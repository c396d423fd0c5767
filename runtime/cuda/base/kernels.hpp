#pragma once
#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace tutti::internal::cuda {

/// Distance of words that different threads or devices write, bytes.
inline constexpr std::size_t kCacheLine = 64;

/// A signal as it lies in memory: see `runtime/cuda/gates/signal.hpp`.
template <class Word>
struct alignas(kCacheLine) SignalLine {
  Word word;
};

/// The start of a run, from the host to a kernel of a GPU: signals in pinned memory. One load reads the first two.
struct alignas(kCacheLine) StartOrder {
  std::uint64_t value;    ///< for the target; the host sets it last, and the kernel clears it; 0: not yet
  std::uint64_t* target;  ///< the signal in device memory that gets the value
  std::uint64_t seen;     ///< timer at which the kernel saw the value, which it sets; 0: the value was there before it
};

/// Bit of a start that lies ahead of the store by more than a kernel can check.
inline constexpr std::uint64_t kStartsAhead = 2;

/// Waits for an order, passes its value on to its target and clears it: one thread that polls host memory.
/// @param most  ns by which the order's value, an instant of the timer, may be later than the instant at which the
///              thread sees it; beyond that the clocks were wrong, and the value is cut, unless it is ahead. The last
///              bit stays
void launch_doorbell(cudaStream_t stream, StartOrder* order, std::uint64_t most);

/// Holds a stream until a signal has reached a value, with wrap-around: one thread that polls.
/// @param signal      in device memory, or in host memory, which slows down all that runs beside it
/// @param released  set to the GPU's timer at that instant, ns; in pinned memory; may be null
void launch_poll(cudaStream_t stream, const std::uint32_t* signal, std::uint32_t value,
                 std::uint64_t* released = nullptr);

/// Holds a stream until an instant of its GPU's timer: one thread that polls a signal of device memory until its last
/// bit is `parity`, and then the timer until it has reached the signal's value plus `offset`.
/// @param released  set to the timer at that instant; in pinned memory
void launch_timer_gate(cudaStream_t stream, const std::uint64_t* start, std::uint64_t parity, std::uint64_t offset,
                       std::uint64_t* released);

/// Holds a stream until the timer is past the start of a run by `offset`, where the stream itself waited for the end of
/// the run before: the first such thread of a GPU starts the run.
/// @param start     in device memory; set to the timer at that instant, with the last bit `parity`, by the first thread
/// @param began     set to the same; in pinned memory
/// @param released  set to the timer at the instant at which the stream goes on; in pinned memory
void launch_linked_gate(cudaStream_t stream, std::uint64_t* start, std::uint64_t parity, std::uint64_t* began,
                        std::uint64_t offset, std::uint64_t* released);

/// Answers the host a number of times: sets `answers[i]` to the GPU's timer when `asked` has reached i + 1.
void launch_echo(cudaStream_t stream, const std::uint32_t* asked, SignalLine<std::uint64_t>* answers,
                 std::uint32_t rounds);

/// Runs for a time, by the GPU's own clock.
void launch_spin(cudaStream_t stream, std::uint64_t ns);

/// Fletcher's sum over 32-bit words, as the host's `checksum`.
/// @param sum  8 bytes in device memory
void launch_checksum(cudaStream_t stream, const std::byte* input, std::size_t size, std::byte* sum);

/// Copies between pinned memory and memory of the stream's GPU, by a kernel of few blocks.
void launch_copy(cudaStream_t stream, std::byte* to, const std::byte* from, std::size_t bytes);

/// Sets memory of the stream's GPU to bytes of the host, which the call itself reads.
/// @param count  at most 4096
void launch_inline(cudaStream_t stream, std::byte* to, const std::byte* bytes, std::size_t count);

}  // namespace tutti::internal::cuda
