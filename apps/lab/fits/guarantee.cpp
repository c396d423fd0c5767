#include "apps/lab/fits/guarantee.hpp"

#include <algorithm>
#include <span>

#include "apps/lab/fits/measurement_plan.hpp"
#include "model/base/digits.hpp"
#include "model/sharing/lower_capacity.hpp"
#include "model/sharing/steady_rates.hpp"

namespace tutti::internal {
namespace {

/// Measured rates that the graph must not exceed.
struct Floor {
  std::vector<PortId> ports;
  std::vector<double> rates;  // [ports]
};

/// Lowers the guaranteed side of a machine's bandwidths until the graph predicts no more than any of the floors.
///
/// For a stream that is too fast, the capacity that must lose the smallest part is lowered, by the stream's own excess.
/// Each round lowers something, and rates fall with the capacities in the end, though not always at once. After too
/// many rounds, streams are held back by their slowest links alone, which terminates.
class Guarantee {
 public:
  explicit Guarantee(const Topology& machine) : machine_(machine) {
    for (const double value : machine.capacities(Basis::Guaranteed)) values_.push_back(value);
  }

  Topology under(const std::vector<Floor>& floors) {
    constexpr int kGentleRounds = 1'000;
    for (int round = 0;; ++round) {
      const Topology now = build();
      std::vector<double> lowered = values_;
      for (const Floor& floor : floors) lower(now, floor, round < kGentleRounds, lowered);
      if (lowered == values_) lowered = rounded();  // less of one capacity may be more of another stream: look again
      if (lowered == values_) return now;
      values_ = lowered;
    }
  }

 private:
  [[nodiscard]] Topology build() const { return machine_.with_guaranteed(values_); }

  /// The capacities, with lowered ones rounded down to the digits of a file.
  [[nodiscard]] std::vector<double> rounded() const {
    const auto before = machine_.capacities(Basis::Guaranteed);
    std::vector<double> rounded = values_;
    for (std::size_t c = 0; c < rounded.size(); ++c)
      if (rounded[c] < before[c] && rounded[c] != to_digits(rounded[c], kFloorDigits))
        rounded[c] = down_to_digits(rounded[c], kFloorDigits);
    return rounded;
  }

  void lower(const Topology& now, const Floor& floor, bool gently, std::vector<double>& lowered) {
    constexpr double kTolerance = 1e-7;
    const auto rates = steady_.find(now, Basis::Guaranteed, floor.ports);
    const auto links = links_of(now, floor.ports);
    const auto load = loads_of(now, links, rates);
    for (std::size_t i = 0; i < links.size(); ++i) {
      if (rates[i] <= floor.rates[i] * (1 + kTolerance)) continue;
      const LowerCapacity step = gently ? least_loss(now, links[i], load, rates[i] - floor.rates[i])
                                        : hold_alone(now, links[i], floor.rates[i]);
      lowered[step.capacity] = std::min(lowered[step.capacity], step.value);
    }
  }

  const Topology& machine_;
  std::vector<double> values_;  // [capacities]
  SteadyRates steady_;
};

/// The lowest measured rates of each combination, and the rows of the table. Up to four GPUs, a row counts for all
/// symmetric GPUs; beyond that for its own GPUs, and for the others when the table is built in.
std::vector<Floor> floors(const Topology& machine, const CleanMeasurements& clean, const MeasuredTable& table) {
  std::vector<Floor> floors;
  for (const auto& combinations : {clean.combinations, clean.doubtful})
    for (const Combination& combination : combinations)
      floors.push_back({list_of(combination.streams), combination.lowest});
  for (const auto& combinations : {clean.copy_routes, clean.doubtful_routes})
    for (const RouteCombination& combination : combinations)
      floors.push_back({ports_of(machine, combination.copy_routes), combination.lowest});
  if (machine.gpus().size() > kMostEnumerated) {
    for (const PortRates& row : table.entries()) floors.push_back({list_of(row.ports), row.rates});
    return floors;
  }
  for (const auto& [ports, row] : table.combinations()) {
    if (!can_be_active(machine, ports)) continue;
    Floor& floor = floors.emplace_back(Floor{list_of(ports), {}});
    for (const PortId port : floor.ports) floor.rates.push_back(table.rate(row, ports, port).value);
  }
  return floors;
}

}  // namespace

Topology guarantee(const Topology& fitted, const CleanMeasurements& measurements, const MeasuredTable& table) {
  return Guarantee(fitted).under(floors(fitted, measurements, table));
}

}  // namespace tutti::internal
