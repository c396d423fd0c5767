#include "model/planners/completion_aligned.hpp"

#include <algorithm>

namespace tutti::internal {
namespace {

/// Largest growth of a batch by earlier gates, as a share of the spread.
constexpr double kMostCost = 0.25;
/// Largest effect of gates' rounding to whole nanoseconds on a length.
constexpr double kRoundingNs = 20;

/// Gates that open earlier than aligned ones; for machines whose rates vary.
class EarlierGates {
 public:
  explicit EarlierGates(BatchSimulation& aligned) : simulation_(aligned), workspace_(aligned.room()) {
    std::ranges::copy(aligned.gates(), workspace_.previous.begin());
  }

  /// Runs the batch. @param earlier  (gate when aligned) -> gate, ns
  /// @return its length
  template <class Earlier>
  double run(const Earlier& earlier) {
    std::ranges::transform(workspace_.previous, workspace_.gates.begin(),
                           [&](double gate) { return as_ns(round_down_ns(std::max(earlier(gate), 0.0))); });
    simulation_.run_forward(workspace_.gates);
    return simulation_.latency_ns();
  }

 private:
  BatchSimulation& simulation_;
  BatchSimulation::Workspace workspace_;
};

/// Opens gates early enough for a stream that is slower by the spread beside others that are faster by it. Where that
/// loses the gain of late starts, gates open as if everything before them were faster by the spread. Where late starts
/// bring nothing but a longer batch, all gates open at once.
void begin_earlier(BatchSimulation& aligned) {
  const double length = aligned.latency_ns(), spread = aligned.spread();
  const double lead = 2 * spread * (length - aligned.batch_setup_ns());
  EarlierGates gates(aligned);
  const auto at_once = [](double) { return 0.0; };
  const double length_at_once = gates.run(at_once);
  if (length_at_once < length - kRoundingNs) return;
  const double longest = std::min(length * (1 + kMostCost * spread), length_at_once + kRoundingNs);
  if (gates.run([&](double gate) { return gate - lead; }) <= longest) return;
  if (gates.run([&](double gate) { return gate * (1 - spread); }) > length_at_once) gates.run(at_once);
}

}  // namespace

void plan_completion_aligned(BatchSimulation& loaded, Effort) {
  loaded.run_backward();
  if (loaded.contended()) loaded.rerun_forward();
  if (loaded.spread() > 0) begin_earlier(loaded);
}

}  // namespace tutti::internal
