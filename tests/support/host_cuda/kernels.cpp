// The kernels of runtime/cuda/base/kernels.hpp, written for the host. Words that the host sees are read with acquire
// and set with release.
#include "runtime/cuda/base/kernels.hpp"

#include <atomic>
#include <cstring>
#include <span>
#include <vector>

#include "runtime/core/kernel_registry.hpp"
#include "tests/support/host_cuda/gpu.hpp"
#include "tests/support/host_cuda/memory.hpp"

namespace tutti::internal::host_cuda {
namespace {

std::atomic<int> host_polls{0};

}  // namespace

int polls_of_host_memory() { return host_polls; }

}  // namespace tutti::internal::host_cuda

namespace tutti::internal::cuda {
namespace {

using host_cuda::Instant;
using Ended = std::optional<Instant>;

template <class Word>
Word load(const Word* word) {
  return std::atomic_ref(*const_cast<Word*>(word)).load(std::memory_order_acquire);
}

template <class Word>
void store(Word* word, Word value) {
  std::atomic_ref(*word).store(value, std::memory_order_release);
}

}  // namespace

void launch_doorbell(cudaStream_t stream, StartOrder* order, std::uint64_t most) {
  host_cuda::launch_gate(
      stream,
      [=, looked = false](Instant, Instant now) mutable -> Ended {
        const bool first = !std::exchange(looked, true);
        std::uint64_t value = load(&order->value);
        if (value == 0) return std::nullopt;
        const bool ahead = (value & kStartsAhead) != 0;
        if (!first && !ahead && static_cast<std::int64_t>(value - now) > static_cast<std::int64_t>(most))
          value = ((now + most) & ~std::uint64_t{1}) | (value & 1);
        store(order->target, value);
        store(&order->seen, first ? 0 : now);
        store(&order->value, std::uint64_t{0});
        return now;
      },
      {order});
}

void launch_poll(cudaStream_t stream, const std::uint32_t* signal, std::uint32_t value, std::uint64_t* released) {
  if (const auto region = host_cuda::region_of(signal); region && region->device < 0) ++host_cuda::host_polls;
  host_cuda::launch_gate(stream,
                         [=](Instant, Instant now) -> Ended {
                           if (static_cast<std::int32_t>(load(signal) - value) < 0) return std::nullopt;
                           if (released != nullptr) store(released, now);
                           return now;
                         },
                         {signal, released});
}

void launch_timer_gate(cudaStream_t stream, const std::uint64_t* start, std::uint64_t parity, std::uint64_t offset,
                       std::uint64_t* released) {
  host_cuda::launch_gate(stream,
                         [=](Instant, Instant now) -> Ended {
                           const std::uint64_t at = load(start);
                           if ((at & 1) != parity || static_cast<std::int64_t>(at + offset - now) > 0)
                             return std::nullopt;
                           store(released, now);
                           return now;
                         },
                         {start, released});
}

void launch_linked_gate(cudaStream_t stream, std::uint64_t* start, std::uint64_t parity, std::uint64_t* began,
                        std::uint64_t offset, std::uint64_t* released) {
  host_cuda::launch_gate(stream,
                         [=](Instant, Instant now) -> Ended {
                           if ((load(start) & 1) != parity) {
                             store(start, (now & ~std::uint64_t{1}) | parity);
                             store(began, load(start));
                           }
                           if (static_cast<std::int64_t>(load(start) + offset - now) > 0) return std::nullopt;
                           store(released, now);
                           return now;
                         },
                         {start, began, released});
}

/// The thread of the GPU stays with it while the host asks again at once.
void launch_echo(cudaStream_t stream, const std::uint32_t* asked, SignalLine<std::uint64_t>* answers,
                 std::uint32_t rounds) {
  constexpr int kLooks = 50'000;  // some milliseconds
  host_cuda::Gpu& gpu = *stream->gpu;
  host_cuda::launch_gate(stream,
                         [=, &gpu, round = std::uint32_t{0}](Instant, Instant) mutable -> Ended {
                           for (int look = 0; look < kLooks && round < rounds; ++look)
                             if (load(asked) > round) store(&answers[round++].word, gpu.now());
                           return round < rounds ? std::nullopt : Ended(gpu.now());
                         },
                         {asked, answers});
}

void launch_copy(cudaStream_t stream, std::byte* to, const std::byte* from, std::size_t bytes) {
  host_cuda::launch(stream,
                    [=](Instant, Instant now) -> Ended {
                      std::memcpy(to, from, bytes);
                      return now;
                    },
                    {to, from});
}

void launch_inline(cudaStream_t stream, std::byte* to, const std::byte* bytes, std::size_t count) {
  host_cuda::launch(stream,
                    [to, argument = std::vector(bytes, bytes + count)](Instant, Instant now) -> Ended {
                      std::memcpy(to, argument.data(), argument.size());
                      return now;
                    },
                    {to});
}

/// Ends exactly so much later, whenever that is seen.
void launch_spin(cudaStream_t stream, std::uint64_t ns) {
  host_cuda::launch(stream,
                    [=](Instant begin, Instant now) { return now < begin + ns ? std::nullopt : Ended(begin + ns); });
}

void launch_checksum(cudaStream_t stream, const std::byte* input, std::size_t size, std::byte* sum) {
  static const KernelRegistry registry = KernelRegistry::with_builtins();
  host_cuda::launch(stream,
                    [=](Instant, Instant now) -> Ended {
                      registry.find(kChecksumKernel)->host({{input, size}, {sum, sizeof(std::uint64_t)}, {}, {}});
                      return now;
                    },
                    {size > 0 ? input : nullptr, sum});
}

}  // namespace tutti::internal::cuda
