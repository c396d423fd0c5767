// Kernels on the host of which each thread of a block is a thread of the host: fused ones and the ping-pong; and the
// other kernels of the stencil.
#include "runtime/cuda/fused/fused_kernel.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/cuda/fused/ping_pong_kernel.hpp"
#include "runtime/cuda/fused/stencil_kernels.hpp"
#include "tests/support/host_cuda/gpu.hpp"
#include "tests/support/host_cuda/host_cuda.hpp"
#include "tests/support/host_cuda/memory.hpp"

namespace tutti::internal::host_cuda {
namespace {

std::atomic<std::uint32_t> fused_slots{4};
std::atomic<int> block_rests{0};

/// Threads of a block: fewer than peers in some tests, so that some wait for several.
constexpr std::uint32_t kThreads = 2;

/// Lets threads of a block go on when all of them have come.
class Barrier {
 public:
  void wait() {
    const std::uint32_t phase = phase_;
    if (++arrived_ == kThreads) {
      arrived_ = 0;
      ++phase_;
    } else {
      for (Pause pause; phase_ == phase;) pause();
    }
  }

 private:
  std::atomic<std::uint32_t> arrived_{0}, phase_{0};
};

/// What the threads of a block share.
struct Shared {
  Barrier barrier;
  std::uint64_t word = 0;
  std::atomic<bool> any{false};  ///< stays: a block of which a thread stops is over
};

/// One thread of a block.
class HostBlock {
 public:
  HostBlock(Shared& shared, std::uint32_t thread) : shared_(shared), thread_(thread) {}

  [[nodiscard]] std::uint32_t thread() const { return thread_; }
  [[nodiscard]] static std::uint32_t threads() { return kThreads; }
  template <class Call>
  [[nodiscard]] std::uint64_t lead(Call call) {
    shared_.barrier.wait();
    if (thread_ == 0) shared_.word = call();
    shared_.barrier.wait();
    return shared_.word;
  }
  [[nodiscard]] bool any(bool mine) {
    if (mine) shared_.any = true;
    shared_.barrier.wait();
    const bool some = shared_.any;
    shared_.barrier.wait();
    return some;
  }
  static std::uint64_t draw(std::uint64_t* word) { return add(word); }
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
    for (Pause pause; load(word) < value; pause())
      if (load(const_cast<std::uint64_t*>(stop)) != 0) return false;
    return true;
  }
  static void rest(std::uint64_t ns) {
    ++block_rests;
    std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
  }

 private:
  static std::uint64_t load(std::uint64_t* word) { return std::atomic_ref(*word).load(std::memory_order_acquire); }

  Shared& shared_;
  std::uint32_t thread_;
};

/// What a thread of a block does. @param block  its number in the launch
using BlockProgram = std::function<void(HostBlock&, std::uint32_t block)>;

/// The threads of one launch.
class BlockThreads {
 public:
  BlockThreads(std::uint32_t blocks, BlockProgram program)
      : program_(std::move(program)), running_(blocks * kThreads), shared_(blocks) {
    for (std::uint32_t b = 0; b < blocks; ++b)
      for (std::uint32_t t = 0; t < kThreads; ++t) threads_.emplace_back([this, b, t] { run(b, t); });
  }
  BlockThreads(const BlockThreads&) = delete;  // its threads know it by its address
  BlockThreads& operator=(const BlockThreads&) = delete;
  ~BlockThreads() {
    for (std::thread& thread : threads_) thread.join();
  }

  [[nodiscard]] bool over() const { return running_ == 0; }

 private:
  void run(std::uint32_t number, std::uint32_t thread) {
    HostBlock block(shared_[number], thread);
    program_(block, number);
    --running_;
  }

  const BlockProgram program_;
  std::atomic<std::uint32_t> running_;
  std::vector<Shared> shared_;  ///< [blocks]
  std::vector<std::thread> threads_;
};

cudaError_t launch_blocks(cudaStream_t stream, std::uint32_t blocks, const BlockProgram& program,
                          const std::vector<const void*>& touches) {
  launch(
      stream,
      [=, running = std::shared_ptr<BlockThreads>()](Instant, Instant now) mutable -> std::optional<Instant> {
        if (!running) running = std::make_shared<BlockThreads>(blocks, program);
        if (!running->over()) return std::nullopt;
        running.reset();
        return now;
      },
      touches);
  return cudaGetLastError();
}

/// An address of the launch that the stream's GPU does not reach, or one that it does.
template <class Work>
const void* worst_address(int gpu, const cuda::FusedMemory& memory, const Work& work) {
  for (std::uint32_t p = 0; p < memory.shape.peers; ++p)
    for (const void* address :
         {static_cast<const void*>(memory.peers[p].words), static_cast<const void*>(work.leaving[p])})
      if (!reaches(gpu, address)) return address;
  return memory.words;
}

template <class Work>
cudaError_t launch_fused_blocks(cudaStream_t stream, std::uint32_t blocks, const cuda::FusedMemory& memory,
                                const Work& work) {
  const auto program = [=](HostBlock& block, std::uint32_t) {
    Work mine = work;
    cuda::run_fused_block(block, memory, mine);
  };
  return launch_blocks(stream, blocks, program,
                       {memory.words, memory.report, worst_address(stream->gpu->ordinal(), memory, work)});
}

void run_part(cuda::StencilPart part, std::uint64_t round, const cuda::StencilWork& work) {
  if (part == cuda::StencilPart::Inner) return work.compute_inner(round, 0, 1);
  for (std::uint32_t peer = 0; peer < cuda::kStencilPeers; ++peer)
    if (part == cuda::StencilPart::Pack)
      work.pack_layer(round, peer, nullptr, 0, 1);
    else
      work.unpack_layer(round, peer, static_cast<std::uint32_t>(round % cuda::kStencilBuffers), 0, 1);
}

}  // namespace

void set_fused_slots(std::uint32_t slots) { fused_slots = slots; }
int rests_of_blocks() { return block_rests; }

}  // namespace tutti::internal::host_cuda

namespace tutti::internal::cuda {

cudaError_t launch_fused(cudaStream_t stream, std::uint32_t blocks, std::uint32_t, const FusedMemory& memory,
                         const CheckedExchange& work) {
  return host_cuda::launch_fused_blocks(stream, blocks, memory, work);
}

cudaError_t launch_fused_stencil(cudaStream_t stream, std::uint32_t blocks, std::uint32_t, const FusedMemory& memory,
                                 const StencilWork& work) {
  return host_cuda::launch_fused_blocks(stream, blocks, memory, work);
}

cudaError_t launch_stencil(cudaStream_t stream, StencilPart part, std::uint32_t, std::uint32_t, std::uint64_t round,
                           const StencilWork& work) {
  using host_cuda::Instant;
  host_cuda::launch(stream,
                    [=](Instant, Instant now) -> std::optional<Instant> {
                      host_cuda::run_part(part, round, work);
                      return now;
                    },
                    {work.fields[0], work.fields[1], work.arriving});
  return cudaGetLastError();
}

cudaError_t find_fused_slots(std::uint32_t threads, FusedSlots& slots) {
  slots.processors = 1;
  slots.blocks_of_each = host_cuda::fused_slots;
  slots.threads = threads;
  return cudaSuccess;
}

cudaError_t find_stencil_slots(std::uint32_t threads, FusedSlots& fused, FusedSlots& inner) {
  static_cast<void>(find_fused_slots(threads, inner));
  return find_fused_slots(threads, fused);
}

cudaError_t launch_ping_pong(cudaStream_t stream, std::uint32_t, const PingPongWork& work) {
  const auto program = [=](host_cuda::HostBlock& block, std::uint32_t piece) {
    run_ping_pong_block(block, work, piece);
  };
  return host_cuda::launch_blocks(stream, work.blocks, program,
                                  {work.mine, work.peers, work.arrived, work.answered, work.gave_up});
}

cudaError_t find_ping_pong_slots(std::uint32_t threads, FusedSlots& slots) { return find_fused_slots(threads, slots); }

}  // namespace tutti::internal::cuda
