#include "runtime/cuda/fused/ping_pong.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/base/expects.hpp"
#include "model/base/units.hpp"
#include "runtime/cuda/base/handles.hpp"
#include "runtime/cuda/base/kernels.hpp"
#include "runtime/cuda/comm/comm_stream.hpp"
#include "runtime/cuda/fused/fused_group.hpp"
#include "runtime/cuda/fused/ping_pong_kernel.hpp"

namespace tutti::internal {
namespace cuda {
namespace {

using PingPongClock = std::chrono::steady_clock;

constexpr std::uint32_t kPingPongThreads = 256;
/// Smaller messages have fewer blocks.
constexpr std::uint64_t kBytesOfABlock = 8192;
/// Operations that a stream has at most; the driver takes some 1000.
constexpr std::uint64_t kOperationsAhead = 900;
constexpr std::uint64_t kMessagesOfARank = 17;
constexpr std::uint8_t kGarbage = 0xa5;

/// Distance of two messages. Behind each some bytes stay free, which no message may change.
std::uint64_t stride_of(std::uint64_t bytes) {
  constexpr std::uint64_t kLine = 256;
  return (bytes / kLine + 1) * kLine;
}

std::uint64_t memory_of_a_rank() {
  return kMessagesOfARank * stride_of(static_cast<std::uint64_t>(kMostPingPongBytes.count));
}

/// What stands at a place of the first message of a run.
std::uint8_t first_byte(std::uint64_t run, std::uint64_t place) {
  const std::uint64_t mixed = (place + 1) * 0x9e3779b97f4a7c15U + run * 0xbf58476d1ce4e5b9U;
  return static_cast<std::uint8_t>(mixed >> 40);
}

/// What a rank enqueues, through `comm::Stream`.
class OwnStream {
 public:
  OwnStream(comm::Stream& stream, int gpu) : stream_(stream), gpu_(gpu) {}
  [[nodiscard]] Expected<void> wait(comm::WordValue word) const { return stream_.wait(word); }
  [[nodiscard]] Expected<void> rest(std::uint64_t ns) const {
    const DeviceGuard guard(gpu_);
    launch_spin(*stream_.on_device(), ns);
    return check(cudaGetLastError(), "cudaLaunchKernel");
  }
  [[nodiscard]] Expected<void> copy(std::byte* to, const std::byte* from, std::size_t bytes) const {
    return stream_.copy(to, from, bytes);
  }
  [[nodiscard]] Expected<void> set(comm::WordValue word) const { return stream_.set(word); }

 private:
  comm::Stream& stream_;
  int gpu_;
};

/// The same by plain calls. Changes the current device.
class PlainStream {
 public:
  PlainStream(const Driver& driver, cudaStream_t stream, int gpu) : driver_(driver), stream_(stream), gpu_(gpu) {}
  [[nodiscard]] Expected<void> wait(comm::WordValue word) const {
    return check(driver_.wait_value(stream_, address(word), word.value, CU_STREAM_WAIT_VALUE_GEQ),
                 "cuStreamWaitValue32");
  }
  [[nodiscard]] Expected<void> rest(std::uint64_t ns) const {
    return check(cudaSetDevice(gpu_), "cudaSetDevice").and_then([&] {
      launch_spin(stream_, ns);
      return check(cudaGetLastError(), "cudaLaunchKernel");
    });
  }
  [[nodiscard]] Expected<void> copy(std::byte* to, const std::byte* from, std::size_t bytes) const {
    return check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
  }
  [[nodiscard]] Expected<void> set(comm::WordValue word) const {
    return check(driver_.write_value(stream_, address(word), word.value, CU_STREAM_WRITE_VALUE_DEFAULT),
                 "cuStreamWriteValue32");
  }

 private:
  static CUdeviceptr address(const comm::WordValue& word) { return reinterpret_cast<CUdeviceptr>(word.word); }

  const Driver& driver_;
  cudaStream_t stream_;
  int gpu_;
};

struct Player {
  int gpu = 0;
  DeviceMemory memory;               ///< messages, then `kMostPingPongBlocks` words
  std::uint64_t* arrived = nullptr;  ///< these words
  Stream plain;                      ///< for all modes but one
  std::unique_ptr<comm::Stream> own;
};

/// A run, with its memory laid out.
struct Turns : PingPongRun {
  std::uint64_t size = 0, slots = 1, stride = 0;
  PingPongClock::time_point limit = {};
};

Expected<void> check_run(const PingPongRun& run, std::uint64_t most_fresh) {
  const auto size = static_cast<std::uint64_t>(std::max<std::int64_t>(run.bytes.count, 0));
  if (auto ok = check_limits("bytes of a message", size, 1, static_cast<std::uint64_t>(kMostPingPongBytes.count)); !ok)
    return ok;
  if (auto ok = check_limits("rounds", run.rounds, 1, kMostPingPongRounds); !ok) return ok;
  if (run.fresh)
    if (auto ok = check_limits("rounds in fresh memory", run.rounds, 1, most_fresh); !ok) return ok;
  if (run.kernel >= Duration{0} && run.kernel <= kMostPingPongKernel) return {};
  return invalid_input(fmt::format("a kernel of {} is not possible; give one from 0 ns to {}", to_string(run.kernel),
                                   to_string(kMostPingPongKernel)));
}

/// Members are freed in reverse: the group last, when the kernels are over.
class CudaPingPong final : public PingPong {
 public:
  CudaPingPong(const PingPongSpec& spec, const Driver& driver)
      : spec_(spec), driver_(driver), group_({spec.limit, spec.last_wait}) {}
  CudaPingPong(const CudaPingPong&) = delete;  // streams and kernels know its words by their address
  CudaPingPong& operator=(const CudaPingPong&) = delete;
  ~CudaPingPong() override {
    if (!group_.is_abandoned()) return;  // a run has ended when it returns
    // Nothing that running kernels use can be freed, and no call may wait for them.
    for (Player& player : players_) {
      static_cast<void>(player.plain.release()), static_cast<void>(player.memory.release());
    }
    static_cast<void>(words_.release());
  }

  Expected<void> prepare() {
    if (auto ok = group_.prepare(players_.size()); !ok) return ok;
    for (std::size_t rank = 0; rank < players_.size(); ++rank)
      if (auto ok = add_player(players_[rank], spec_.gpus[rank]); !ok) return ok;
    if (auto ok = group_.reach_each_other(spec_.gpus, "where it puts messages"); !ok) return ok;
    void* pinned = nullptr;
    return check(cudaHostAlloc(&pinned, sizeof(Words), cudaHostAllocPortable | cudaHostAllocMapped), "cudaHostAlloc")
        .map([&] { words_.reset(new (pinned) Words{}); });
  }

  [[nodiscard]] std::uint64_t most_fresh_rounds(Bytes bytes) const override {
    const std::uint64_t slots = memory_of_a_rank() / stride_of(static_cast<std::uint64_t>(bytes.count));
    return std::min(slots - 1, kMostPingPongRounds);
  }

  Expected<Duration> run(const PingPongRun& run) override {
    if (broken_) return machine_error("a run of the ping-pong failed before; make it anew");
    if (auto ok = check_run(run, run.bytes.count > 0 ? most_fresh_rounds(run.bytes) : 0); !ok)
      return tl::unexpected(std::move(ok.error()));
    Turns turns{run};
    turns.size = static_cast<std::uint64_t>(run.bytes.count);
    turns.slots = run.fresh ? run.rounds + 1 : 1;
    turns.stride = stride_of(turns.size);
    if (auto ok = place_first_message(turns); !ok) return tl::unexpected(std::move(ok.error()));
    turns.limit = PingPongClock::now() + spec_.limit;
    auto took = play(turns);
    if (!took) return tl::unexpected(give_up(std::move(took.error())));
    if (auto ok = check_last_messages(turns); !ok) return tl::unexpected(std::move(ok.error()));
    return *took / static_cast<std::int64_t>(run.rounds);
  }

 private:
  /// In pinned memory: streams set and wait for these, a word for each rank.
  struct Words {
    SignalLine<comm::Word> arrived[2];
  };

  // ---- before the first run

  Expected<void> add_player(Player& player, int gpu) {
    const DeviceGuard guard(gpu);
    player.gpu = gpu;
    FusedSlots slots;
    if (auto ok = check(find_ping_pong_slots(kPingPongThreads, slots), "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
        !ok)
      return ok;
    slots.kernels = spec_.gpus[0] == spec_.gpus[1] ? 2 : 1;
    most_blocks_ = std::min(most_blocks_, slots.of_each());
    if (most_blocks_ == 0)
      return invalid_input(fmt::format("GPU {} has no room for a kernel of each rank; name another one", gpu));
    const std::uint64_t size = memory_of_a_rank() + kMostPingPongBlocks * sizeof(std::uint64_t);
    auto memory = make_device_memory(gpu, size);
    if (!memory) return tl::unexpected(std::move(memory.error()));
    player.memory = *std::move(memory);
    player.arrived = reinterpret_cast<std::uint64_t*>(player.memory.get() + memory_of_a_rank());
    auto own = make_comm_stream(gpu);
    if (!own) return tl::unexpected(std::move(own.error()));
    player.own = *std::move(own);
    auto plain = make_stream(gpu);
    if (!plain) return tl::unexpected(std::move(plain.error()));
    player.plain = *std::move(plain);
    return zero(gpu, player.memory.get(), size, player.plain.get());
  }

  // ---- the message

  /// Rank 0 sends from here in a round, counted from 0, and rank 1, too; rank 1 answers into the next slot of rank 0.
  [[nodiscard]] std::byte* slot(const Turns& turns, std::size_t rank, std::uint64_t round) const {
    return players_[rank].memory.get() + round % turns.slots * turns.stride;
  }

  Expected<void> place_first_message(const Turns& turns) {
    for (const Player& player : players_) {
      const DeviceGuard guard(player.gpu);
      auto ok =
          check(cudaMemsetAsync(player.memory.get(), kGarbage, turns.slots * turns.stride, player.plain.get()),
                "cudaMemsetAsync")
              .and_then([&] { return check(cudaStreamSynchronize(player.plain.get()), "cudaStreamSynchronize"); });
      if (!ok) return ok;
    }
    ++runs_;
    std::vector<std::uint8_t> message(turns.size);
    for (std::uint64_t i = 0; i < turns.size; ++i) message[i] = first_byte(runs_, i);
    return copy_and_wait(slot(turns, 0, 0), message.data(), message.size(), players_[0].plain.get());
  }

  Expected<void> check_last_messages(const Turns& turns) {
    for (std::size_t rank = 0; rank < players_.size(); ++rank) {
      const std::uint64_t hops = 2 * turns.rounds - rank;
      const std::uint64_t added = turns.mode == PingPongMode::Kernel ? hops : 0;
      std::vector<std::uint8_t> found(turns.stride);
      if (auto ok = copy_and_wait(found.data(), slot(turns, rank, turns.rounds - rank), found.size(),
                                  players_[rank].plain.get());
          !ok)
        return ok;
      for (std::uint64_t i = 0; i < turns.stride; ++i) {
        const auto right =
            i < turns.size ? static_cast<std::uint8_t>(first_byte(runs_, i) + added) : std::uint8_t{kGarbage};
        if (found[i] == right) continue;
        return machine_error(
            fmt::format("byte {} of the message of rank {} is {} in place of {} behind {} round trips of "
                        "mode {}; see whether the GPUs work",
                        i, rank, found[i], right, turns.rounds, to_string(turns.mode)));
      }
    }
    return {};
  }

  // ---- runs

  Expected<Duration> play(const Turns& turns) {
    switch (turns.mode) {
      case PingPongMode::Host: return play_by_host(turns);
      case PingPongMode::Stream:
        return play_by_streams(turns, std::array{OwnStream(*players_[0].own, players_[0].gpu),
                                                 OwnStream(*players_[1].own, players_[1].gpu)});
      case PingPongMode::ByHand: {
        const DeviceGuard guard(players_[0].gpu);  // restores the current device
        return play_by_streams(turns, std::array{PlainStream(driver_, players_[0].plain.get(), players_[0].gpu),
                                                 PlainStream(driver_, players_[1].plain.get(), players_[1].gpu)});
      }
      case PingPongMode::Kernel: break;
    }
    return play_by_kernels(turns);
  }

  /// The kernel, and the message behind it.
  template <class S>
  Expected<void> send(const Turns& turns, const S& stream, std::size_t rank, std::uint64_t round) const {
    const auto rest = static_cast<std::uint64_t>(turns.kernel.count());
    return (rest > 0 ? stream.rest(rest) : Expected<void>{}).and_then([&] {
      return stream.copy(slot(turns, 1 - rank, round + rank), slot(turns, rank, round), turns.size);
    });
  }

  Expected<Duration> play_by_host(const Turns& turns) {
    const DeviceGuard guard(players_[0].gpu);
    const auto begin = PingPongClock::now();
    for (std::uint64_t round = 0; round < turns.rounds; ++round) {
      for (std::size_t rank = 0; rank < players_.size(); ++rank) {
        const Player& player = players_[rank];
        const PlainStream stream(driver_, player.plain.get(), player.gpu);
        auto ok = send(turns, stream, rank, round).and_then([&] { return await_stream(turns, player.plain.get()); });
        if (!ok) return tl::unexpected(std::move(ok.error()));
      }
    }
    return PingPongClock::now() - begin;
  }

  /// Enqueues as far ahead as queues take it, opens the first wait, and goes on enqueueing behind.
  /// @tparam S  `OwnStream` or `PlainStream`
  template <class S>
  Expected<Duration> play_by_streams(const Turns& turns, const std::array<S, 2>& streams) {
    const std::uint64_t ahead = kOperationsAhead / (turns.kernel > Duration{0} ? 4 : 3);
    first_ = comm::look_at(words_->arrived[0].word);
    open_ = false;
    PingPongClock::time_point begin;
    for (std::uint64_t round = 0; round < turns.rounds; ++round) {
      if (round == ahead) begin = open();
      if (round >= ahead)
        if (auto ok = await_rounds(turns, round - ahead); !ok) return tl::unexpected(std::move(ok.error()));
      for (std::size_t rank = 0; rank < players_.size(); ++rank)
        if (auto ok = enqueue_hop(turns, streams[rank], rank, round); !ok) return tl::unexpected(std::move(ok.error()));
    }
    if (turns.rounds <= ahead) begin = open();
    return await_rounds(turns, turns.rounds).and_then([&]() -> Expected<Duration> {
      const Duration took = PingPongClock::now() - begin;
      return group_.wait(work(), PingPongClock::now(), kWatch).map([&] { return took; });
    });
  }

  template <class S>
  Expected<void> enqueue_hop(const Turns& turns, const S& stream, std::size_t rank, std::uint64_t round) const {
    const auto value = static_cast<comm::Word>(first_ + 1 + round);
    return stream.wait({&words_->arrived[rank].word, value})
        .and_then([&] { return send(turns, stream, rank, round); })
        .and_then([&] {
          return stream.set({&words_->arrived[1 - rank].word, static_cast<comm::Word>(value + rank)});
        });
  }

  /// The message is at rank 0.
  PingPongClock::time_point open() {
    const auto now = PingPongClock::now();
    comm::set_word(words_->arrived[0].word, first_ + 1);
    open_ = true;
    return now;
  }

  /// Waits until rank 0 has the answer of so many rounds.
  Expected<void> await_rounds(const Turns& turns, std::uint64_t rounds) {
    constexpr std::uint64_t kLooks = 1024;
    const auto wanted = static_cast<comm::Word>(first_ + 1 + rounds);
    for (std::uint64_t look = 1; !comm::reached(comm::look_at(words_->arrived[0].word), wanted); ++look) {
      if (PingPongClock::now() > turns.limit) return over_limit(turns);
      std::this_thread::yield();
      if (look % kLooks != 0) continue;
      for (const FusedGroup::Kernel& one : work())  // a GPU that has failed sets no word
        if (const cudaError_t status = answer(cudaStreamQuery(one.stream)); status != cudaErrorNotReady)
          if (auto ok = check(status, "cudaStreamQuery"); !ok) return ok;
    }
    return {};
  }

  Expected<void> await_stream(const Turns& turns, cudaStream_t stream) const {
    while (true) {
      const cudaError_t status = answer(cudaStreamQuery(stream));
      if (status != cudaErrorNotReady) return check(status, "cudaStreamQuery");
      if (PingPongClock::now() > turns.limit) return over_limit(turns);
      std::this_thread::yield();
    }
  }

  Expected<Duration> play_by_kernels(const Turns& turns) {
    const auto begin = PingPongClock::now();
    for (std::size_t rank = 0; rank < players_.size(); ++rank) {
      const Player &mine = players_[rank], &other = players_[1 - rank];
      const PingPongWork work{static_cast<std::uint32_t>(rank),
                              blocks_for(turns.size),
                              kernel_rounds_,
                              turns.rounds,
                              turns.size,
                              static_cast<std::uint64_t>(turns.kernel.count()),
                              turns.slots,
                              turns.stride,
                              mine.memory.get(),
                              other.memory.get(),
                              mine.arrived,
                              other.arrived,
                              group_.stop_word(),
                              &group_.report(rank)->gave_up};
      const DeviceGuard guard(mine.gpu);
      if (auto ok = check(launch_ping_pong(mine.plain.get(), kPingPongThreads, work), "cudaLaunchKernel"); !ok)
        return tl::unexpected(std::move(ok.error()));
    }
    return group_.wait(work(), begin, kWatch).and_then([&]() -> Expected<Duration> {
      if (group_.has_given_up()) return tl::unexpected(over_limit(turns).error());
      kernel_rounds_ += turns.rounds;
      return PingPongClock::now() - begin;
    });
  }
  [[nodiscard]] std::uint32_t blocks_for(std::uint64_t size) const {
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(size / kBytesOfABlock, 1, most_blocks_));
  }

  // ---- runs that do not end

  Expected<void> over_limit(const Turns& turns) const {
    return machine_error(fmt::format("{} rounds of mode {} are not over within {}; give fewer rounds or a longer limit",
                                     turns.rounds, to_string(turns.mode), to_string(spec_.limit)));
  }

  /// Ends what is under way. Every wait in a stream has its set in a stream already, or the host opens it, so streams
  /// end by themselves, and kernels when they are told to. Behind it nothing of the run is left, or the group is
  /// abandoned.
  /// @return the error to report
  Error give_up(Error error) {
    broken_ = true;
    if (group_.is_abandoned()) return error;
    if (!open_) open();
    auto over = group_.wait(work(), PingPongClock::now() - spec_.limit, kWatch);
    return group_.is_abandoned() ? std::move(over.error()) : error;
  }
  [[nodiscard]] std::vector<FusedGroup::Kernel> work() const {
    std::vector<FusedGroup::Kernel> work;
    for (const Player& player : players_)
      for (const cudaStream_t stream : {player.plain.get(), cudaStream_t{*player.own->on_device()}})
        work.push_back({player.gpu, stream});
    return work;
  }
  static constexpr FusedGroup::Watch kWatch{Duration{0}, "work"};

  PingPongSpec spec_;
  Driver driver_;
  FusedGroup group_;
  std::unique_ptr<Words, Destroy<cudaFreeHost>> words_;
  std::array<Player, 2> players_;
  std::uint32_t most_blocks_ = kMostPingPongBlocks;
  std::uint64_t runs_ = 0;
  comm::Word first_ = 0;             // of both words, before a run by streams
  bool open_ = true;                 // the first wait of that run
  std::uint64_t kernel_rounds_ = 0;  // of the words of kernels
  bool broken_ = false;
};

}  // namespace
}  // namespace cuda

Expected<std::unique_ptr<PingPong>> make_ping_pong(const PingPongSpec& spec) {
  cuda::set_environment();
  for (const int gpu : spec.gpus)
    if (auto ok = cuda::check_device(gpu); !ok) return tl::unexpected(std::move(ok.error()));
  const auto driver = cuda::find_driver();
  if (!driver) return tl::unexpected(driver.error());
  auto ping_pong = std::make_unique<cuda::CudaPingPong>(spec, *driver);
  if (auto ok = ping_pong->prepare(); !ok) return tl::unexpected(std::move(ok.error()));
  return ping_pong;
}

}  // namespace tutti::internal
