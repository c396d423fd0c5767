#include "model/guarantee.hpp"

#include <algorithm>

#include "model/digits.hpp"
#include "model/steady_rates.hpp"

namespace tutti {
namespace {

constexpr int kDigits = 4;  // finer than any measurement repeats

/// Rates that must not be undercut.
struct Floor {
  StreamSet streams;
  std::vector<double> rates;
};

/// Lowers the guaranteed side of a machine's bandwidths until none of the floors is above what the graph says.
///
/// Where a stream is too fast, that one of its capacities is lowered which has to lose the least part to hold it back,
/// by what the stream alone has too much. Each round lowers something, and rates fall with the capacities in the end,
/// though not always at once.
class Guarantee {
 public:
  explicit Guarantee(const Topology& machine) : machine_(machine) {
    for (const double value : machine.capacities(Basis::Guaranteed)) values_.push_back(value);
  }

  Topology under(const std::vector<Floor>& floors) {
    constexpr int kMostRounds = 1'000;
    for (int round = 0; round < kMostRounds; ++round) {
      const Topology now = build(false);
      std::vector<double> lowered = values_;
      for (const Floor& floor : floors) lower(now, floor, lowered);
      if (lowered == values_) break;
      values_ = lowered;
    }
    return build(true);
  }

 private:
  /// @param round  down, for the file.
  [[nodiscard]] Topology build(bool round) const {
    auto links = link_entries(machine_);
    auto shared = shared_entries(machine_);
    const auto before = machine_.capacities(Basis::Guaranteed);
    const auto write = [&](Bandwidth& bandwidth, std::size_t c) {
      bandwidth.guaranteed = {round && values_[c] < before[c] ? down_to_digits(values_[c], kDigits) : values_[c]};
    };
    for (std::size_t i = 0; i < links.size(); ++i) write(links[i].bandwidth, i);
    for (std::size_t i = 0; i < shared.size(); ++i) write(shared[i].capacity, links.size() + i);
    return TopologyBuilder(machine_).links(links).shared(shared).build().value();
  }

  void lower(const Topology& now, const Floor& floor, std::vector<double>& lowered) {
    constexpr double kTolerance = 1e-7;
    const auto rates = steady_.find(now, Basis::Guaranteed, floor.streams).rates;
    std::vector<double> load(values_.size(), 0);
    const auto positions = positions_of(floor.streams);
    for (std::size_t i = 0; i < positions.size(); ++i)
      for_uses(now, positions[i], [&](const CapacityUse& use) { load[use.capacity.index()] += use.cost * rates[i]; });
    for (std::size_t i = 0; i < positions.size(); ++i) {
      if (rates[i] <= floor.rates[i] * (1 + kTolerance)) continue;
      double least = 1;  // part that a capacity must lose, to hold the stream back alone
      std::size_t chosen = 0;
      double enough = 0;
      for_uses(now, positions[i], [&](const CapacityUse& use) {
        const std::size_t c = use.capacity.index();
        const double value = load[c] - use.cost * (rates[i] - floor.rates[i]);
        if (1 - value / values_[c] >= least) return;
        least = 1 - value / values_[c];
        chosen = c;
        enough = value;
      });
      lowered[chosen] = std::min(lowered[chosen], enough);
    }
  }

  template <class Visit>
  static void for_uses(const Topology& machine, std::uint32_t position, Visit visit) {
    const auto [from, to] = ends_of(machine, HostStream::at(position));
    for (const LinkId link : machine.route(from, to))
      for (const CapacityUse& use : machine.uses(link)) visit(use);
  }

  const Topology& machine_;
  std::vector<double> values_;  // [capacities]
  SteadyRates steady_;
};

/// The lowest that was measured of each combination, and the rows of the table: up to four GPUs for all GPUs that are
/// alike, beyond that for those that stand in the row.
std::vector<Floor> floors(const CleanMeasurements& clean, const MeasuredTable& table, std::size_t gpus) {
  std::vector<Floor> floors;
  for (const auto& combinations : {clean.combinations, clean.doubtful})
    for (const Combination& combination : combinations) floors.push_back({combination.streams, combination.lowest});
  if (gpus > MeasuredTable::kMostEnumerated) {
    for (const StreamRates& row : table.entries()) floors.push_back({row.streams, row.rates});
    return floors;
  }
  for (StreamSet streams = 1; streams < stream_sets(gpus); ++streams) {
    if (table.row(streams) == MeasuredTable::kNoRow) continue;
    floors.push_back({streams, {}});
    for (const std::uint32_t position : positions_of(streams))
      floors.back().rates.push_back(table.rate(table.row(streams), streams, position).value);
  }
  return floors;
}

}  // namespace

Topology guarantee(const Topology& fitted, const CleanMeasurements& measurements, const MeasuredTable& table) {
  return Guarantee(fitted).under(floors(measurements, table, fitted.gpus().size()));
}

}  // namespace tutti
