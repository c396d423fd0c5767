#include "runtime/cuda/doorbell.hpp"

#include <atomic>

#include "runtime/cuda/conductor.hpp"
#include "runtime/cuda/gpu_clock.hpp"

namespace tutti::internal::cuda {
namespace {

/// Orders in use in turn. Runs start one at a time, and `seen` of an order is read before this many more have started.
constexpr std::size_t kOrders = Conductor::kMostRuns;

}  // namespace

Expected<Doorbell> Doorbell::make(int device, cudaStream_t stream) {
  return PinnedMemory::make(kOrders * sizeof(StartOrder)).map([&](PinnedMemory&& memory) {
    return Doorbell(device, stream, std::move(memory));
  });
}

StartOrder& Doorbell::order(std::uint64_t ring) const {
  return reinterpret_cast<StartOrder*>(board_.data())[ring % kOrders];
}

cudaError_t Doorbell::expect() {
  const DeviceGuard guard(device_);
  launch_doorbell(stream_, &order(expected_++), static_cast<std::uint64_t>((kLead + kMostWrong).count()));
  return cudaGetLastError();
}

std::uint64_t Doorbell::ring(std::uint64_t* signal, std::uint64_t value) {
  StartOrder& next = order(rung_);
  next.signal = signal;
  std::atomic_ref(next.value).store(value, std::memory_order_release);
  return rung_++;
}

std::uint64_t Doorbell::seen(std::uint64_t ring) const {
  return std::atomic_ref(order(ring).seen).load(std::memory_order_acquire);
}

Expected<StartSignal> StartSignal::make(Doorbell& bell, cudaStream_t stream) {
  return make_zeroed_memory(bell.device(), sizeof(std::uint64_t), stream).map([&](DeviceMemory&& signal) {
    return StartSignal(bell, std::move(signal));
  });
}

cudaError_t StartSignal::close() {
  ++run_;
  return bell_->expect();
}

cudaError_t StartSignal::hold(cudaStream_t stream, Duration offset, std::uint64_t* released) const {
  launch_timer_gate(stream, reinterpret_cast<const std::uint64_t*>(signal_.get()), run_ % 2,
                    static_cast<std::uint64_t>(offset.count()), released);
  return cudaGetLastError();
}

/// The last bit distinguishes the signal of this run from that of the run before: the signal is never cleared.
void StartSignal::open(std::uint64_t start) {
  ring_ = bell_->ring(reinterpret_cast<std::uint64_t*>(signal_.get()), (start & ~std::uint64_t{1}) | run_ % 2);
}

}  // namespace tutti::internal::cuda
