#include "model/control/time_models.hpp"

#include <algorithm>

#include "model/base/expects.hpp"
#include "model/base/units.hpp"

namespace tutti::internal {
namespace {

/// The waits of one host-driven iteration.
class PlayedIteration {
 public:
  explicit PlayedIteration(const ExchangeSpec& spec) : spec_(spec) {}

  /// The sum of all TH_sync of an iteration. It starts with an idle GPU, since the one before ended with a wait.
  double waits_ns() {
    for (const SendTaskSpec& task : spec_.sends)
      for (int i = 0; i < task.times; ++i) {
        launch(task.launch, task.run);
        synchronize();
        host_ += as_ns(task.send.host);
      }
    for (const InnerTaskSpec& task : spec_.inner)
      for (int i = 0; i < task.times; ++i) launch(task.launch, task.run);
    for (const ReceiveTaskSpec& task : spec_.receives)
      for (int i = 0; i < task.times; ++i) {
        host_ += as_ns(task.wait.host);
        synchronize();
        launch(task.launch, task.run);
      }
    synchronize();
    return waits_;
  }

 private:
  void launch(Duration cost, const StepTime& run) {
    host_ += as_ns(cost);
    gpu_ = std::max(gpu_, host_) + as_ns(run.host);
  }
  void synchronize() {
    const double before = host_;
    host_ = std::max(host_, gpu_) + as_ns(spec_.synchronize_call.value_or(Duration{0}));
    waits_ += host_ - before;
  }

  const ExchangeSpec& spec_;
  double host_ = 0;  // now
  double gpu_ = 0;   // free again
  double waits_ = 0;
};

double iterations_of(const ExchangeSpec& spec) { return static_cast<double>(spec.iterations); }

}  // namespace

ExchangeSums sums_of(const ExchangeSpec& spec, ControlMode mode) {
  ExchangeSums sums;
  const auto add = [&](const auto& task, int& count) {
    count += task.times;
    sums.launch_ns += task.times * as_ns(task.launch);
    sums.run_ns += task.times * as_ns(task.run.under(mode));
  };
  const auto add_message = [&](const auto& task, Duration message) {
    sums.enqueue_ns += task.times * as_ns(task.enqueue);
    sums.message_ns += task.times * as_ns(message);
  };
  for (const InnerTaskSpec& task : spec.inner) add(task, sums.inner);
  for (const SendTaskSpec& task : spec.sends) {
    add(task, sums.sends);
    add_message(task, task.send.under(mode));
  }
  for (const ReceiveTaskSpec& task : spec.receives) {
    add(task, sums.receives);
    add_message(task, task.wait.under(mode));
  }
  return sums;
}

HostDrivenTime host_driven_time(const ExchangeSpec& spec) {
  const ExchangeSums sums = sums_of(spec, ControlMode::Host);
  const double waits = sums.sends + sums.receives + 1.0;  // X + Z + 1 in an iteration
  const double r = iterations_of(spec);
  HostDrivenTime host;
  const double waited_ns =
      spec.synchronization ? waits * as_ns(*spec.synchronization) : PlayedIteration(spec).waits_ns();
  host.synchronization_ns = waited_ns / waits;
  host.time.cpu_ns = r * (sums.launch_ns + sums.message_ns + waited_ns);  // [AGO17] (1)
  const double run_ns = r * sums.run_ns;
  host.idle_ns = spec.idle ? r * as_ns(*spec.idle) : std::max(0.0, host.time.cpu_ns - run_ns);
  host.time.gpu_ns = spec.idle ? run_ns + host.idle_ns : std::max(host.time.cpu_ns, run_ns);  // equal but for rounding
  return host;
}

ModeTime on_stream_time(const ExchangeSpec& spec) {
  const ExchangeSums sums = sums_of(spec, ControlMode::Stream);
  const double r = iterations_of(spec);
  return {r * (sums.launch_ns + sums.enqueue_ns), r * (sums.run_ns + sums.message_ns)};  // [AGO17] (2)
}

FusedBlocks fused_blocks(const ExchangeSpec& spec) {
  TUTTI_EXPECTS(spec.fused, "blocks are those of a fused kernel");
  const double slots = spec.fused->slots();
  const auto blocks_of = [&](const auto& task) {
    const int count = task.blocks.value();
    return TaskBlocks{count, as_ns(task.run.under(ControlMode::Kernel)) / std::max(1.0, count / slots)};
  };
  FusedBlocks blocks;
  for (const SendTaskSpec& task : spec.sends)
    blocks.sends.insert(blocks.sends.end(), static_cast<std::size_t>(task.times),
                        SendBlocks{blocks_of(task), as_ns(task.send.under(ControlMode::Kernel))});
  for (const InnerTaskSpec& task : spec.inner)
    blocks.inner.insert(blocks.inner.end(), static_cast<std::size_t>(task.times), blocks_of(task));
  for (const ReceiveTaskSpec& task : spec.receives)
    blocks.receives.insert(blocks.receives.end(), static_cast<std::size_t>(task.times),
                           ReceiveBlocks{blocks_of(task), as_ns(task.wait.under(ControlMode::Kernel))});
  return blocks;
}

std::optional<FusedTime> kernel_initiated_time(const ExchangeSpec& spec) {
  if (!spec.fused) return std::nullopt;
  const ExchangeSums sums = sums_of(spec, ControlMode::Kernel);
  const double r = iterations_of(spec);
  FusedTime fused;
  fused.sequence_ns = sums.run_ns + sums.message_ns;
  fused.overlap_ns =
      std::max(0.0, fused.sequence_ns - schedule_blocks(fused_blocks(spec), spec.fused->slots()).length_ns);
  fused.time = {r * as_ns(spec.fused->launch), r * (fused.sequence_ns - fused.overlap_ns)};  // [AGO17] (3)
  return fused;
}

std::optional<ModeTime> ExchangeTimes::of(ControlMode mode) const {
  switch (mode) {
    case ControlMode::Host: return host.time;
    case ControlMode::Stream: return stream;
    default: return kernel ? std::optional(kernel->time) : std::nullopt;
  }
}

ExchangeTimes exchange_times(const ExchangeSpec& spec) {
  return {host_driven_time(spec), on_stream_time(spec), kernel_initiated_time(spec)};
}

}  // namespace tutti::internal
