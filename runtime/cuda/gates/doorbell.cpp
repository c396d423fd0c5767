#include "runtime/cuda/gates/doorbell.hpp"

#include "runtime/cuda/gates/conductor.hpp"
#include "runtime/cuda/gates/gpu_clock.hpp"

namespace tutti::internal::cuda {
namespace {

/// Orders in use in turn. Runs start one at a time, and `seen` of an order is read before this many more have started.
constexpr std::size_t kOrders = Conductor::kMostRuns;

}  // namespace

Expected<Doorbell> Doorbell::make(int device, cudaStream_t stream) {
  return make_signal_board(kOrders).map(
      [&](SignalBoard&& board) { return Doorbell(device, stream, std::move(board)); });
}

Doorbell::Doorbell(int device, cudaStream_t stream, SignalBoard board)
    : device_(device), stream_(stream), board_(std::move(board)), orders_(board_.take_lines<StartOrder>(kOrders)) {}

StartOrder& Doorbell::order(std::uint64_t ring) const { return orders_[ring % kOrders]; }

cudaError_t Doorbell::expect() {
  const DeviceGuard guard(device_);
  launch_doorbell(stream_, &order(expected_++), static_cast<std::uint64_t>((kLead + kMostWrong).count()));
  return cudaGetLastError();
}

std::uint64_t Doorbell::ring(Signal<TimerValue> target, TimerValue value) {
  StartOrder& next = order(rung_);
  next.target = target.on_gpu();
  HostSignal<TimerValue>(&next.seen).set(0);  // nothing orders the kernel's store before the end of the run
  HostSignal<TimerValue>(&next.value).set(value);
  return rung_++;
}

TimerValue Doorbell::seen(std::uint64_t ring) const { return HostSignal<TimerValue>(&order(ring).seen).value(); }

Expected<StartSignal> StartSignal::make(Doorbell& bell, cudaStream_t stream) {
  return make_device_signal_board(bell.device(), 1, stream).map([&](DeviceSignalBoard&& board) {
    return StartSignal(bell, std::move(board));
  });
}

cudaError_t StartSignal::close() {
  ++run_;
  linked_ = false;
  return bell_->expect();
}

void StartSignal::close_linked() {
  ++run_;
  linked_ = true;
}

cudaError_t StartSignal::start_and_hold(cudaStream_t stream, Duration offset, HostSignal<TimerValue> began,
                                        HostSignal<TimerValue> released) const {
  launch_linked_gate(stream, start_.on_gpu(), run_ % 2, began.on_gpu(), static_cast<std::uint64_t>(offset.count()),
                     released.on_gpu());
  return cudaGetLastError();
}

cudaError_t StartSignal::hold(cudaStream_t stream, Duration offset, HostSignal<TimerValue> released) const {
  launch_timer_gate(stream, start_.on_gpu(), run_ % 2, static_cast<std::uint64_t>(offset.count()), released.on_gpu());
  return cudaGetLastError();
}

/// The last bit distinguishes the signal of this run from that of the run before: the signal is never cleared. It is
/// rounded up: nothing starts too soon.
void StartSignal::open(TimerValue start, bool ahead) {
  ring_ = bell_->ring(start_, ((start + 3) & ~TimerValue{3}) | (ahead ? kStartsAhead : 0) | run_ % 2);
}

}  // namespace tutti::internal::cuda
