#include "runtime/cuda/fused_exchange.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

#include <fmt/format.h>

#include "model/base/units.hpp"
#include "runtime/cuda/fused_kernel.hpp"
#include "runtime/cuda/handles.hpp"
#include "runtime/cuda/kernels.hpp"

namespace tutti::internal {
namespace cuda {
namespace {

/// What the host shares with the kernels, in pinned memory.
struct HostWords {
  alignas(kCacheLine) std::uint64_t stop;
  alignas(kCacheLine) FusedReport reports[kMostFusedPeers + 1];  ///< [ranks]
};

/// One rank: its GPU's memory and stream.
struct Rank {
  int gpu = 0;
  std::uint32_t blocks = 0;
  Stream stream;
  DeviceMemory memory;
  std::uint64_t* words = nullptr;
  std::uint64_t* arriving = nullptr;
  std::uint64_t* inner = nullptr;
  std::uint64_t* counts = nullptr;  ///< claim, unpacked, wrong
};

/// The index of a rank among the peers of another: the next rank is peer 0.
std::uint32_t index_among_peers(std::size_t rank, std::size_t of, std::size_t ranks) {
  return static_cast<std::uint32_t>((rank + ranks - of) % ranks - 1);
}

Expected<FusedShape> shape_of(const FusedExchangeSpec& spec) {
  const auto limits = [](std::string_view what, std::uint64_t value, std::uint64_t least,
                         std::uint64_t most) -> Expected<void> {
    if (value >= least && value <= most) return {};
    return invalid_input(fmt::format("{} {} are not possible; give {} to {}", value, what, least, most));
  };
  for (const auto& ok : {limits("ranks", spec.gpus.size(), 2, kMostFusedPeers + 1),
                         limits("rounds", spec.rounds, 1, std::uint64_t{1} << 32),
                         limits("words a message", spec.message_words, 1, 1U << 20),
                         limits("words of inner work", spec.inner_words, 0, 1U << 28),
                         limits("threads a block", spec.threads, 32, 1024)})
    if (!ok) return tl::unexpected(ok.error());
  if (spec.threads % 32 != 0)
    return invalid_input(fmt::format("{} threads a block are no multiple of 32; give one", spec.threads));
  const auto peers = static_cast<std::uint32_t>(spec.gpus.size() - 1);
  return FusedShape{peers, spec.senders == 0 ? 2 * peers : spec.senders,
                    spec.unpackers == 0 ? 2 * peers : spec.unpackers, spec.buffers};
}

/// The exchange while it runs. Members are freed in reverse: memory last, when the kernels are over.
class Exchange {
 public:
  Exchange(const FusedExchangeSpec& spec, const FusedShape& shape) : spec_(spec), shape_(shape) {}
  Exchange(const Exchange&) = delete;  // kernels know its words by their address
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() {
    if (abandoned_) {
      abandon();
      return;
    }
    stop();
    for (const Rank& rank : ranks_)
      if (rank.stream) static_cast<void>(cudaStreamSynchronize(rank.stream.get()));
    for (const auto& [gpu, peer] : enabled_) {
      const DeviceGuard guard(gpu);
      static_cast<void>(cudaDeviceDisablePeerAccess(peer));
    }
  }

  Expected<void> prepare() {
    void* pinned = nullptr;
    if (auto ok = check(cudaHostAlloc(&pinned, sizeof(HostWords), cudaHostAllocPortable | cudaHostAllocMapped),
                        "cudaHostAlloc");
        !ok)
      return ok;
    host_.reset(new (pinned) HostWords{});
    for (const int gpu : spec_.gpus)
      if (auto ok = add_rank(gpu); !ok) return ok;
    return reach_peers();
  }

  Expected<FusedExchangeResult> run() {
    const auto begin = std::chrono::steady_clock::now();
    const std::uint64_t each = spec_.rounds_a_launch == 0 ? spec_.rounds : spec_.rounds_a_launch;
    for (std::uint64_t first = 0; first < spec_.rounds; first += each) {
      for (std::size_t r = 0; r < ranks_.size(); ++r)
        if (auto ok = launch(r, first, std::min(each, spec_.rounds - first)); !ok) return tl::unexpected(ok.error());
      if (auto ok = wait(begin + spec_.limit); !ok) return tl::unexpected(ok.error());
    }
    FusedExchangeResult result;
    result.length = std::chrono::steady_clock::now() - begin;
    if (auto ok = count(result); !ok) return tl::unexpected(ok.error());
    return result;
  }

 private:
  struct FreeHost {
    void operator()(HostWords* words) const { static_cast<void>(cudaFreeHost(words)); }
  };

  // ---- before the first launch

  [[nodiscard]] std::uint64_t words_arriving() const {
    return std::uint64_t{shape_.peers} * shape_.buffers * spec_.message_words;
  }

  Expected<void> add_rank(int gpu) {
    const DeviceGuard guard(gpu);
    Rank& rank = ranks_.emplace_back();
    rank.gpu = gpu;
    FusedSlots slots;
    if (auto ok = check(find_fused_slots(spec_.threads, slots), "cudaOccupancyMaxActiveBlocksPerMultiprocessor"); !ok)
      return ok;
    slots.kernels = static_cast<std::uint32_t>(std::ranges::count(spec_.gpus, gpu));
    const auto blocks = fused_blocks(shape_, slots, spec_.most_blocks);
    if (!blocks) return tl::unexpected(blocks.error());
    rank.blocks = *blocks;
    auto stream = make_stream(gpu);
    if (!stream) return tl::unexpected(std::move(stream.error()));
    rank.stream = *std::move(stream);
    const std::uint64_t words = shape_.words() + words_arriving() + spec_.inner_words + kCounts;
    void* memory = nullptr;
    if (auto ok = check(cudaMalloc(&memory, words * sizeof(std::uint64_t)), "cudaMalloc"); !ok) return ok;
    rank.memory.reset(static_cast<std::byte*>(memory));
    rank.words = static_cast<std::uint64_t*>(memory);
    rank.arriving = rank.words + shape_.words();
    rank.inner = rank.arriving + words_arriving();
    rank.counts = rank.inner + spec_.inner_words;
    if (auto ok =
            check(cudaMemsetAsync(memory, 0, words * sizeof(std::uint64_t), rank.stream.get()), "cudaMemsetAsync");
        !ok)
      return ok;
    return check(cudaStreamSynchronize(rank.stream.get()), "cudaStreamSynchronize");
  }

  Expected<void> reach_peers() {
    for (const Rank& a : ranks_)
      for (const Rank& b : ranks_)
        if (a.gpu != b.gpu)
          if (auto ok = reach(a.gpu, b.gpu); !ok) return ok;
    return {};
  }

  Expected<void> reach(int gpu, int peer) {
    int reaches = 0;
    if (auto ok = check(cudaDeviceCanAccessPeer(&reaches, gpu, peer), "cudaDeviceCanAccessPeer"); !ok) return ok;
    if (reaches == 0)
      return invalid_input(
          fmt::format("GPU {} does not reach the memory of GPU {}, where fused kernels put messages; name "
                      "GPUs with peer access",
                      gpu, peer));
    const DeviceGuard guard(gpu);
    const cudaError_t status = answer(cudaDeviceEnablePeerAccess(peer, 0));
    if (status == cudaErrorPeerAccessAlreadyEnabled) return {};
    if (auto ok = check(status, "cudaDeviceEnablePeerAccess"); !ok) return ok;
    enabled_.emplace_back(gpu, peer);
    return {};
  }

  // ---- a launch

  Expected<void> launch(std::size_t r, std::uint64_t first, std::uint64_t rounds) {
    if (static_cast<int>(r) == spec_.absent) return {};
    const Rank& rank = ranks_[r];
    FusedMemory memory{kFusedRules,        shape_, first, rounds, rank.words, rank.counts, &host_->stop,
                       &host_->reports[r], {}};
    CheckedExchange work{static_cast<std::uint32_t>(r),
                         shape_,
                         spec_.message_words,
                         spec_.inner_words,
                         rank.arriving,
                         {},
                         {},
                         rank.inner,
                         rank.counts + 1,
                         rank.counts + 2};
    for (std::uint32_t p = 0; p < shape_.peers; ++p) {
      const std::size_t other = (r + 1 + p) % ranks_.size();
      const std::uint32_t index = index_among_peers(r, other, ranks_.size());
      memory.peers[p] = {ranks_[other].words, index};
      work.leaving[p] = ranks_[other].arriving + std::uint64_t{index} * shape_.buffers * spec_.message_words;
      work.ranks[p] = static_cast<std::uint32_t>(other);
    }
    const DeviceGuard guard(rank.gpu);
    std::uint64_t* const tickets = rank.words + shape_.position(FusedWord::Tickets, 0, 0);
    if (auto ok = check(cudaMemsetAsync(tickets, 0, sizeof *tickets, rank.stream.get()), "cudaMemsetAsync"); !ok)
      return ok;
    return check(launch_fused(rank.stream.get(), rank.blocks, spec_.threads, memory, work), "cudaLaunchKernel");
  }

  void stop() {
    if (host_) std::atomic_ref(host_->stop).store(1, std::memory_order_release);
  }

  /// Leaves to running kernels what they use: nothing of it can be freed, and no call may wait for them.
  void abandon() {
    static_cast<void>(host_.release());
    for (Rank& rank : ranks_) static_cast<void>(rank.stream.release()), static_cast<void>(rank.memory.release());
  }

  /// Waits for all kernels, and tells them to give up at the limit. Where they do not, they are left behind.
  Expected<void> wait(std::chrono::steady_clock::time_point limit) {
    while (true) {
      const auto running = find_running();
      if (!running) return tl::unexpected(running.error());
      if (*running == nullptr) return gave_up();
      const auto now = std::chrono::steady_clock::now();
      if (now > limit) stop();
      if (now > limit + spec_.last_wait) {
        abandoned_ = true;
        return machine_error(fmt::format(
            "the fused kernel of GPU {} is not over within {}, and did not give up in the {} that followed; end this "
            "program, and see whether the GPU still works",
            (*running)->gpu, to_string(spec_.limit), to_string(spec_.last_wait)));
      }
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  /// A rank whose kernel is not over; null: none.
  /// @errors Machine: a GPU has failed, of whichever rank.
  [[nodiscard]] Expected<const Rank*> find_running() const {
    const Rank* running = nullptr;
    for (const Rank& rank : ranks_) {
      const cudaError_t status = answer(cudaStreamQuery(rank.stream.get()));
      if (status == cudaErrorNotReady) {
        running = &rank;
      } else if (auto ok = check(status, "cudaStreamQuery"); !ok) {
        return tl::unexpected(std::move(ok.error()));
      }
    }
    return running;
  }

  /// The error of kernels that gave up, if some did: of the one that waited for a peer in the earliest round.
  [[nodiscard]] Expected<void> gave_up() const {
    const auto reports = std::span(host_->reports).first(ranks_.size());
    if (std::ranges::none_of(reports, [](const FusedReport& report) { return report.gave_up != 0; })) return {};
    const FusedReport* first = nullptr;
    for (const FusedReport& report : reports)
      if (report.waits_for_peer != 0 && (first == nullptr || report.round < first->round)) first = &report;
    const std::string limit = to_string(spec_.limit);
    if (first == nullptr)
      return machine_error(fmt::format(
          "the fused kernels are not over within {}, and wait for no other GPU; give a longer limit, or shorter work",
          limit));
    const auto rank = static_cast<std::size_t>(first - host_->reports);
    const std::size_t peer = (rank + 1 + first->peer) % ranks_.size();
    const bool message = first->step == static_cast<std::uint64_t>(FusedStep::AwaitMessage);
    return machine_error(
        fmt::format("the fused kernels are not over within {}: in round {} rank {} (GPU {}) waits {} rank {} (GPU {}); "
                    "see whether that "
                    "GPU runs its kernel, or give a longer limit",
                    limit, first->round, rank, ranks_[rank].gpu,
                    message ? "for the message of" : "until its message is unpacked by", peer, ranks_[peer].gpu));
  }

  Expected<void> count(FusedExchangeResult& result) const {
    const std::uint64_t sum =
        spec_.rounds % 2 == 0 ? spec_.rounds / 2 * (spec_.rounds + 1) : (spec_.rounds + 1) / 2 * spec_.rounds;
    for (const Rank& rank : ranks_) {
      std::vector<std::uint64_t> words(spec_.inner_words + kCounts);
      if (auto ok =
              check(cudaMemcpy(words.data(), rank.inner, words.size() * sizeof(std::uint64_t), cudaMemcpyDeviceToHost),
                    "cudaMemcpy");
          !ok)
        return ok;
      const auto inner = std::span(words).first(spec_.inner_words);
      result.blocks.push_back(rank.blocks);
      result.messages += spec_.rounds * shape_.peers;
      result.expected += spec_.rounds * shape_.peers * spec_.message_words;
      result.right += words[spec_.inner_words + 1];
      result.wrong += words[spec_.inner_words + 2];
      result.inner_wrong +=
          static_cast<std::uint64_t>(std::ranges::count_if(inner, [&](std::uint64_t at) { return at != sum; }));
    }
    return {};
  }

  static constexpr std::uint32_t kCounts = 3;

  const FusedExchangeSpec& spec_;
  FusedShape shape_;
  std::unique_ptr<HostWords, FreeHost> host_;
  std::vector<std::pair<int, int>> enabled_;  // GPU, and one that it did not reach before
  std::vector<Rank> ranks_;
  bool abandoned_ = false;
};

Expected<void> check_gpus(const FusedExchangeSpec& spec) {
  int count = 0;
  if (auto ok = check(cudaGetDeviceCount(&count), "cudaGetDeviceCount"); !ok) return ok;
  for (const int gpu : spec.gpus)
    if (gpu < 0 || gpu >= count)
      return invalid_input(fmt::format("there is no GPU {}; this host has {}, from 0 on", gpu, count));
  return {};
}

}  // namespace
}  // namespace cuda

Expected<FusedExchangeResult> run_fused_exchange(const FusedExchangeSpec& spec) {
  const auto shape = cuda::shape_of(spec);
  if (!shape) return tl::unexpected(shape.error());
  cuda::set_environment();
  if (auto ok = cuda::check_gpus(spec); !ok) return tl::unexpected(std::move(ok.error()));
  cuda::Exchange exchange(spec, *shape);
  if (auto ok = exchange.prepare(); !ok) return tl::unexpected(std::move(ok.error()));
  return exchange.run();
}

}  // namespace tutti::internal
