#include <algorithm>
#include <cstring>

#include "runtime/cuda/base/gpu_block.cuh"
#include "runtime/cuda/base/kernels.hpp"

namespace tutti::internal::cuda {
namespace {

__global__ void doorbell(StartOrder* order, std::uint64_t most) {
  std::uint64_t value = 0, target = 0, seen = 0;
  const auto look = [&] {
    asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(value), "=l"(target) : "l"(order) : "memory");
    return value != 0;
  };
  if (!look()) {
    while (!look()) {
    }
    seen = global_time();
    if ((value & kStartsAhead) == 0 && static_cast<std::int64_t>(value - seen) > static_cast<std::int64_t>(most))
      value = (seen + most) & ~std::uint64_t{1} | value & 1;
  }
  *reinterpret_cast<volatile std::uint64_t*>(target) = value;
  *const_cast<volatile std::uint64_t*>(&order->seen) = seen;
  *const_cast<volatile std::uint64_t*>(&order->value) = 0;
}

__global__ void poll(const volatile std::uint32_t* signal, std::uint32_t value, volatile std::uint64_t* released) {
  while (static_cast<std::int32_t>(*signal - value) < 0) {
  }
  if (released != nullptr) *released = global_time();
}

__global__ void timer_gate(const volatile std::uint64_t* start, std::uint64_t parity, std::uint64_t offset,
                           volatile std::uint64_t* released) {
  std::uint64_t at = *start;
  while ((at & 1) != parity) at = *start;
  at += offset;
  std::uint64_t now = global_time();
  while (static_cast<std::int64_t>(at - now) > 0) now = global_time();
  *released = now;
}

__global__ void linked_gate(std::uint64_t* start, std::uint64_t parity, volatile std::uint64_t* began,
                            std::uint64_t offset, volatile std::uint64_t* released) {
  std::uint64_t at = *const_cast<volatile std::uint64_t*>(start);
  if ((at & 1) != parity) {
    const std::uint64_t mine = global_time() & ~std::uint64_t{1} | parity;
    const std::uint64_t was = atomicCAS(reinterpret_cast<unsigned long long*>(start), at, mine);
    if (was == at) *began = mine;
    at = was == at ? mine : was;
  }
  at += offset;
  std::uint64_t now = global_time();
  while (static_cast<std::int64_t>(at - now) > 0) now = global_time();
  *released = now;
}

__global__ void echo(const volatile std::uint32_t* asked, SignalLine<std::uint64_t>* answers, std::uint32_t rounds) {
  for (std::uint32_t round = 0; round < rounds; ++round) {
    while (*asked <= round) {
    }
    *const_cast<volatile std::uint64_t*>(&answers[round].word) = global_time();
    __threadfence_system();
  }
}

__global__ void spin(std::uint64_t ns) { GpuBlock::rest(ns); }

/// Sums of words w[0..n): low = sum w, high = sum (n - i) w[i], both modulo 2^32 - 1. This equals the result of
/// Fletcher's loop and can be summed in any order.
__global__ void checksum(const std::uint8_t* input, std::size_t size, std::uint8_t* result) {
  constexpr std::uint64_t kModulus = 0xffffffffU;
  __shared__ std::uint64_t low, high;
  if (threadIdx.x == 0) low = high = 0;
  __syncthreads();
  const std::size_t words = (size + 3) / 4;
  std::uint64_t my_low = 0;
  std::uint64_t my_high = 0;
  for (std::size_t i = threadIdx.x; i < words; i += blockDim.x) {
    std::uint64_t word = 0;
    for (std::size_t byte = 0; byte < 4 && 4 * i + byte < size; ++byte)
      word |= static_cast<std::uint64_t>(input[4 * i + byte]) << (8 * byte);
    my_low = (my_low + word) % kModulus;
    my_high = (my_high + (words - i) % kModulus * (word % kModulus)) % kModulus;
  }
  atomicAdd(reinterpret_cast<unsigned long long*>(&low), my_low);  // 1024 sums below 2^32: no overflow
  atomicAdd(reinterpret_cast<unsigned long long*>(&high), my_high);
  __syncthreads();
  if (threadIdx.x < 8) {
    const std::uint64_t sum = high % kModulus << 32 | low % kModulus;
    result[threadIdx.x] = static_cast<std::uint8_t>(sum >> (8 * threadIdx.x));
  }
}

/// Copies `count` words, several of a thread in flight at once: the memory of the host is microseconds away.
template <class Word>
__device__ void copy_words(Word* __restrict__ to, const Word* __restrict__ from, std::size_t count) {
  constexpr int kInFlight = 4;
  const std::size_t threads = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i < count; i += kInFlight * threads) {
    Word words[kInFlight];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k)
      if (i + k * threads < count) words[k] = from[i + k * threads];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k)
      if (i + k * threads < count) to[i + k * threads] = words[k];
  }
}

template <class Word>
__device__ std::size_t copy_as(std::byte* to, const std::byte* from, std::size_t bytes) {
  copy_words(reinterpret_cast<Word*>(to), reinterpret_cast<const Word*>(from), bytes / sizeof(Word));
  return bytes / sizeof(Word) * sizeof(Word);
}

__global__ void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  const auto low_bits = (reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) % 16;
  std::size_t done = 0;
  if (low_bits == 0) {
    done = copy_as<uint4>(to, from, bytes);
  } else if (low_bits % 4 == 0) {
    done = copy_as<std::uint32_t>(to, from, bytes);
  }
  copy_as<std::uint8_t>(to + done, from + done, bytes - done);
}

/// Bytes as an argument of a kernel.
template <std::size_t size>
struct Argument {
  std::uint8_t bytes[size];
};

template <std::size_t size>
__global__ void store(std::uint8_t* to, Argument<size> argument, std::uint32_t count) {
  for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) to[i] = argument.bytes[i];
}

template <std::size_t size>
void launch_store(cudaStream_t stream, std::byte* to, const std::byte* bytes, std::size_t count) {
  Argument<size> argument;
  std::memcpy(argument.bytes, bytes, count);
  const auto threads = static_cast<unsigned>(std::min<std::size_t>(256, (count + 31) / 32 * 32));
  store<<<1, threads, 0, stream>>>(reinterpret_cast<std::uint8_t*>(to), argument, static_cast<std::uint32_t>(count));
}

}  // namespace

void launch_copy(cudaStream_t stream, std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kThreads = 256, kBytesOfBlock = 8192;
  constexpr std::size_t kMostBlocks = 32;
  const auto blocks = std::clamp<std::size_t>((bytes + kBytesOfBlock - 1) / kBytesOfBlock, 1, kMostBlocks);
  copy<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(to, from, bytes);
}

void launch_inline(cudaStream_t stream, std::byte* to, const std::byte* bytes, std::size_t count) {
  constexpr std::size_t kSmall = 256, kMost = 4000;  // all arguments of a kernel have 4096 bytes on every GPU
  for (std::size_t at = 0; at < count; at += kMost) {
    const std::size_t part = std::min(kMost, count - at);
    part <= kSmall ? launch_store<kSmall>(stream, to + at, bytes + at, part)
                   : launch_store<kMost>(stream, to + at, bytes + at, part);
  }
}

void launch_doorbell(cudaStream_t stream, StartOrder* order, std::uint64_t most) {
  doorbell<<<1, 1, 0, stream>>>(order, most);
}

void launch_poll(cudaStream_t stream, const std::uint32_t* signal, std::uint32_t value, std::uint64_t* released) {
  poll<<<1, 1, 0, stream>>>(signal, value, released);
}

void launch_timer_gate(cudaStream_t stream, const std::uint64_t* start, std::uint64_t parity, std::uint64_t offset,
                       std::uint64_t* released) {
  timer_gate<<<1, 1, 0, stream>>>(start, parity, offset, released);
}

void launch_linked_gate(cudaStream_t stream, std::uint64_t* start, std::uint64_t parity, std::uint64_t* began,
                        std::uint64_t offset, std::uint64_t* released) {
  linked_gate<<<1, 1, 0, stream>>>(start, parity, began, offset, released);
}

void launch_echo(cudaStream_t stream, const std::uint32_t* asked, SignalLine<std::uint64_t>* answers,
                 std::uint32_t rounds) {
  echo<<<1, 1, 0, stream>>>(asked, answers, rounds);
}

void launch_spin(cudaStream_t stream, std::uint64_t ns) { spin<<<1, 1, 0, stream>>>(ns); }

void launch_checksum(cudaStream_t stream, const std::byte* input, std::size_t size, std::byte* sum) {
  checksum<<<1, 1024, 0, stream>>>(reinterpret_cast<const std::uint8_t*>(input), size,
                                   reinterpret_cast<std::uint8_t*>(sum));
}

}  // namespace tutti::internal::cuda
