#include "runtime/cuda/fused/stencil_exchange.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "model/base/units.hpp"
#include "runtime/cuda/base/handles.hpp"
#include "runtime/cuda/base/kernels.hpp"
#include "runtime/cuda/fused/fused_group.hpp"
#include "runtime/cuda/fused/stencil_kernels.hpp"

namespace tutti::internal {
namespace cuda {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kMostStencilRanks = 32;

/// One rank: its slab, and two streams, of which the second sends.
struct Slab {
  int gpu = 0;
  std::uint32_t blocks = 0;
  std::uint32_t most_blocks = 0;  ///< of the kernel of a part: as many as fit at once
  FusedShape shape;
  DeviceMemory memory;
  std::uint64_t* words = nullptr;  ///< [shape.words()], and the claim
  StencilWork work{};
  Stream main, sends;
  Event packed, sent, begin, end;
};

Expected<void> check_stencil(const StencilSpec& spec) {
  for (const auto& ok :
       {check_limits("ranks", spec.gpus.size(), 1, kMostStencilRanks),
        check_limits("dimensions", static_cast<std::uint64_t>(std::max(spec.dimensions, 0)), 2, 3),
        check_limits("points along an edge", spec.edge, 1, 4096), check_limits("layers a GPU", spec.layers, 2, 65536),
        check_limits("points a GPU", spec.face() * (spec.layers + std::uint64_t{2}), 1, kMostStencilPoints),
        check_threads_of_block(spec.threads)})
    if (!ok) return ok;
  for (const int gpu : spec.gpus)
    if (auto ok = check_device(gpu); !ok) return ok;
  return {};
}

/// Blocks of an iteration: each has several points a thread, and all of them fit at once where that is possible.
FusedShape stencil_shape(const StencilSpec& spec, std::uint32_t slots) {
  constexpr std::uint64_t kPointsOfAThread = 8;
  const auto blocks = [&](std::uint64_t points, std::uint64_t most) {
    const std::uint64_t wanted = points / (kPointsOfAThread * spec.threads) + 1;
    return static_cast<std::uint32_t>(std::max<std::uint64_t>(std::min(wanted, most), kStencilPeers));
  };
  const std::uint32_t unpackers = blocks(kStencilPeers * spec.face(), slots / 4);
  const std::uint64_t left = slots > unpackers + 1 ? slots - unpackers - 1 : 1;
  return {kStencilPeers, blocks(spec.face() * spec.layers, left), unpackers, kStencilBuffers};
}

Duration median_of(std::vector<Duration> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

/// Calls of the host in an iteration of streams.
enum HostCalls : std::uint8_t { kLaunches, kPackedCalls, kCopyCalls, kSentCalls, kHostCalls };

Duration since(SteadyClock::time_point begin) { return SteadyClock::now() - begin; }

/// Members are freed in reverse: the group last, when the kernels are over.
class CudaStencil final : public Stencil {
 public:
  /// @param shape  of the fused kernels; nothing: as the field is large
  explicit CudaStencil(const StencilSpec& spec, const std::optional<FusedShape>& shape = std::nullopt)
      : spec_(spec), shape_(shape), group_({spec.limit, spec.last_wait}) {}
  CudaStencil(const CudaStencil&) = delete;  // kernels know its words by their address
  CudaStencil& operator=(const CudaStencil&) = delete;
  ~CudaStencil() override {
    if (group_.is_abandoned()) {
      abandon();
      return;
    }
    group_.stop();
    for (const Slab& slab : slabs_)
      for (const Stream* stream : {&slab.main, &slab.sends})
        if (*stream) static_cast<void>(cudaStreamSynchronize(stream->get()));
  }

  Expected<void> prepare() {
    if (auto ok = group_.prepare(spec_.gpus.size()); !ok) return ok;
    for (const int gpu : spec_.gpus)
      if (auto ok = add_slab(gpu); !ok) return ok;
    if (auto ok = group_.reach_each_other(spec_.gpus, "where it puts layers"); !ok) return ok;
    for (std::size_t r = 0; r < slabs_.size(); ++r)
      for (std::uint32_t p = 0; p < kStencilPeers; ++p)
        slabs_[r].work.leaving[p] = message_at(neighbour(r, p), 1 - p, 0);
    return {};
  }

  Expected<void> fill(std::uint64_t seed) override {
    const std::uint64_t face = spec_.face(), layers = spec_.layers * slabs_.size();
    std::vector<std::uint64_t> points((spec_.layers + std::uint64_t{2}) * face);
    for (std::size_t r = 0; r < slabs_.size(); ++r) {
      for (std::uint64_t layer = 0; layer < spec_.layers + std::uint64_t{2}; ++layer)
        for (std::uint64_t i = 0; i < face; ++i)
          points[layer * face + i] = stencil_start(seed, (r * spec_.layers + layer + layers - 1) % layers * face + i);
      if (auto ok = copy_and_wait(slabs_[r].work.fields[round_ & 1], points.data(),
                                  points.size() * sizeof(std::uint64_t), slabs_[r].main.get());
          !ok)
        return ok;
    }
    return {};
  }

  Expected<std::vector<std::uint64_t>> field() override {
    const std::uint64_t face = spec_.face(), points = spec_.layers * face;
    std::vector<std::uint64_t> field(points * slabs_.size());
    for (std::size_t r = 0; r < slabs_.size(); ++r)
      if (auto ok = copy_and_wait(field.data() + r * points, slabs_[r].work.fields[round_ & 1] + face,
                                  points * sizeof(std::uint64_t), slabs_[r].main.get());
          !ok)
        return tl::unexpected(std::move(ok.error()));
    return field;
  }

  Expected<Duration> run(ControlMode mode, std::uint64_t iterations) override {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 31;
    if (iterations < 1 || iterations > kMost)
      return invalid_input(fmt::format("{} iterations are not possible; give 1 to {}", iterations, kMost));
    const auto begin = SteadyClock::now();
    Expected<void> ok;
    switch (mode) {
      case ControlMode::Host: ok = run_by_host(iterations); break;
      case ControlMode::Stream:
        ok = run_by_streams(iterations, [](HostCalls, const auto& calls) { return calls(); });
        break;
      case ControlMode::Kernel: ok = run_by_kernels(iterations); break;
    }
    if (!ok) return tl::unexpected(std::move(ok.error()));
    return since(begin);
  }

  Expected<StencilSteps> time_steps(int samples) override;

 private:
  [[nodiscard]] std::size_t neighbour(std::size_t rank, std::uint32_t peer) const {
    return (rank + (peer == 0 ? 1 : slabs_.size() - 1)) % slabs_.size();
  }
  /// Where a rank gets the message of a peer.
  [[nodiscard]] std::uint64_t* message_at(std::size_t rank, std::uint32_t peer, std::uint64_t buffer) const {
    return slabs_[rank].work.arriving + (std::uint64_t{peer} * kStencilBuffers + buffer) * spec_.face();
  }

  // ---- before the first run

  Expected<void> add_slab(int gpu) {
    const DeviceGuard guard(gpu);
    Slab& slab = slabs_.emplace_back();
    slab.gpu = gpu;
    FusedSlots slots, inner;
    if (auto ok =
            check(find_stencil_slots(spec_.threads, slots, inner), "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
        !ok)
      return ok;
    slab.most_blocks = std::max(inner.of_each(), 1U);
    slots.kernels = static_cast<std::uint32_t>(std::ranges::count(spec_.gpus, gpu));
    slab.shape = shape_ ? *shape_ : stencil_shape(spec_, slots.of_each());
    const auto blocks = fused_blocks(slab.shape, slots);
    if (!blocks) return tl::unexpected(blocks.error());
    slab.blocks = *blocks;
    if (auto ok = make_handles(slab); !ok) return ok;
    const std::uint64_t points = (spec_.layers + std::uint64_t{2}) * spec_.face();
    const std::uint64_t messages = std::uint64_t{kStencilPeers} * kStencilBuffers * spec_.face();
    const std::uint64_t size = (2 * points + messages + slab.shape.words() + 1) * sizeof(std::uint64_t);
    auto memory = make_device_memory(gpu, size);
    if (!memory) return tl::unexpected(std::move(memory.error()));
    slab.memory = *std::move(memory);
    auto* const first = reinterpret_cast<std::uint64_t*>(slab.memory.get());
    slab.words = first + 2 * points + messages;
    slab.work = {spec_.edge,
                 spec_.dimensions == 3 ? spec_.edge : 1,
                 spec_.layers,
                 0,
                 {first, first + points},
                 first + 2 * points,
                 {}};
    return zero(gpu, slab.memory.get(), size, slab.main.get());
  }

  static Expected<void> make_handles(Slab& slab) {
    for (Stream* const stream : {&slab.main, &slab.sends}) {
      auto made = make_stream(slab.gpu);
      if (!made) return tl::unexpected(std::move(made.error()));
      *stream = *std::move(made);
    }
    for (Event* const event : {&slab.packed, &slab.sent, &slab.begin, &slab.end}) {
      const bool timed = event == &slab.begin || event == &slab.end;
      auto made = make_event(slab.gpu, timed ? cudaEventDefault : cudaEventDisableTiming);
      if (!made) return tl::unexpected(std::move(made.error()));
      *event = *std::move(made);
    }
    return {};
  }

  // ---- parts of an iteration, of one rank or all

  /// @param fused  on as many blocks as the fused kernel has for it
  Expected<void> launch_part(const Slab& slab, StencilPart part, bool fused = false) const {
    const DeviceGuard guard(slab.gpu);
    const std::uint32_t of_fused = part == StencilPart::Unpack ? slab.shape.unpackers : slab.shape.senders;
    return check(
        launch_stencil(slab.main.get(), part, fused ? of_fused : slab.most_blocks, spec_.threads, round_, slab.work),
        "cudaLaunchKernel");
  }
  /// Copies the layers of a rank to both neighbours.
  Expected<void> send(std::size_t rank) const {
    const Slab& slab = slabs_[rank];
    const DeviceGuard guard(slab.gpu);
    for (std::uint32_t p = 0; p < kStencilPeers; ++p)
      if (auto ok = check(cudaMemcpyAsync(message_at(neighbour(rank, p), 1 - p, round_ % kStencilBuffers),
                                          slab.work.written(round_) + slab.work.sent_layer(p) * spec_.face(),
                                          spec_.face() * sizeof(std::uint64_t), cudaMemcpyDefault, slab.sends.get()),
                          "cudaMemcpyAsync");
          !ok)
        return ok;
    return {};
  }
  template <class Call>
  Expected<void> each(const Call& call) const {
    for (std::size_t r = 0; r < slabs_.size(); ++r)
      if (auto ok = call(r); !ok) return ok;
    return {};
  }
  Expected<void> launch_all(StencilPart part, bool fused = false) const {
    return each([&](std::size_t r) { return launch_part(slabs_[r], part, fused); });
  }
  Expected<void> send_all() const {
    return each([&](std::size_t r) { return send(r); });
  }
  Expected<void> wait_all(Stream Slab::*stream) const {
    return each([&](std::size_t r) {
      return check(cudaStreamSynchronize((slabs_[r].*stream).get()), "cudaStreamSynchronize");
    });
  }
  static Expected<void> record(const Event& event, const Stream& stream, int gpu) {
    const DeviceGuard guard(gpu);
    return check(cudaEventRecord(event.get(), stream.get()), "cudaEventRecord");
  }
  static Expected<void> follow(const Stream& stream, const Event& event, int gpu) {
    const DeviceGuard guard(gpu);
    return check(cudaStreamWaitEvent(stream.get(), event.get(), 0), "cudaStreamWaitEvent");
  }
  /// The sending stream of each rank goes on behind what its other stream has.
  Expected<void> sends_follow() const {
    return each([&](std::size_t r) {
      const Slab& slab = slabs_[r];
      return record(slab.packed, slab.main, slab.gpu).and_then([&] {
        return follow(slab.sends, slab.packed, slab.gpu);
      });
    });
  }
  /// The main stream of each rank goes on behind what its neighbours have sent.
  Expected<void> follow_sends() const {
    return each([&](std::size_t r) { return record(slabs_[r].sent, slabs_[r].sends, slabs_[r].gpu); }).and_then([&] {
      return each([&](std::size_t r) {
        const Slab& slab = slabs_[r];
        return follow(slab.main, slabs_[neighbour(r, 0)].sent, slab.gpu).and_then([&] {
          return follow(slab.main, slabs_[neighbour(r, 1)].sent, slab.gpu);
        });
      });
    });
  }

  // ---- runs

  Expected<void> run_by_host(std::uint64_t iterations) {
    for (std::uint64_t i = 0; i < iterations; ++i, ++round_) {
      auto ok = launch_all(StencilPart::Pack)
                    .and_then([&] { return wait_all(&Slab::main); })
                    .and_then([&] { return send_all(); })
                    .and_then([&] { return launch_all(StencilPart::Inner); })
                    .and_then([&] { return wait_all(&Slab::sends); })
                    .and_then([&] { return launch_all(StencilPart::Unpack); })
                    .and_then([&] { return wait_all(&Slab::main); });
      if (!ok) return ok;
    }
    return {};
  }

  /// With two buffers a message needs no answer: a rank sends again when it has unpacked what that neighbour sent one
  /// iteration ago, and the neighbour had unpacked the message before that one when it did.
  /// @param make  makes the calls of a kind
  template <class Make>
  Expected<void> run_by_streams(std::uint64_t iterations, const Make& make) {
    const auto launch = [&](StencilPart part) { return make(kLaunches, [&, part] { return launch_all(part); }); };
    for (std::uint64_t i = 0; i < iterations; ++i, ++round_) {
      auto ok = launch(StencilPart::Pack)
                    .and_then([&] { return make(kPackedCalls, [&] { return sends_follow(); }); })
                    .and_then([&] { return make(kCopyCalls, [&] { return send_all(); }); })
                    .and_then([&] { return launch(StencilPart::Inner); })
                    .and_then([&] { return make(kSentCalls, [&] { return follow_sends(); }); })
                    .and_then([&] { return launch(StencilPart::Unpack); });
      if (!ok) return ok;
    }
    return wait_all(&Slab::main);
  }

  Expected<void> launch_kernels(std::uint64_t iterations) {
    return each([&](std::size_t r) {
      const Slab& slab = slabs_[r];
      FusedMemory memory{kFusedRules,        slab.shape,       fused_round_,
                         iterations,         slab.words,       slab.words + slab.shape.words(),
                         group_.stop_word(), group_.report(r), {}};
      for (std::uint32_t p = 0; p < kStencilPeers; ++p) memory.peers[p] = {slabs_[neighbour(r, p)].words, 1 - p};
      StencilWork work = slab.work;
      work.parity = (round_ - fused_round_) & 1;
      const DeviceGuard guard(slab.gpu);
      std::uint64_t* const tickets = slab.words + slab.shape.position(FusedWord::Tickets, 0, 0);
      return check(cudaMemsetAsync(tickets, 0, sizeof *tickets, slab.main.get()), "cudaMemsetAsync").and_then([&] {
        return check(launch_fused_stencil(slab.main.get(), slab.blocks, spec_.threads, memory, work),
                     "cudaLaunchKernel");
      });
    });
  }

  Expected<void> run_by_kernels(std::uint64_t iterations) {
    if (gave_up_) return machine_error("the fused kernels gave up before; make the stencil anew");
    auto ok = launch_kernels(iterations).and_then([&] { return wait_for_kernels(SteadyClock::now()); });
    if (!ok) {
      gave_up_ = true;
      group_.stop();
      return ok;
    }
    round_ += iterations;
    fused_round_ += iterations;
    return {};
  }

  /// Leaves to running kernels what they use: nothing of it can be freed, and no call may wait for them.
  void abandon() {
    for (Slab& slab : slabs_) {
      static_cast<void>(slab.main.release()), static_cast<void>(slab.sends.release());
      static_cast<void>(slab.memory.release());
    }
  }

  Expected<void> wait_for_kernels(SteadyClock::time_point begin) {
    std::vector<FusedGroup::Kernel> kernels;
    for (const Slab& slab : slabs_) kernels.push_back({slab.gpu, slab.main.get()});
    return group_.wait(kernels, begin, {}).and_then([&]() -> Expected<void> {
      if (!group_.has_given_up()) return {};
      return machine_error(
          fmt::format("the fused kernels are not over within {} and gave up; give fewer iterations or a longer limit",
                      to_string(spec_.limit)));
    });
  }

  // ---- times of the parts

  template <class Call>
  Expected<Duration> median_time(int samples, const Call& call) const;
  template <class Call>
  Expected<Duration> time_on_gpu(Stream Slab::*stream, int repeats, const Call& call);
  Expected<Duration> time_synchronize();
  Expected<void> time_parts(int samples, StencilSteps& steps);
  Expected<void> time_host(int samples, StencilSteps& steps);
  Expected<void> time_kernels(int samples, StencilSteps& steps);

  StencilSpec spec_;
  std::optional<FusedShape> shape_;
  FusedGroup group_;
  std::vector<Slab> slabs_;
  std::uint64_t round_ = 0;        // of the field
  std::uint64_t fused_round_ = 0;  // of the words of the fused kernels
  bool gave_up_ = false;
};

/// @param call  a sample
template <class Call>
Expected<Duration> CudaStencil::median_time(int samples, const Call& call) const {
  std::vector<Duration> times;
  for (int i = -1; i < samples; ++i) {  // the first is left out
    const Expected<Duration> time = call();
    if (!time) return time;
    if (i >= 0) times.push_back(*time);
  }
  return median_of(std::move(times));
}

/// Time of each of several calls on the GPU, of the rank that takes longest. All are enqueued before the first begins.
template <class Call>
Expected<Duration> CudaStencil::time_on_gpu(Stream Slab::*stream, int repeats, const Call& call) {
  constexpr std::uint64_t kHoldNs = 500'000;
  auto ok = each([&](std::size_t r) {
              const Slab& slab = slabs_[r];
              const DeviceGuard guard(slab.gpu);
              launch_spin((slab.*stream).get(), kHoldNs);
              return check(cudaGetLastError(), "cudaLaunchKernel").and_then([&] {
                return record(slab.begin, slab.*stream, slab.gpu);
              });
            })
                .and_then([&]() -> Expected<void> {
                  for (int i = 0; i < repeats; ++i)
                    if (auto called = call(); !called) return called;
                  return {};
                })
                .and_then([&] {
                  return each([&](std::size_t r) { return record(slabs_[r].end, slabs_[r].*stream, slabs_[r].gpu); });
                })
                .and_then([&] { return wait_all(stream); });
  if (!ok) return tl::unexpected(std::move(ok.error()));
  Duration longest{};
  for (const Slab& slab : slabs_) {
    const auto took = elapsed_ns(slab.begin, slab.end);
    if (!took) return tl::unexpected(took.error());
    longest = std::max(longest, Duration{static_cast<std::int64_t>(*took / repeats)});
  }
  return longest;
}

Expected<Duration> CudaStencil::time_synchronize() {
  const auto begin = SteadyClock::now();
  return launch_all(StencilPart::Unpack).and_then([&] { return wait_all(&Slab::main); }).map([&] {
    return since(begin);
  });
}

Expected<void> CudaStencil::time_parts(int samples, StencilSteps& steps) {
  constexpr int kRepeats = 8;
  const auto time = [&](Duration& to, Stream Slab::*stream, const auto& call) {
    return median_time(samples, [&] { return time_on_gpu(stream, kRepeats, call); }).map([&](Duration found) {
      to = found;
    });
  };
  struct Part {
    StencilPart part;
    Duration &alone, &fused;
  };
  for (const auto& [part, alone, fused] :
       {Part{StencilPart::Pack, steps.pack, steps.fused_pack}, Part{StencilPart::Inner, steps.inner, steps.fused_inner},
        Part{StencilPart::Unpack, steps.unpack, steps.fused_unpack}})
    for (const bool as_fused : {false, true})
      if (auto ok = time(as_fused ? fused : alone, &Slab::main, [&] { return launch_all(part, as_fused); }); !ok)
        return ok;
  return time(steps.message, &Slab::sends, [&] { return send_all(); })
      .and_then([&] {
        return time(steps.event, &Slab::main, [&] { return sends_follow().and_then([&] { return follow_sends(); }); });
      })
      .map([&] { steps.event /= 2; });
}

Expected<void> CudaStencil::time_host(int samples, StencilSteps& steps) {
  constexpr int kIterations = 16;
  std::array<std::vector<Duration>, kHostCalls> times;
  for (int i = 0; i < samples; ++i) {
    std::array<Duration, kHostCalls> spent{};
    auto ok = run_by_streams(kIterations, [&](HostCalls kind, const auto& calls) {
      const auto begin = SteadyClock::now();
      return calls().map([&] { spent[kind] += since(begin); });
    });
    if (!ok) return ok;
    for (std::size_t kind = 0; kind < spent.size(); ++kind) times[kind].push_back(spent[kind] / kIterations);
  }
  constexpr int kLaunchesOfAnIteration = 3;
  steps.launch = median_of(times[kLaunches]) / kLaunchesOfAnIteration;
  steps.packed_calls = median_of(times[kPackedCalls]);
  steps.copy_calls = median_of(times[kCopyCalls]);
  steps.sent_calls = median_of(times[kSentCalls]);
  return median_time(samples, [&] { return time_synchronize(); }).map([&](Duration took) {
    steps.synchronize = std::max(took - steps.launch - steps.unpack, Duration{});
  });
}

Expected<void> CudaStencil::time_kernels(int samples, StencilSteps& steps) {
  constexpr std::uint64_t kRounds = 64;
  constexpr int kRepeats = 8;
  StencilSpec spec = spec_;
  spec.dimensions = 2, spec.edge = 1, spec.layers = 2;
  const Slab& slab = slabs_[0];
  CudaStencil least(spec, slab.shape);
  if (auto ok = least.prepare(); !ok) return ok;
  const auto one = least.median_time(samples, [&] { return least.run(ControlMode::Kernel, 1); });
  if (!one) return tl::unexpected(one.error());
  const auto many = least.median_time(samples, [&] { return least.run(ControlMode::Kernel, 1 + kRounds); });
  if (!many) return tl::unexpected(many.error());
  const auto kernel = least.median_time(samples, [&] {
    return least.time_on_gpu(&Slab::main, kRepeats, [&] { return least.launch_all(StencilPart::Unpack); });
  });
  if (!kernel) return tl::unexpected(kernel.error());
  steps.least_kernel = *kernel;
  steps.fused_round = std::max(*many - *one, Duration{}) / kRounds;
  steps.fused_launch = std::max(*one - steps.fused_round, Duration{});
  steps.senders = slab.shape.senders;
  steps.unpackers = slab.shape.unpackers;
  steps.blocks = static_cast<std::uint32_t>(std::min<std::uint64_t>(slab.blocks, slab.shape.tickets()));
  return {};
}

Expected<StencilSteps> CudaStencil::time_steps(int samples) {
  StencilSteps steps;
  return time_parts(samples, steps)
      .and_then([&] { return time_host(samples, steps); })
      .and_then([&] { return time_kernels(samples, steps); })
      .map([&] { return steps; });
}

}  // namespace
}  // namespace cuda

Expected<std::unique_ptr<Stencil>> make_stencil(const StencilSpec& spec) {
  cuda::set_environment();
  if (auto ok = cuda::check_stencil(spec); !ok) return tl::unexpected(std::move(ok.error()));
  auto stencil = std::make_unique<cuda::CudaStencil>(spec);
  if (auto ok = stencil->prepare(); !ok) return tl::unexpected(std::move(ok.error()));
  return stencil;
}

}  // namespace tutti::internal
