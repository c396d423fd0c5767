#include "apps/lab/benches/stencil_bench.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "apps/interrupt.hpp"

namespace tutti::internal {
namespace {

constexpr int kSamplesOfAStep = 15;

Duration shortened(Duration time, Duration by) { return std::max(time - by, Duration{}); }

Expected<std::vector<std::uint64_t>> field_after(Stencil& stencil, ControlMode mode, const StencilPlan& plan) {
  return stencil.fill(plan.seed).and_then([&] { return stencil.run(mode, plan.checked); }).and_then([&](Duration) {
    return stencil.field();
  });
}

/// The same field, as one slab of the first GPU.
Expected<std::vector<std::uint64_t>> field_of_one_gpu(Baselines& baselines, StencilSpec spec,
                                                      std::span<const VertexId> gpus, const StencilPlan& plan) {
  spec.layers *= static_cast<std::uint32_t>(gpus.size());
  const auto stencil = baselines.stencil(spec, {gpus.front()});
  if (!stencil) return tl::unexpected(stencil.error());
  return field_after(**stencil, ControlMode::Host, plan);
}

}  // namespace

std::optional<double> StencilCase::predicted_us(ControlMode mode) const {
  const auto time = advice.times.of(mode);
  if (!time) return std::nullopt;
  return time->total_ns() / exchange.iterations / 1e3;
}

ExchangeSpec stencil_exchange(const StencilSpec& spec, std::size_t gpus, const StencilSteps& steps,
                              std::uint64_t iterations) {
  const auto run = [&](Duration alone, Duration fused) {
    return StepTime{alone, std::nullopt, shortened(fused, steps.least_kernel)};
  };
  ExchangeSpec exchange;
  exchange.name = fmt::format("stencil-{}d-{}-{}gpu", spec.dimensions, spec.edge, gpus);
  exchange.iterations = static_cast<int>(iterations);
  SendTaskSpec send;
  send.launch = steps.launch;
  // A block packs behind all that a round needs besides its work: nothing of the kernel runs beside that.
  send.run = run(steps.pack, steps.fused_pack + steps.fused_round);
  send.enqueue = steps.packed_calls + steps.copy_calls;
  send.send = {steps.copy_calls, Duration{}, Duration{}};
  send.blocks = static_cast<int>(steps.senders);
  InnerTaskSpec inner;
  inner.launch = steps.launch;
  inner.run = run(steps.inner, steps.fused_inner);
  inner.blocks = static_cast<int>(steps.senders);
  ReceiveTaskSpec receive;
  receive.enqueue = steps.sent_calls;
  // The host's wait for the message is the synchronisation that the model counts.
  receive.wait = {shortened(steps.message, inner.launch),
                  steps.event + shortened(steps.message + steps.event, steps.inner), Duration{}};
  receive.launch = steps.launch;
  receive.run = run(steps.unpack, steps.fused_unpack);
  receive.blocks = static_cast<int>(steps.unpackers);
  exchange.sends = {send}, exchange.inner = {inner}, exchange.receives = {receive};
  exchange.synchronize_call = steps.synchronize;
  // One launch for all iterations.
  exchange.fused =
      FusedKernelSpec{static_cast<std::int64_t>(gpus) * steps.fused_launch / static_cast<std::int64_t>(iterations),
                      static_cast<int>(steps.blocks), 1};
  return exchange;
}

Expected<StencilCase> measure_stencil(Baselines& baselines, const StencilSpec& spec, std::span<const VertexId> gpus,
                                      const StencilPlan& plan) {
  const std::atomic<bool>& interrupted = programs::watch_for_interrupt();
  const auto one = field_of_one_gpu(baselines, spec, gpus, plan);
  if (!one) return tl::unexpected(one.error());
  const auto stencil = baselines.stencil(spec, {gpus.begin(), gpus.end()});
  if (!stencil) return tl::unexpected(stencil.error());
  StencilCase result;
  result.spec = spec, result.gpus = gpus.size();
  for (const ControlMode mode : kControlModes) {
    const auto field = field_after(**stencil, mode, plan);
    if (!field) return tl::unexpected(field.error());
    result.equal[static_cast<std::size_t>(mode)] = *field == *one;
  }
  std::array<std::vector<Duration>, kControlModes.size()> times;
  for (int sample = -1; sample < plan.samples; ++sample) {  // the first is left out
    for (const ControlMode mode : kControlModes) {
      if (interrupted) return invalid_input("interrupted; there is nothing to report yet");
      const auto took = (*stencil)->run(mode, plan.iterations);
      if (!took) return tl::unexpected(took.error());
      if (sample >= 0)
        times[static_cast<std::size_t>(mode)].push_back(*took / static_cast<std::int64_t>(plan.iterations));
    }
  }
  for (std::size_t m = 0; m < times.size(); ++m) result.times[m] = summarize_samples(times[m]);
  const auto steps = (*stencil)->time_steps(kSamplesOfAStep);
  if (!steps) return tl::unexpected(steps.error());
  result.exchange = stencil_exchange(spec, gpus.size(), *steps, plan.iterations);
  result.advice = advise(result.exchange);
  return result;
}

StencilAgreement agreement_of(std::span<const StencilCase> cases) {
  StencilAgreement agreement;
  std::vector<double> errors;
  for (const StencilCase& one : cases) {
    for (const ControlMode mode : kControlModes) {
      const auto predicted = one.predicted_us(mode);
      if (!predicted) continue;
      errors.push_back(std::abs(*predicted / one.measured_us(mode) - 1));
      if (mode == ControlMode::Host) continue;
      ++agreement.gains;
      if ((one.gain(mode) > 0) == (*one.advice.gain(mode) > 0)) ++agreement.right;
    }
  }
  if (errors.empty()) return agreement;
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::ranges::nth_element(errors, middle);
  agreement.median_error = *middle;
  return agreement;
}

}  // namespace tutti::internal
