#include "runtime/cuda/fused/fused_exchange.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "model/base/units.hpp"
#include "runtime/cuda/base/handles.hpp"
#include "runtime/cuda/base/kernels.hpp"
#include "runtime/cuda/fused/fused_group.hpp"
#include "runtime/cuda/fused/fused_kernel.hpp"

namespace tutti::internal {
namespace cuda {
namespace {

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
  for (const auto& ok :
       {check_limits("ranks", spec.gpus.size(), 2, kMostFusedPeers + 1),
        check_limits("rounds", spec.rounds, 1, std::uint64_t{1} << 32),
        check_limits("words a message", spec.message_words, 1, 1U << 20),
        check_limits("words of inner work", spec.inner_words, 0, 1U << 28), check_threads_of_block(spec.threads)})
    if (!ok) return tl::unexpected(ok.error());
  const auto peers = static_cast<std::uint32_t>(spec.gpus.size() - 1);
  return FusedShape{peers, spec.senders == 0 ? 2 * peers : spec.senders,
                    spec.unpackers == 0 ? 2 * peers : spec.unpackers, spec.buffers};
}

/// The exchange while it runs. Members are freed in reverse: the group last, when the kernels are over.
class Exchange {
 public:
  Exchange(const FusedExchangeSpec& spec, const FusedShape& shape)
      : spec_(spec), shape_(shape), group_({spec.limit, spec.last_wait}) {}
  Exchange(const Exchange&) = delete;  // kernels know its words by their address
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() {
    if (group_.is_abandoned()) {
      abandon();
      return;
    }
    group_.stop();
    for (const Rank& rank : ranks_)
      if (rank.stream) static_cast<void>(cudaStreamSynchronize(rank.stream.get()));
  }

  Expected<void> prepare() {
    if (auto ok = group_.prepare(spec_.gpus.size()); !ok) return ok;
    for (const int gpu : spec_.gpus)
      if (auto ok = add_rank(gpu); !ok) return ok;
    return group_.reach_each_other(spec_.gpus, "where fused kernels put messages");
  }

  Expected<FusedExchangeResult> run() {
    const auto begin = std::chrono::steady_clock::now();
    const std::uint64_t each = spec_.rounds_a_launch == 0 ? spec_.rounds : spec_.rounds_a_launch;
    for (std::uint64_t first = 0; first < spec_.rounds; first += each) {
      for (std::size_t r = 0; r < ranks_.size(); ++r)
        if (auto ok = launch(r, first, std::min(each, spec_.rounds - first)); !ok) return tl::unexpected(ok.error());
      if (auto ok = wait(begin); !ok) return tl::unexpected(ok.error());
    }
    FusedExchangeResult result;
    result.length = std::chrono::steady_clock::now() - begin;
    if (auto ok = count(result); !ok) return tl::unexpected(ok.error());
    return result;
  }

 private:
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
    const std::uint64_t size =
        (shape_.words() + words_arriving() + spec_.inner_words + kCounts) * sizeof(std::uint64_t);
    auto memory = make_device_memory(gpu, size);
    if (!memory) return tl::unexpected(std::move(memory.error()));
    rank.memory = *std::move(memory);
    rank.words = reinterpret_cast<std::uint64_t*>(rank.memory.get());
    rank.arriving = rank.words + shape_.words();
    rank.inner = rank.arriving + words_arriving();
    rank.counts = rank.inner + spec_.inner_words;
    return zero(gpu, rank.memory.get(), size, rank.stream.get());
  }

  // ---- a launch

  Expected<void> launch(std::size_t r, std::uint64_t first, std::uint64_t rounds) {
    if (static_cast<int>(r) == spec_.absent) return {};
    const Rank& rank = ranks_[r];
    FusedMemory memory{kFusedRules,        shape_,           first, rounds, rank.words, rank.counts,
                       group_.stop_word(), group_.report(r), {}};
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

  /// Leaves to running kernels what they use: nothing of it can be freed, and no call may wait for them.
  void abandon() {
    for (Rank& rank : ranks_) static_cast<void>(rank.stream.release()), static_cast<void>(rank.memory.release());
  }

  Expected<void> wait(std::chrono::steady_clock::time_point begin) {
    std::vector<FusedGroup::Kernel> kernels;
    for (const Rank& rank : ranks_) kernels.push_back({rank.gpu, rank.stream.get()});
    return group_.wait(kernels, begin, {std::chrono::microseconds(20)}).and_then([&] { return gave_up(); });
  }

  /// The error of kernels that gave up, if some did: of the one that waited for a peer in the earliest round.
  [[nodiscard]] Expected<void> gave_up() const {
    if (!group_.has_given_up()) return {};
    const FusedReport* first = nullptr;
    for (const FusedReport& report : group_.reports())
      if (report.waits_for_peer != 0 && (first == nullptr || report.round < first->round)) first = &report;
    const std::string limit = to_string(spec_.limit);
    if (first == nullptr)
      return machine_error(fmt::format(
          "the fused kernels are not over within {}, and wait for no other GPU; give a longer limit, or shorter work",
          limit));
    const auto rank = static_cast<std::size_t>(first - group_.report(0));
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
      if (auto ok = copy_and_wait(words.data(), rank.inner, words.size() * sizeof(std::uint64_t), rank.stream.get());
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
  FusedGroup group_;
  std::vector<Rank> ranks_;
};

}  // namespace
}  // namespace cuda

Expected<FusedExchangeResult> run_fused_exchange(const FusedExchangeSpec& spec) {
  const auto shape = cuda::shape_of(spec);
  if (!shape) return tl::unexpected(shape.error());
  cuda::set_environment();
  for (const int gpu : spec.gpus)
    if (auto ok = cuda::check_device(gpu); !ok) return tl::unexpected(std::move(ok.error()));
  cuda::Exchange exchange(spec, *shape);
  if (auto ok = exchange.prepare(); !ok) return tl::unexpected(std::move(ok.error()));
  return exchange.run();
}

}  // namespace tutti::internal
