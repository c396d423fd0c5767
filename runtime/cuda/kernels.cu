#include "runtime/cuda/kernels.hpp"

namespace tutti::internal::cuda {
namespace {

__device__ std::uint64_t global_time() {
  std::uint64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

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
    if (static_cast<std::int64_t>(value - seen) > static_cast<std::int64_t>(most))
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

__global__ void echo(const volatile std::uint32_t* asked, SignalLine<std::uint64_t>* answers, std::uint32_t rounds) {
  for (std::uint32_t round = 0; round < rounds; ++round) {
    while (*asked <= round) {
    }
    *const_cast<volatile std::uint64_t*>(&answers[round].word) = global_time();
    __threadfence_system();
  }
}

__global__ void spin(std::uint64_t ns) {
  const std::uint64_t start = global_time();
  while (global_time() - start < ns) {
  }
}

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

}  // namespace

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
