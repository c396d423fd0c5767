#include "model/planners/completion_aligned.hpp"

#include <algorithm>

namespace tutti {
namespace {

/// Of the spread: by so much a batch may be longer for it that its gates open earlier.
constexpr double kMostCost = 0.25;
/// Relative: a shorter batch, and no rounding of gates.
constexpr double kShorter = 1e-5;

void align(BatchSimulation& loaded) {
  loaded.run_backward();
  if (loaded.contended()) loaded.rerun_forward();
}

/// @param earlier  (gate) -> gate, ns
template <class Earlier>
void open(BatchSimulation& aligned, const Earlier& earlier) {
  const auto gates = aligned.room().gates;
  std::ranges::transform(aligned.gates(), gates.begin(),
                         [&](double gate) { return as_ns(round_down_ns(std::max(earlier(gate), 0.0))); });
  aligned.run_forward(gates);
}

/// Early enough for a stream that is slower by the spread beside others that are faster by it; where that takes away
/// what starting late brings, only as if all that runs before were faster by the spread; and where starting late brings
/// nothing but a longer batch, at once.
void begin_earlier(BatchSimulation& aligned) {
  const double length = aligned.latency_ns(), spread = aligned.spread();
  open(aligned, [](double) { return 0.0; });
  if (aligned.latency_ns() < length * (1 - kShorter)) return;
  align(aligned);
  open(aligned, [&](double gate) { return gate - 2 * spread * length; });
  if (aligned.latency_ns() <= length * (1 + kMostCost * spread)) return;
  align(aligned);
  open(aligned, [&](double gate) { return gate * (1 - spread); });
}

}  // namespace

void plan_completion_aligned(BatchSimulation& loaded) {
  align(loaded);
  if (loaded.spread() > 0) begin_earlier(loaded);
}

}  // namespace tutti
