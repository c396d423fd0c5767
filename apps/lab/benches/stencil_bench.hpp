#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "apps/lab/measuring/samples.hpp"
#include "model/control/advice.hpp"
#include "model/control/exchange_spec.hpp"
#include "runtime/core/baselines.hpp"

namespace tutti::internal {

/// How a stencil is measured.
struct StencilPlan {
  std::uint64_t iterations = 100;  ///< of a run
  int samples = 50;                ///< runs of each mode
  std::uint64_t checked = 5;       ///< iterations whose field is compared with that of one GPU
  std::uint64_t seed = 1;
};

/// A stencil of one size on some GPUs: measured in each mode, and as the time models have it.
struct StencilCase {
  StencilSpec spec;
  std::size_t gpus = 1;
  ExchangeSpec exchange;  ///< made of the times of the parts
  Advice advice;
  std::array<SampleSummary, kControlModes.size()> times = {};  ///< us an iteration, of the modes in their order
  std::array<bool, kControlModes.size()> equal = {};           ///< to the field of one GPU, in every bit

  [[nodiscard]] double measured_us(ControlMode mode) const { return times[static_cast<std::size_t>(mode)].median; }
  /// Of an iteration; absent where the mode was not considered.
  [[nodiscard]] std::optional<double> predicted_us(ControlMode mode) const;
  /// 1 - measured time over that of the host-driven mode.
  [[nodiscard]] double gain(ControlMode mode) const { return 1 - measured_us(mode) / measured_us(ControlMode::Host); }
};

/// How far predictions hold.
struct StencilAgreement {
  std::size_t gains = 0;    ///< modes other than the host-driven one, of all cases
  std::size_t right = 0;    ///< of them, whether they are faster than the host-driven one was predicted
  double median_error = 0;  ///< of all times, relative to the measured one

  friend bool operator==(const StencilAgreement&, const StencilAgreement&) = default;
};

/// The exchange of a stencil from the times of its parts. One thread of the host makes the calls for all GPUs.
///
/// Messages have streams of their own. So a message costs the stream that computes nothing where it is sent, and where
/// it is awaited what it takes longer than the inner work beside it. Blocks of a fused kernel need no launch of their
/// own, so what the smallest kernel takes is no part of theirs. What they wait for in an iteration, its message
/// included, is what an iteration on the smallest field takes, and comes before they pack.
/// @param gpus        >= 1
/// @param iterations  of a run, 1 to 1e9
/// @source [AGO17] models (1) to (3)
[[nodiscard]] ExchangeSpec stencil_exchange(const StencilSpec& spec, std::size_t gpus, const StencilSteps& steps,
                                            std::uint64_t iterations);

/// Measures a stencil in all modes, run by run in turn, and compares each with a run on the first GPU alone.
/// @param gpus  at least one
/// @errors as `Baselines::stencil`, `Stencil::run` and `Stencil::time_steps`; InvalidInput: interrupted
[[nodiscard]] Expected<StencilCase> measure_stencil(Baselines& baselines, const StencilSpec& spec,
                                                    std::span<const VertexId> gpus, const StencilPlan& plan);

/// @pre the modes were measured
[[nodiscard]] StencilAgreement agreement_of(std::span<const StencilCase> cases);

}  // namespace tutti::internal
