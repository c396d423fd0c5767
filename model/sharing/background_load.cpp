#include "model/sharing/background_load.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/base/faults.hpp"
#include "model/machine/ports.hpp"
#include "model/sharing/below_table.hpp"
#include "model/sharing/lower_capacity.hpp"

namespace tutti::internal {
namespace {

/// A smaller part of a capacity is nothing.
constexpr double kNothing = 1e-6;

/// Finds flows that leave nothing of a guaranteed capacity.
void check_loads(const Topology& machine, Faults& faults) {
  const auto guaranteed = machine.capacities(Basis::Guaranteed);
  std::vector<double> load(guaranteed.size(), 0);
  for (std::size_t i = 0; i < machine.background().size(); ++i) {
    const BackgroundFlow& flow = machine.background()[i];
    std::optional<CapacityId> full;
    for (const LinkId link : flow.route)
      for (const CapacityUse& use : machine.uses(link)) {
        double& of_capacity = load[use.capacity.index()];
        of_capacity += use.cost * flow.bandwidth.most.value;
        if (of_capacity >= guaranteed[use.capacity.index()] * (1 - kNothing)) full = use.capacity;
      }
    if (!full) continue;
    return faults.add(
        path_of(path_of("background", i), "bandwidth"),
        fmt::format("with this flow the background load is up to {:.4g} GB/s on {}, which guarantees {:.4g} GB/s, so "
                    "nothing is left for transfers; write a lower rate here or at the flows before, or a higher "
                    "bandwidth there",
                    load[full->index()], machine.capacity_name(*full), guaranteed[full->index()]));
  }
}

/// [capacities] What the flows leave of them: at their usual rates, or at their highest.
std::vector<double> left_of(const Topology& machine, std::span<const double> capacities, Basis rates) {
  std::vector<double> left(capacities.begin(), capacities.end());
  for (const BackgroundFlow& flow : machine.background())
    for (const LinkId link : flow.route)
      for (const CapacityUse& use : machine.uses(link))
        left[use.capacity.index()] -= use.cost * flow.bandwidth.at(rates).value;
  return left;
}

/// Scales the rates of copies that are active together into what is left of the capacities that flows cross.
/// @param left  [capacities] nominal ones
std::vector<double> scaled(const Topology& machine, const PortSet& ports, std::vector<double> rates,
                           std::span<const double> left) {
  const auto links = links_of(machine, list_of(ports));
  const auto load = loads_of(machine, links, rates);
  const auto whole = machine.capacities(Basis::Nominal);
  for (std::size_t i = 0; i < rates.size(); ++i) {
    double factor = 1;
    for (const LinkId link : links[i])
      for (const CapacityUse& use : machine.uses(link))
        if (const std::size_t c = use.capacity.index(); left[c] < whole[c])
          factor = std::min(factor, left[c] / load[c]);
    rates[i] *= factor;
  }
  return rates;
}

/// The table beside the flows; the machine's own where no row is slower there. Flows may cross the links of one of two
/// symmetric GPUs alone, so every combination gets a row of its own.
std::shared_ptr<const MeasuredTable> table_beside(const Topology& machine, std::span<const double> left) {
  if (machine.table() == nullptr) return nullptr;
  const MeasuredTable& table = *machine.table();
  std::vector<PortRates> rows;
  bool slower = false;
  for (const auto& [ports, row] : table.combinations()) {
    std::vector<double> rates;
    for (const PortId port : ports) rates.push_back(table.rate(row, ports, port).value);
    rows.push_back({ports, scaled(machine, ports, rates, left), table.source(row)});
    slower |= rows.back().rates != rates;
  }
  if (!slower) return machine.shared_table();
  return std::make_shared<const MeasuredTable>(MeasuredTable::make(machine.gpus().size(), {}, std::move(rows)).value());
}

}  // namespace

Expected<Topology> beside_background(Topology machine) {
  if (machine.background().empty()) return machine;
  Faults faults;
  check_loads(machine, faults);
  if (!faults.none()) return tl::unexpected(faults.error());
  const auto nominal = machine.capacities(Basis::Nominal);
  std::vector<double> guaranteed = left_of(machine, machine.capacities(Basis::Guaranteed), Basis::Guaranteed);
  if (machine.table() != nullptr) {
    std::vector<double> least = left_of(machine, nominal, Basis::Guaranteed);
    auto slowest = table_beside(machine, least);
    Topology loaded = machine.with_left(std::move(least), std::move(guaranteed), std::move(slowest));
    loaded = BelowTable(loaded).lower(loaded);
    const auto lowered = loaded.capacities(Basis::Guaranteed);
    guaranteed.assign(lowered.begin(), lowered.end());
  }
  std::vector<double> usual = left_of(machine, nominal, Basis::Nominal);
  auto table = table_beside(machine, usual);
  return machine.with_left(std::move(usual), std::move(guaranteed), std::move(table));
}

}  // namespace tutti::internal
