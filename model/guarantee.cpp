#include "model/guarantee.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <span>

#include "model/digits.hpp"
#include "model/route.hpp"
#include "model/route_rates.hpp"
#include "model/steady_rates.hpp"

namespace tutti::internal {
namespace {

constexpr int kFloorDigits = 4;  // finer than any measurement repeats

using Links = std::span<const LinkId>;

template <class Visit>
void each_use_of(const Topology& machine, Links links, Visit visit) {
  for (const LinkId link : links)
    for (const CapacityUse& use : machine.uses(link)) visit(use);
}

Links links_at(const Topology& machine, std::uint32_t position) {
  const auto [from, to] = ends_of(machine, CopyPort::at(position));
  return machine.route(from, to);
}

/// The links of every copy that is active.
std::vector<Links> links_of(const Topology& machine, PortSet streams) {
  std::vector<Links> links;
  for (const std::uint32_t position : positions_of(streams)) links.push_back(links_at(machine, position));
  return links;
}

/// Load of the copies on each capacity.
std::vector<double> loads_of(const Topology& machine, std::span<const Links> links, std::span<const double> rates) {
  std::vector<double> load(machine.capacities(Basis::Guaranteed).size(), 0);
  for (std::size_t i = 0; i < links.size(); ++i)
    each_use_of(machine, links[i], [&](const CapacityUse& use) { load[use.capacity.index()] += use.cost * rates[i]; });
  return load;
}

struct LowerCapacity {
  std::size_t capacity;
  double value;
};

/// The capacity on a route that must lose the smallest part to hold a copy back by `too_much`, and its new value.
/// @param load  [capacities] of all copies that are active
LowerCapacity least_loss(const Topology& machine, Links links, std::span<const double> load, double too_much) {
  const auto values = machine.capacities(Basis::Guaranteed);
  double least = 1;  // part that a capacity must lose, to hold the stream back alone
  LowerCapacity chosen{0, values[0]};
  each_use_of(machine, links, [&](const CapacityUse& use) {
    const std::size_t c = use.capacity.index();
    const double value = load[c] - use.cost * too_much;
    if (1 - value / values[c] >= least) return;
    least = 1 - value / values[c];
    chosen = {c, value};
  });
  return chosen;
}

/// The slowest link on a route, lowered to `most`: it holds the copy back whatever else is active.
LowerCapacity hold_alone(const Topology& machine, Links links, double most) {
  const auto values = machine.capacities(Basis::Guaranteed);
  const LinkId slowest = *std::min_element(links.begin(), links.end(),
                                           [&](LinkId a, LinkId b) { return values[a.index()] < values[b.index()]; });
  return {slowest.index(), most};
}

/// Measured rates that the graph must not exceed.
struct Floor {
  PortSet streams;  // of the first memory; none: see `copy_routes`
  std::vector<double> rates;
  CopyRouteSet copy_routes = {};
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
  [[nodiscard]] Topology build() const {
    auto links = link_entries(machine_);
    auto shared = shared_entries(machine_);
    for (std::size_t i = 0; i < links.size(); ++i) links[i].bandwidth.guaranteed = {values_[i]};
    for (std::size_t i = 0; i < shared.size(); ++i) shared[i].capacity.guaranteed = {values_[links.size() + i]};
    return TopologyBuilder(machine_).links(links).shared(shared).build().value();
  }

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
    const auto rates = floor.copy_routes.empty() ? steady_.find(now, Basis::Guaranteed, floor.streams).rates
                                                 : ways_.find(now, Basis::Guaranteed, floor.copy_routes);
    auto links = links_of(now, floor.streams);
    for (const CopyRoute& copy_route : floor.copy_routes) links.push_back(tutti::internal::links_of(now, copy_route));
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
  RouteRates ways_;
};

/// The lowest measured rates of each combination, and the rows of the table. Up to four GPUs, a row counts for all
/// symmetric GPUs; beyond that for its own GPUs, and for the others when the table is built in.
std::vector<Floor> floors(const CleanMeasurements& clean, const MeasuredTable& table, std::size_t gpus) {
  std::vector<Floor> floors;
  for (const auto& combinations : {clean.combinations, clean.doubtful})
    for (const Combination& combination : combinations) floors.push_back({combination.streams, combination.lowest});
  for (const auto& combinations : {clean.copy_routes, clean.doubtful_routes})
    for (const RouteCombination& combination : combinations)
      floors.push_back({0, combination.lowest, combination.copy_routes});
  if (gpus > MeasuredTable::kMostEnumerated) {
    for (const PortRates& row : table.entries()) floors.push_back({row.streams, row.rates});
    return floors;
  }
  for (PortSet streams = 1; streams < stream_sets(gpus); ++streams) {
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

// ---- below the table

std::optional<std::vector<double>> BelowTable::lower_once(const Topology& machine, bool gently) {
  load(machine);
  const auto values = machine.capacities(Basis::Guaranteed);
  reasons_.resize(values.size());
  found_.clear();
  fewest_ = std::numeric_limits<int>::max();
  const MeasuredTable& table = *machine.table();
  const PortSet one_way = waiting_streams(machine, static_cast<PortSet>(stream_sets(machine.gpus().size()) - 1));
  PortSet streams = 0;
  const std::uint32_t end = std::uint32_t{1} << positions_.size();
  for (std::uint32_t i = 1; i < end; ++i) {  // Gray's code: one stream starts or stops
    const auto changed = static_cast<std::size_t>(std::countr_zero(i));
    const std::uint32_t group = bandwidth_.group(kinds_[changed]);
    streams ^= PortSet{1} << positions_[changed];
    (streams >> positions_[changed] & 1U) != 0 ? bandwidth_.start(group) : bandwidth_.stop(group);
    const bool possible = (streams & streams >> 1 & one_way) == 0;
    if (possible && table.row(streams) != MeasuredTable::kNoRow) look_at(machine, streams, gently);
  }
  if (found_.empty()) return std::nullopt;
  std::vector<double> lowered(values.begin(), values.end());
  for (const auto& [value, reason] : found_) {
    double& place = lowered[reason.capacity.index()];
    if (value >= place) continue;
    place = value;
    reasons_[reason.capacity.index()] = reason;
  }
  return lowered;
}

void BelowTable::load(const Topology& machine) {
  positions_.clear();
  kinds_.clear();
  for (std::uint32_t position = 0; position < 2 * machine.gpus().size(); ++position)
    if (has_routes(machine, PortSet{1} << position)) positions_.push_back(position);
  bandwidth_.reset(machine, Basis::Guaranteed, {}, positions_.size());
  for (const std::uint32_t position : positions_) {
    const auto [from, to] = ends_of(machine, CopyPort::at(position));
    kinds_.push_back(bandwidth_.add_flow(machine.route_class(from, to)));
  }
  bandwidth_.finish();
  bandwidth_.restart();
}

/// Combinations of the fewest streams come first: their changes may suffice for larger ones.
void BelowTable::look_at(const Topology& machine, PortSet streams, bool gently) {
  constexpr double kTolerance = 1e-10;  // of sums that are added up in another order
  const MeasuredTable& table = *machine.table();
  const std::uint32_t row = table.row(streams);
  const int count = std::popcount(streams);
  if (count > fewest_) return;
  bandwidth_.solve();
  const auto graph = [&](std::size_t i) { return bandwidth_.rate(bandwidth_.group(kinds_[i])).value; };
  const auto too_fast = [&](std::size_t i) {
    return (streams >> positions_[i] & 1U) != 0 &&
           graph(i) > table.rate(row, streams, positions_[i]).value * (1 + kTolerance);
  };
  std::size_t first = 0;
  while (first < positions_.size() && !too_fast(first)) ++first;
  if (first == positions_.size()) return;
  if (count < fewest_) found_.clear();
  fewest_ = count;
  const auto links = links_of(machine, streams);
  std::vector<double> rates;
  for (std::size_t i = 0; i < positions_.size(); ++i)
    if ((streams >> positions_[i] & 1U) != 0) rates.push_back(graph(i));
  const auto load = loads_of(machine, links, rates);
  for (std::size_t i = first; i < positions_.size(); ++i) {
    if (!too_fast(i)) continue;
    const double most = table.rate(row, streams, positions_[i]).value;
    const Links route = links_at(machine, positions_[i]);
    const LowerCapacity step =
        gently ? least_loss(machine, route, load, graph(i) - most) : hold_alone(machine, route, most);
    found_.emplace_back(down_to_digits(step.value, kFloorDigits),
                        Reason{CapacityId(step.capacity), streams, positions_[i], most, graph(i)});
  }
}

std::vector<BelowTable::Reason> BelowTable::reasons() const {
  std::vector<Reason> reasons;
  for (const auto& reason : reasons_)
    if (reason) reasons.push_back(*reason);
  return reasons;
}

}  // namespace tutti::internal
