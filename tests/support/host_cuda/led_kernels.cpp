// The kernels of runtime/cuda/led/led_kernels.hpp, stepped by the threads of the GPUs.
#include "runtime/cuda/led/led_kernels.hpp"

#include <atomic>
#include <vector>

#include "tests/support/host_cuda/gpu.hpp"

namespace tutti::internal::cuda {
namespace {

using host_cuda::Instant;
using Ended = std::optional<Instant>;

struct HostMemory {
  template <class Word>
  static Word load(const Word* word) {
    return std::atomic_ref(*const_cast<Word*>(word)).load(std::memory_order_acquire);
  }
  template <class Word>
  static void store(Word* word, Word value) {
    std::atomic_ref(*word).store(value, std::memory_order_release);
  }
  template <class Word>
  static Word look(const Word* word) {
    return load(word);
  }
  template <class Word>
  static void put(Word* word, Word value) {
    store(word, value);
  }
  static void publish() {}  // each `put` is a release
  static void settle() { std::atomic_thread_fence(std::memory_order_seq_cst); }
  static std::uint64_t exchange(std::uint64_t* word, std::uint64_t was, std::uint64_t value) {
    return std::atomic_ref(*word).compare_exchange_strong(was, value) ? value : was;
  }
};

Ended at(bool over, Instant now) { return over ? Ended(now) : std::nullopt; }

template <class Conductor>
void launch_stepping(cudaStream_t stream, const LedWork& work, const Conductor& conductor) {
  constexpr int kSteps = 64;
  host_cuda::Gpu& gpu = *stream->gpu;
  host_cuda::launch_gate(stream,
                         [&gpu, conductor = conductor](Instant, Instant) mutable -> Ended {
                           for (int i = 0; i < kSteps; ++i)
                             if (!conductor.step([&] { return gpu.now(); })) return gpu.now();
                           return std::nullopt;
                         },
                         {work.run});
}

}  // namespace

void launch_led_gate(cudaStream_t stream, const LedHold& hold) {
  host_cuda::launch_gate(
      stream, [looks = LedLooks<HostMemory>(hold)](Instant, Instant now) mutable { return at(looks.passes(now), now); },
      {hold.gate, hold.lane});
}

void launch_led_keep_awake(cudaStream_t stream, const LedGate* until, const LedFar& far) {
  host_cuda::launch_gate(
      stream,
      [vigil = LedVigil<HostMemory>(until, far)](Instant, Instant now) mutable { return at(vigil.step(), now); },
      {until});
}

void launch_led_wait(cudaStream_t stream, const LedLane* other, std::uint32_t steps, std::uint32_t step,
                     const LedLane* lane) {
  host_cuda::launch_gate(stream,
                         [=](Instant, Instant now) { return at(has_come<HostMemory>(other, steps, step, lane), now); },
                         {other, lane});
}

void launch_led_step(cudaStream_t stream, LedLane* lane) {
  host_cuda::launch_gate(stream,
                         [=](Instant, Instant now) -> Ended {
                           mark_step<HostMemory>(lane);
                           return now;
                         },
                         {lane});
}

void launch_led_end(cudaStream_t stream, LedLane* lane, LedEnd* ended) {
  host_cuda::launch_gate(stream,
                         [=](Instant, Instant now) -> Ended {
                           mark_end<HostMemory>(lane, ended);
                           return now;
                         },
                         {lane, ended});
}

void launch_led_release(cudaStream_t stream, LedGate* gate, std::uint32_t run) {
  host_cuda::launch_gate(stream,
                         [=](Instant, Instant now) -> Ended {
                           HostMemory::store(&gate->run, run);
                           return now;
                         },
                         {gate});
}

void launch_conductor(cudaStream_t stream, LedWork work) {
  if (work.overlaps)
    launch_stepping(stream, work, conductor_of_operations<HostMemory>(work));
  else
    launch_stepping(stream, work, conductor_of_jobs<HostMemory>(work));
}

cudaError_t load_led_kernels() { return cudaSuccess; }

}  // namespace tutti::internal::cuda
