#include "runtime/cuda/lanes/lane_pool.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <iterator>

#include <fmt/format.h>

#include "model/base/expects.hpp"
#include "runtime/cuda/base/tool_ranges.hpp"
#include "runtime/cuda/gates/signal.hpp"
#include "runtime/cuda/lanes/graph_check.hpp"

namespace tutti::internal::cuda {
namespace {

/// The lanes and the stream of service.
constexpr std::size_t kStreams = LanePool::kMostLanes + 1;
/// Time limit for a lane in a trial; a free one ends in some 50 us.
constexpr auto kLanePatience = std::chrono::milliseconds{20};

/// Trial of streams of a device at once, each behind its own gate: which ones end while the others' gates are closed.
class Trial {
 public:
  static Expected<Trial> make(int device, const Driver& driver, GateKind gate, std::span<const cudaStream_t> streams) {
    auto board = make_signal_board(2 * streams.size());
    if (!board) return tl::unexpected(std::move(board.error()));
    auto host = MemoryPool::instance().take_host(streams.size() * kData);
    if (!host) return tl::unexpected(std::move(host.error()));
    auto memory = MemoryPool::instance().take_device(device, streams.size() * kData, streams.front());
    if (!memory) return tl::unexpected(std::move(memory.error()));
    return Trial(driver, gate, streams, *std::move(board), *std::move(host), *std::move(memory));
  }

  /// The first round, with open gates, takes the driver's one-time work. The second round opens gates from the last
  /// stream to the first: one that is held up is held up by one before it.
  Expected<std::vector<bool>> run() const {
    std::vector<bool> free(streams_.size(), true);
    for (const Count round : {1U, 2U}) {
      const bool open_first = round == 1;
      for (std::size_t i = 0; i < streams_.size(); ++i) {
        if (open_first) open(i, round);
        if (auto ok = enqueue(i, round); !ok) return tl::unexpected(std::move(ok.error()));
        if (!open_first) continue;
        if (auto ok = check(cudaStreamSynchronize(streams_[i]), "cudaStreamSynchronize"); !ok)
          return tl::unexpected(std::move(ok.error()));
      }
      for (std::size_t i = streams_.size(); !open_first && i-- > 0;) {
        open(i, round);
        free[i] = comes_through(i, round);
      }
    }
    for (const cudaStream_t stream : streams_)
      if (auto ok = check(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); !ok)
        return tl::unexpected(std::move(ok.error()));
    return free;
  }

 private:
  /// Enqueues everything that a batch does: copies both ways, a kernel, a signal at the end.
  Expected<void> enqueue(std::size_t lane, Count round) const {
    const cudaStream_t stream = streams_[lane];
    std::byte* host = host_.data() + lane * kData;
    std::byte* device = device_.data() + lane * kData;
    if (auto ok = hold_stream(driver_, gate_, stream, signals_[lane].gate, round); !ok) return ok;
    for (const auto& [to, from] : {std::pair(device, host), {host, device}})
      if (auto ok = check(cudaMemcpyAsync(to, from, kData, cudaMemcpyDefault, stream), "cudaMemcpyAsync"); !ok)
        return ok;
    if (auto ok = hold_by_kernel(stream, signals_[lane].gate, round); !ok) return ok;
    return set_in_stream(driver_, stream, signals_[lane].done, round);
  }

  void open(std::size_t lane, Count round) const { signals_[lane].gate.set(round); }

  [[nodiscard]] bool comes_through(std::size_t lane, Count round) const {
    const auto end = std::chrono::steady_clock::now() + kLanePatience;
    while (signals_[lane].done.value() != round)
      if (std::chrono::steady_clock::now() > end) return false;
    return true;
  }

  static constexpr std::size_t kData = kCacheLine;  // bytes that a lane copies
  struct LaneSignals {
    HostSignal<Count> gate;  // set by the host
    HostSignal<Count> done;  // set by the lane
  };

  Trial(const Driver& driver, GateKind gate, std::span<const cudaStream_t> streams, SignalBoard board,
        PooledMemory host, PooledMemory device)
      : driver_(driver),
        gate_(gate == GateKind::MemoryWait ? gate : GateKind::PollingKernel),
        streams_(streams),
        board_(std::move(board)),
        host_(std::move(host)),
        device_(std::move(device)) {
    for (std::size_t i = 0; i < streams.size(); ++i) signals_.push_back({board_.take<Count>(), board_.take<Count>()});
  }

  Driver driver_;
  GateKind gate_;
  std::span<const cudaStream_t> streams_;
  SignalBoard board_;
  std::vector<LaneSignals> signals_;  // [streams]
  PooledMemory host_, device_;
};

Expected<std::vector<bool>> try_all(int device, const Driver& driver, GateKind gate,
                                    std::span<const cudaStream_t> streams) {
  return Trial::make(device, driver, gate, streams).and_then([](const Trial& trial) { return trial.run(); });
}

/// Keeps the lanes that do not wait for each other's gates.
Expected<std::vector<Stream>> keep_free_ones(int device, const Driver& driver, GateKind gate,
                                             std::vector<Stream> lanes) {
  std::vector<cudaStream_t> streams;
  for (const Stream& lane : lanes) streams.push_back(lane.get());
  return try_all(device, driver, gate, streams).map([&](const std::vector<bool>& free) {
    std::vector<Stream> kept;
    for (std::size_t i = 0; i < lanes.size(); ++i)
      if (free[i]) kept.push_back(std::move(lanes[i]));
    return kept;
  });
}

}  // namespace

Expected<LanePool> LanePool::make(int device, const Driver& driver, std::optional<GateKind> gate,
                                  const GpuPartition* part) {
  const DeviceGuard guard(device);
  std::vector<Stream> lanes;
  while (lanes.size() < kStreams) {
    auto lane = part != nullptr ? part->make_stream(GpuPart::Kernels) : make_stream(device);
    if (!lane) return tl::unexpected(std::move(lane.error()));
    lanes.push_back(*std::move(lane));
  }
  if (!gate) return LanePool(std::move(lanes));
  return keep_free_ones(device, driver, *gate, std::move(lanes))
      .and_then([&](std::vector<Stream>&& kept) -> Expected<LanePool> {
        if (kept.size() < 2)
          return machine_error(fmt::format(
              "all streams of GPU {} wait for each other; leave CUDA_DEVICE_MAX_CONNECTIONS to this program, or set it "
              "to 32",
              device));
        for (std::size_t i = 0; i < kept.size(); ++i)
          name_for_tools(kept[i].get(), i == 0 ? fmt::format("tutti gpu {} service", device)
                                               : fmt::format("tutti gpu {} lane {}", device, i - 1));
        return LanePool(std::move(kept));
      });
}

Expected<std::vector<bool>> independent(int device, const Driver& driver, std::span<const cudaStream_t> streams) {
  const DeviceGuard guard(device);
  return try_all(device, driver, GateKind::PollingKernel, streams);
}

namespace {

/// Calls that enqueue, behind a gate that is closed for a second at most.
/// @return whether they came back before it opened
Expected<bool> return_behind_gate(int device, cudaStream_t stream, HostSignal<Count> gate, Count run,
                                  const std::function<Expected<void>()>& enqueue) {
  constexpr auto kPatience = std::chrono::seconds{1};
  auto called = std::async(std::launch::async, [&] {
    const DeviceGuard guard(device);
    return hold_by_kernel(stream, gate, run).and_then(enqueue);
  });
  const bool returns = called.wait_for(kPatience) == std::future_status::ready;
  gate.set(run);
  return called.get().and_then([&] { return check(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); }).map([&] {
    return returns;
  });
}

/// A graph of more kernels than a queue takes one by one, none of which waits.
Expected<ExecutableGraph> make_long_graph(cudaStream_t stream, HostSignal<Count> open) {
  constexpr int kKernels = 1100;
  if (auto ok = check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture"); !ok)
    return tl::unexpected(std::move(ok.error()));
  Expected<void> launched;
  for (int i = 0; i < kKernels && launched; ++i) launched = hold_by_kernel(stream, open, 0);
  cudaGraph_t recorded = nullptr;
  auto ended = check(cudaStreamEndCapture(stream, &recorded), "cudaStreamEndCapture");
  const Graph graph(recorded);
  return launched.and_then([&] { return ended; }).and_then([&] { return load_graph(graph.get(), stream); });
}

}  // namespace

Expected<bool> launches_return(int device) {
  const DeviceGuard guard(device);
  auto board = make_signal_board(1);
  if (!board) return tl::unexpected(std::move(board.error()));
  const HostSignal<Count> gate = board->take<Count>();
  const auto stream = make_stream(device);
  if (!stream) return tl::unexpected(stream.error());
  const auto one = return_behind_gate(device, stream->get(), gate, 1, [] { return Expected<void>{}; });
  if (!one || !*one) return one;
  return make_long_graph(stream->get(), gate).and_then([&](const ExecutableGraph& graph) {
    return return_behind_gate(device, stream->get(), gate, 2,
                              [&] { return check(cudaGraphLaunch(graph.get(), stream->get()), "cudaGraphLaunch"); });
  });
}

/// The first one is that of service. Two of seven of the others are shared: 8 of 28.
LanePool::LanePool(std::vector<Stream> free)
    : service_(std::move(free.front())),
      lanes_(std::make_move_iterator(free.begin() + 1), std::make_move_iterator(free.end())),
      shared_(std::max<std::size_t>(lanes_.size() * 2 / 7, 1)) {
  free_.reserve(lanes_.size());
  for (std::size_t i = 0; i < lanes_.size(); ++i) (i < shared_ ? free_shared_ : free_).push_back(lanes_[i].get());
}

cudaStream_t LanePool::lend() {
  TUTTI_EXPECTS(!free_.empty(), "a lane is free");
  const cudaStream_t stream = free_.back();
  free_.pop_back();
  return stream;
}

cudaStream_t LanePool::lend_alone() {
  if (!free_.empty()) return lend();
  TUTTI_EXPECTS(!free_shared_.empty(), "a lane is free");
  const cudaStream_t stream = free_shared_.back();
  free_shared_.pop_back();
  return stream;
}

void LanePool::take_back_alone(cudaStream_t stream) {
  const auto end = lanes_.begin() + static_cast<std::ptrdiff_t>(shared_);
  const bool is_shared =
      std::find_if(lanes_.begin(), end, [&](const Stream& lane) { return lane.get() == stream; }) != end;
  (is_shared ? free_shared_ : free_).push_back(stream);
}

}  // namespace tutti::internal::cuda
