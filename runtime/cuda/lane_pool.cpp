#include "runtime/cuda/lane_pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "model/base/expects.hpp"
#include "runtime/cuda/kernels.hpp"
#include "runtime/cuda/pinned_memory.hpp"

namespace tutti::internal::cuda {
namespace {

/// Time limit for a lane in a trial; a free one ends in some 50 us.
constexpr auto kLanePatience = std::chrono::milliseconds{20};

/// Trial of all lanes of a device at once, each behind its own gate: which ones end while the others' gates are closed.
class Trial {
 public:
  Trial(const Driver& driver, GateKind gate, PinnedMemory signals, DeviceMemory device)
      : driver_(driver),
        gate_(gate == GateKind::MemoryWait ? gate : GateKind::PollingKernel),
        signals_(std::move(signals)),
        device_(std::move(device)) {}

  static Expected<Trial> make(int device, const Driver& driver, GateKind gate) {
    auto signals = PinnedMemory::make(3 * LanePool::kMostLanes * kCacheLine);
    if (!signals) return tl::unexpected(std::move(signals.error()));
    auto memory = make_device_memory(device, LanePool::kMostLanes * kCacheLine);
    if (!memory) return tl::unexpected(std::move(memory.error()));
    return Trial(driver, gate, *std::move(signals), *std::move(memory));
  }

  /// Enqueues everything that a batch does: copies both ways, a kernel, a signal at the end.
  Expected<void> enqueue(std::size_t lane, cudaStream_t stream, std::uint32_t round) const {
    std::byte* host = at(lane, 2);
    std::byte* device = device_.get() + lane * kCacheLine;
    if (auto ok = hold_stream(driver_, gate_, stream, &signal(lane, 0), round); !ok) return ok;
    for (const auto& [to, from] : {std::pair(device, host), {host, device}})
      if (auto ok = check(cudaMemcpyAsync(to, from, kCacheLine, cudaMemcpyDefault, stream), "cudaMemcpyAsync"); !ok)
        return ok;
    launch_poll(stream, &signal(lane, 0), round);
    const auto done = reinterpret_cast<CUdeviceptr>(at(lane, 1));
    return check(driver_.write_value(stream, done, round, CU_STREAM_WRITE_VALUE_DEFAULT), "cuStreamWriteValue32");
  }

  void open(std::size_t lane, std::uint32_t round) const {
    std::atomic_ref(signal(lane, 0)).store(round, std::memory_order_release);
  }

  [[nodiscard]] bool comes_through(std::size_t lane, std::uint32_t round) const {
    const auto end = std::chrono::steady_clock::now() + kLanePatience;
    while (std::atomic_ref(signal(lane, 1)).load(std::memory_order_acquire) != round)
      if (std::chrono::steady_clock::now() > end) return false;
    return true;
  }

 private:
  [[nodiscard]] std::byte* at(std::size_t lane, std::size_t row) const {
    return signals_.data() + (row * LanePool::kMostLanes + lane) * kCacheLine;
  }
  [[nodiscard]] std::uint32_t& signal(std::size_t lane, std::size_t row) const {
    return *reinterpret_cast<std::uint32_t*>(at(lane, row));
  }

  Driver driver_;
  GateKind gate_;
  PinnedMemory signals_;
  DeviceMemory device_;
};

/// Keeps the lanes that do not wait for each other's gates. The first round, with open gates, takes the driver's
/// one-time work. The second round opens gates from the last lane to the first: a lane that is held up is held up by
/// one before it.
Expected<std::vector<Stream>> keep_free_ones(std::vector<Stream> lanes, const Trial& trial) {
  std::vector<bool> free(lanes.size(), true);
  for (const std::uint32_t round : {1U, 2U}) {
    const bool open_first = round == 1;
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      if (open_first) trial.open(i, round);
      if (auto ok = trial.enqueue(i, lanes[i].get(), round); !ok) return tl::unexpected(std::move(ok.error()));
      if (!open_first) continue;
      if (auto ok = check(cudaStreamSynchronize(lanes[i].get()), "cudaStreamSynchronize"); !ok)
        return tl::unexpected(std::move(ok.error()));
    }
    for (std::size_t i = lanes.size(); !open_first && i-- > 0;) {
      trial.open(i, round);
      free[i] = trial.comes_through(i, round);
    }
  }
  for (const Stream& lane : lanes)
    if (auto ok = check(cudaStreamSynchronize(lane.get()), "cudaStreamSynchronize"); !ok)
      return tl::unexpected(std::move(ok.error()));
  std::vector<Stream> kept;
  for (std::size_t i = 0; i < lanes.size(); ++i)
    if (free[i]) kept.push_back(std::move(lanes[i]));
  return kept;
}

}  // namespace

Expected<void> hold_stream(const Driver& driver, GateKind kind, cudaStream_t stream, const std::uint32_t* signal,
                           std::uint32_t value) {
  if (kind == GateKind::MemoryWait)
    return check(driver.wait_value(stream, reinterpret_cast<CUdeviceptr>(signal), value, CU_STREAM_WAIT_VALUE_GEQ),
                 "cuStreamWaitValue32");
  if (kind == GateKind::HostTimed) return {};
  launch_poll(stream, signal, value);
  return check(cudaGetLastError(), "launch_poll");
}

Expected<LanePool> LanePool::make(int device, const Driver& driver, GateKind gate) {
  const DeviceGuard guard(device);
  std::vector<Stream> lanes;
  while (lanes.size() < kMostLanes) {
    auto lane = make_stream(device);
    if (!lane) return tl::unexpected(std::move(lane.error()));
    lanes.push_back(*std::move(lane));
  }
  return Trial::make(device, driver, gate)
      .and_then([&](const Trial& trial) { return keep_free_ones(std::move(lanes), trial); })
      .map([](std::vector<Stream>&& kept) { return LanePool(std::move(kept)); });
}

/// Two of seven are shared: 8 of 28.
LanePool::LanePool(std::vector<Stream> lanes)
    : lanes_(std::move(lanes)), shared_(std::max<std::size_t>(lanes_.size() * 2 / 7, 1)) {
  free_.reserve(lanes_.size());
  for (std::size_t i = shared_; i < lanes_.size(); ++i) free_.push_back(lanes_[i].get());
}

cudaStream_t LanePool::lend() {
  TUTTI_EXPECTS(!free_.empty(), "a lane is free");
  const cudaStream_t stream = free_.back();
  free_.pop_back();
  return stream;
}

}  // namespace tutti::internal::cuda
