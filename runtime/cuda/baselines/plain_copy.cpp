#include "runtime/cuda/baselines/plain_copy.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "runtime/cuda/base/kernels.hpp"
#include "runtime/cuda/gates/signal.hpp"
#include "runtime/cuda/lanes/bound_devices.hpp"

namespace tutti::internal::cuda {
namespace {

Expected<int> device_of(const BufferView& from, const BufferView& to) {
  for (const BufferView* buffer : {&to, &from}) {
    cudaPointerAttributes attributes{};
    if (auto ok = check(cudaPointerGetAttributes(&attributes, buffer->data), "cudaPointerGetAttributes"); !ok)
      return tl::unexpected(std::move(ok.error()));
    if (attributes.type == cudaMemoryTypeDevice) return attributes.device;
  }
  return machine_error("neither end of the copy is on a GPU");
}

/// Operations that go into a queue ahead of a closed gate.
constexpr std::size_t kRoom = 900;
constexpr Duration kRest = std::chrono::microseconds{100};
constexpr Duration kCopyPatience = std::chrono::seconds{2};

class CudaPlainQueue final : public PlainQueue {
 public:
  static Expected<std::unique_ptr<CudaPlainQueue>> make(BoundDevices& bound, std::vector<PlainStep> steps) {
    const auto device = device_of(steps.front().from, steps.front().to);
    if (!device) return tl::unexpected(device.error());
    if (!bound.lanes.contains(*device) || bound.lanes.at(*device).free() == 0)
      return machine_error(fmt::format("no stream of GPU {} is free", *device));
    std::unique_ptr<CudaPlainQueue> made(new CudaPlainQueue(bound, *device, std::move(steps)));
    auto board = make_signal_board(3);
    if (!board) return tl::unexpected(std::move(board.error()));
    made->board_ = *std::move(board);
    made->gate_ = made->board_.take<Count>();
    made->done_ = made->board_.take<Count>();
    made->released_ = made->board_.take<TimerValue>();
    for (Event* event : {&made->start_, &made->end_}) {
      auto one = make_event(*device, cudaEventDefault);
      if (!one) return tl::unexpected(std::move(one.error()));
      *event = *std::move(one);
    }
    if (bound.timed_by_gpus()) {
      auto signal = StartSignal::make(bound.bells.at(*device), bound.lanes.at(*device).service());
      if (!signal) return tl::unexpected(std::move(signal.error()));
      made->start_signal_ = *std::move(signal);
    }
    return made;
  }
  CudaPlainQueue(const CudaPlainQueue&) = delete;  // it has a stream
  CudaPlainQueue& operator=(const CudaPlainQueue&) = delete;
  ~CudaPlainQueue() override { devices_->lanes.at(device_).take_back(stream_); }

  Expected<CopyTimes> run() override {
    CopyTimes times;
    for (const bool noted : {true, false})
      if (auto ok = run(noted, times); !ok) {
        give_up();
        return tl::unexpected(std::move(ok.error()));
      }
    return times;
  }

 private:
  CudaPlainQueue(BoundDevices& bound, int device, std::vector<PlainStep> steps)
      : devices_(&bound), device_(device), steps_(std::move(steps)), stream_(bound.lanes.at(device).lend()) {
    for (const PlainStep& step : steps_) {
      copies_.add(step.to.data, step.from.data, static_cast<std::size_t>(step.to.size.count));
      kernels_ |= step.kernel.count() > 0;
    }
    ahead_ = bound.timed_by_host() ? 0 : std::min(steps_.size(), kRoom / (kernels_ ? 2 : 1));
  }

  [[nodiscard]] GpuClock* timer() const { return devices_->timed_by_gpus() ? &devices_->clocks.at(device_) : nullptr; }

  /// Copies may be under way, or wait for the gate: what they use must not be given out again.
  void give_up() {
    gate_.set(run_);
    devices_->lose(device_);
  }

  Expected<void> run(bool noted, CopyTimes& times) {
    const DeviceGuard guard(device_);
    const PoolRun gated;
    const bool events = noted && timer() == nullptr;
    ++run_;
    if (timer() != nullptr) timer()->refresh();
    if (auto ok = hold(); !ok) return ok;
    if (events)
      if (auto ok = check(cudaEventRecord(start_.get(), stream_), "cudaEventRecord"); !ok) return ok;
    if (auto ok = enqueue(0, ahead_, events); !ok) return ok;
    devices_->clock.wait_until(devices_->clock.now() + kRest);
    const TimerLine line = timer() == nullptr ? TimerLine{} : timer()->line();
    const Duration begun = devices_->clock.now();
    gate_.set(run_);
    if (start_signal_) start_signal_->open(static_cast<TimerValue>(line.timer_at(begun + kLead)));
    if (auto ok = enqueue(ahead_, steps_.size(), events); !ok) return ok;
    Duration now = begun;
    while (done_.value() != run_ && now - begun < kCopyPatience) now = devices_->clock.now();
    if (now - begun >= kCopyPatience) return machine_error("copies that were enqueued by hand do not end");
    now = devices_->clock.now();
    if (!noted) {
      times.on_the_host = now - begun;
    } else if (events) {
      if (auto ok = check(cudaEventSynchronize(end_.get()), "cudaEventSynchronize"); !ok) return ok;
      const auto taken = elapsed_ns(start_, end_);
      if (!taken) return tl::unexpected(taken.error());
      times.on_the_gpu = Duration{std::llround(*taken)};
    } else {
      times.on_the_gpu = now - Duration{std::llround(line.host_at(static_cast<std::int64_t>(released_.value())))};
      if (start_signal_->seen() != 0) timer()->add_seen(begun, start_signal_->seen());
    }
    return {};
  }

  Expected<void> hold() {
    if (!start_signal_) return hold_stream(devices_->driver, devices_->gate, stream_, gate_, run_);
    return check(start_signal_->close(), "launch_doorbell").and_then([&] {
      return check(start_signal_->hold(stream_, Duration{0}, released_), "launch_timer_gate");
    });
  }

  /// Some of the steps; behind the last one the end.
  Expected<void> enqueue(std::size_t first, std::size_t end, bool events) {
    if (!kernels_) {
      if (auto ok = check(copies_.enqueue(stream_, first, end - first), "cudaMemcpyBatchAsync"); !ok) return ok;
    }
    for (std::size_t i = first; i < end && kernels_; ++i) {
      if (auto ok = check(copies_.enqueue_each(stream_, i, 1), "cudaMemcpyAsync"); !ok) return ok;
      if (steps_[i].kernel.count() > 0) launch_spin(stream_, static_cast<std::uint64_t>(steps_[i].kernel.count()));
    }
    if (first == end || end < steps_.size()) return {};
    // In the order of our own marks.
    if (auto ok = set_in_stream(devices_->driver, stream_, done_, run_); !ok || !events) return ok;
    return check(cudaEventRecord(end_.get(), stream_), "cudaEventRecord");
  }

  BoundDevices* devices_;
  int device_;
  std::vector<PlainStep> steps_;
  cudaStream_t stream_;
  Copies copies_;
  bool kernels_ = false;
  std::size_t ahead_ = 0;  // steps behind the closed gate
  SignalBoard board_;
  HostSignal<Count> gate_;                   // set by the host
  HostSignal<Count> done_;                   // set by the stream
  HostSignal<TimerValue> released_;          // set by the gate where it waits for the GPU's timer
  std::optional<StartSignal> start_signal_;  // where gates wait for the GPU's timer
  Event start_, end_;
  Count run_ = 0;
};

}  // namespace

Expected<CopyTimes> time_plain_copy(const BufferView& from, const BufferView& to) {
  const auto device = device_of(from, to);
  if (!device) return tl::unexpected(device.error());
  const DeviceGuard guard(*device);
  const auto stream = make_stream(*device);
  const auto start = make_event(*device, cudaEventDefault);
  const auto end = make_event(*device, cudaEventDefault);
  for (const auto* made : {&start, &end})
    if (!*made) return tl::unexpected(made->error());
  if (!stream) return tl::unexpected(stream.error());
  const auto copy = [&] {
    const auto size = static_cast<std::size_t>(to.size.count);
    return check(cudaMemcpyAsync(to.data, from.data, size, cudaMemcpyDefault, stream->get()), "cudaMemcpyAsync");
  };
  const auto record = [&](const Event& event) {
    return check(cudaEventRecord(event.get(), stream->get()), "cudaEventRecord");
  };
  const auto synchronize = [&] { return check(cudaStreamSynchronize(stream->get()), "cudaStreamSynchronize"); };
  if (auto ok = record(*start).and_then(copy).and_then([&] { return record(*end); }).and_then(synchronize); !ok)
    return tl::unexpected(std::move(ok.error()));
  const auto on_the_gpu = elapsed_ns(*start, *end);
  if (!on_the_gpu) return tl::unexpected(on_the_gpu.error());
  const auto called = std::chrono::steady_clock::now();
  if (auto ok = copy().and_then(synchronize); !ok) return tl::unexpected(std::move(ok.error()));
  return CopyTimes{Duration{static_cast<std::int64_t>(std::llround(*on_the_gpu))},
                   std::chrono::steady_clock::now() - called};
}

Expected<std::unique_ptr<PlainQueue>> make_plain_queue(BoundDevices& bound, std::vector<PlainStep> steps) {
  if (steps.empty()) return invalid_input("a plain queue has a step");
  auto made = CudaPlainQueue::make(bound, std::move(steps));
  if (!made) return tl::unexpected(std::move(made.error()));
  return *std::move(made);
}

}  // namespace tutti::internal::cuda
