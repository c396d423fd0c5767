#include "runtime/cuda/baselines/wait_probe.hpp"

#include <array>
#include <chrono>
#include <utility>
#include <vector>

#include "model/base/expects.hpp"
#include "runtime/cuda/gates/signal.hpp"

namespace tutti::internal::cuda {
namespace {

constexpr Duration kWaitPatience = std::chrono::seconds{2};

/// Copies both ways, of which one or two are under way whenever `go_on` was called a moment ago.
class CopiesBothWays {
 public:
  static constexpr std::size_t kBytes = std::size_t{16} << 20;

  static Expected<std::unique_ptr<CopiesBothWays>> make(int device, cudaStream_t service) {
    auto made = std::make_unique<CopiesBothWays>();
    for (Way& way : made->ways_) {
      auto host = MemoryPool::instance().take_host(kBytes);
      if (!host) return tl::unexpected(std::move(host.error()));
      way.host = *std::move(host);
      auto on_gpu = MemoryPool::instance().take_device(device, kBytes, service);
      if (!on_gpu) return tl::unexpected(std::move(on_gpu.error()));
      way.on_gpu = *std::move(on_gpu);
      auto stream = make_stream(device);
      if (!stream) return tl::unexpected(std::move(stream.error()));
      way.stream = *std::move(stream);
      auto ended = make_event(device, cudaEventDisableTiming);
      if (!ended) return tl::unexpected(std::move(ended.error()));
      way.ended = *std::move(ended);
    }
    return made;
  }
  ~CopiesBothWays() {
    for (const Way& way : ways_)
      if (way.stream) static_cast<void>(cudaStreamSynchronize(way.stream.get()));
  }

  /// Enqueues one more copy where at most one is left.
  Expected<void> go_on() {
    for (std::size_t i = 0; i < ways_.size(); ++i) {
      const Way& way = ways_[i];
      if (answer(cudaEventQuery(way.ended.get())) == cudaErrorNotReady) continue;
      auto ok = check(cudaEventRecord(way.ended.get(), way.stream.get()), "cudaEventRecord").and_then([&] {
        std::byte* const to = i == 0 ? way.on_gpu.data() : way.host.data();
        const std::byte* const from = i == 0 ? way.host.data() : way.on_gpu.data();
        return check(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDefault, way.stream.get()), "cudaMemcpyAsync");
      });
      if (!ok) return ok;
    }
    return {};
  }

 private:
  struct Way {
    PooledMemory host, on_gpu;
    Stream stream;
    Event ended;  ///< the copy before the last one
  };
  std::array<Way, 2> ways_;  // up, down
};

class CudaWaitProbe final : public WaitProbe {
 public:
  CudaWaitProbe(BoundDevices& bound, int device, GateKind gate, SignalBoard board,
                std::unique_ptr<CopiesBothWays> copies)
      : bound_(bound), device_(device), gate_(gate), board_(std::move(board)), copies_(std::move(copies)) {
    LanePool& pool = bound.lanes.at(device);
    while (pool.free() > 0) streams_.push_back({pool.lend(), board_.take<Count>(), board_.take<Count>()});
  }
  CudaWaitProbe(const CudaWaitProbe&) = delete;  // it has the streams
  CudaWaitProbe& operator=(const CudaWaitProbe&) = delete;
  ~CudaWaitProbe() override {
    for (const Waiting& one : streams_) bound_.lanes.at(device_).take_back(one.stream);
  }

  [[nodiscard]] int most_streams() const override { return static_cast<int>(streams_.size()); }

  Expected<Duration> react(Duration sleep, int streams) override {
    TUTTI_EXPECTS(streams > 0 && streams <= most_streams() && sleep >= Duration{0}, "the probe has so many streams");
    const DeviceGuard guard(device_);
    const PoolRun waits;
    ++run_;
    const std::span waiting = std::span(streams_).first(static_cast<std::size_t>(streams));
    auto took = enqueue(waiting).and_then([&] { return time_first(sleep, waiting.front()); });
    for (const Waiting& one : waiting) one.word.set(run_);
    for (const Waiting& one : waiting)
      if (took && !await(one)) took = machine_error("a stream does not see a word that it waits for");
    if (!took) bound_.lose(device_);
    return took;
  }

 private:
  struct Waiting {
    cudaStream_t stream;
    HostSignal<Count> word;  // the host sets it
    HostSignal<Count> seen;  // the stream does
  };

  Expected<void> enqueue(std::span<const Waiting> waiting) {
    if (copies_)
      if (auto ok = copies_->go_on(); !ok) return ok;
    for (const Waiting& one : waiting) {
      if (auto ok = hold_stream(bound_.driver, gate_, one.stream, one.word, run_); !ok) return ok;
      if (auto ok = set_in_stream(bound_.driver, one.stream, one.seen, run_); !ok) return ok;
    }
    return {};
  }

  Expected<Duration> time_first(Duration sleep, const Waiting& first) const {
    const Duration enqueued = bound_.clock.now();
    while (bound_.clock.now() - enqueued < sleep) continue;
    const Duration stored = bound_.clock.now();
    first.word.set(run_);
    if (!await(first)) return machine_error("a stream does not see a word that it waits for");
    return bound_.clock.now() - stored;
  }

  [[nodiscard]] bool await(const Waiting& one) const {
    const Duration limit = bound_.clock.now() + kWaitPatience;
    while (one.seen.value() != run_)
      if (bound_.clock.now() > limit) return false;
    return true;
  }

  BoundDevices& bound_;
  int device_;
  GateKind gate_;
  SignalBoard board_;
  std::unique_ptr<CopiesBothWays> copies_;
  std::vector<Waiting> streams_;
  Count run_ = 0;
};

}  // namespace

Expected<std::unique_ptr<WaitProbe>> make_wait_probe(BoundDevices& bound, VertexId gpu, GateKind gate,
                                                     bool beside_copies) {
  TUTTI_EXPECTS(gate == GateKind::MemoryWait || gate == GateKind::PollingKernel, "these gates wait for a word");
  const int device = bound.device_of(gpu);
  const LanePool& pool = bound.lanes.at(device);
  if (pool.free() == 0) return machine_error("no stream of the GPU is free");
  auto board = make_signal_board(2 * pool.free());
  if (!board) return tl::unexpected(std::move(board.error()));
  std::unique_ptr<CopiesBothWays> copies;
  if (beside_copies) {
    auto made = CopiesBothWays::make(device, pool.service());
    if (!made) return tl::unexpected(std::move(made.error()));
    copies = *std::move(made);
  }
  return std::make_unique<CudaWaitProbe>(bound, device, gate, *std::move(board), std::move(copies));
}

}  // namespace tutti::internal::cuda
