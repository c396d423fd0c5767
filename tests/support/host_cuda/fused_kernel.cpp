// The fused kernel, each of its blocks a thread of the host with one thread of the GPU's in it.
#include "runtime/cuda/fused_kernel.hpp"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/host_cuda/gpu.hpp"
#include "tests/support/host_cuda/host_cuda.hpp"
#include "tests/support/host_cuda/memory.hpp"

namespace tutti::internal::host_cuda {
namespace {

std::atomic<std::uint32_t> fused_slots{4};

class HostBlock {
 public:
  [[nodiscard]] static std::uint32_t thread() { return 0; }
  [[nodiscard]] static std::uint32_t threads() { return 1; }
  template <class Call>
  [[nodiscard]] static std::uint64_t lead(Call call) {
    return call();
  }
  [[nodiscard]] static bool any(bool mine) { return mine; }
  static std::uint64_t add(std::uint64_t* word) {
    return std::atomic_ref(*word).fetch_add(1, std::memory_order_acq_rel);
  }
  static void add_some(std::uint64_t* word, std::uint64_t count) {
    std::atomic_ref(*word).fetch_add(count, std::memory_order_relaxed);
  }
  static void set(std::uint64_t* word, std::uint64_t value) {
    std::atomic_ref(*word).store(value, std::memory_order_release);
  }
  static bool wait(std::uint64_t* word, std::uint64_t value, const volatile std::uint64_t* stop) {
    while (load(word) < value) {
      if (load(const_cast<std::uint64_t*>(stop)) != 0) return false;
      std::this_thread::yield();  // there are more blocks than cores
    }
    return true;
  }

 private:
  static std::uint64_t load(std::uint64_t* word) { return std::atomic_ref(*word).load(std::memory_order_acquire); }
};

/// The threads of one launch.
class FusedLaunch {
 public:
  FusedLaunch(std::uint32_t blocks, const cuda::FusedMemory& memory, const cuda::CheckedExchange& work)
      : memory_(memory), work_(work), running_(blocks) {
    for (std::uint32_t b = 0; b < blocks; ++b) threads_.emplace_back([this] { run(); });
  }
  FusedLaunch(const FusedLaunch&) = delete;  // its threads know it by its address
  FusedLaunch& operator=(const FusedLaunch&) = delete;
  ~FusedLaunch() {
    for (std::thread& thread : threads_) thread.join();
  }

  [[nodiscard]] bool over() const { return running_ == 0; }

 private:
  void run() {
    HostBlock block;
    cuda::CheckedExchange work = work_;
    cuda::run_fused_block(block, memory_, work);
    --running_;
  }

  const cuda::FusedMemory memory_;
  const cuda::CheckedExchange work_;
  std::atomic<std::uint32_t> running_;
  std::vector<std::thread> threads_;
};

/// An address of the launch that the stream's GPU does not reach, or one that it does.
const void* worst_address(int gpu, const cuda::FusedMemory& memory, const cuda::CheckedExchange& work) {
  for (std::uint32_t p = 0; p < memory.shape.peers; ++p)
    for (const void* address :
         {static_cast<const void*>(memory.peers[p].words), static_cast<const void*>(work.leaving[p])})
      if (!reaches(gpu, address)) return address;
  return memory.words;
}

}  // namespace

void set_fused_slots(std::uint32_t slots) { fused_slots = slots; }

}  // namespace tutti::internal::host_cuda

namespace tutti::internal::cuda {

cudaError_t launch_fused(cudaStream_t stream, std::uint32_t blocks, std::uint32_t, const FusedMemory& memory,
                         const CheckedExchange& work) {
  using host_cuda::Instant;
  host_cuda::launch(
      stream,
      [=, running = std::shared_ptr<host_cuda::FusedLaunch>()](Instant, Instant now) mutable -> std::optional<Instant> {
        if (!running) running = std::make_shared<host_cuda::FusedLaunch>(blocks, memory, work);
        if (!running->over()) return std::nullopt;
        running.reset();
        return now;
      },
      {memory.words, memory.report, host_cuda::worst_address(stream->gpu->ordinal(), memory, work)});
  return cudaGetLastError();
}

cudaError_t find_fused_slots(std::uint32_t threads, FusedSlots& slots) {
  slots.processors = 1;
  slots.blocks_of_each = host_cuda::fused_slots;
  slots.threads = threads;
  return cudaSuccess;
}

}  // namespace tutti::internal::cuda
