#include "tests/support/slow_max_min.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace tutti::internal::test {

std::vector<double> slow_capacities(const Topology& machine, Basis basis) {
  std::vector<double> capacities;
  for (const Link& link : machine.links()) capacities.push_back(link.bandwidth.at(basis).value);
  for (const SharedCapacity& shared : machine.shared()) capacities.push_back(shared.capacity.at(basis).value);
  for (const BackgroundFlow& flow : machine.background()) {
    const std::vector<double> costs = slow_costs(machine, flow.route);
    for (std::size_t c = 0; c < costs.size(); ++c) capacities[c] -= costs[c] * flow.bandwidth.at(basis).value;
  }
  return capacities;
}

std::vector<double> slow_costs(const Topology& machine, std::span<const LinkId> links) {
  const std::size_t count = machine.links().size();
  std::vector<double> costs(count + machine.shared().size(), 0);
  for (const LinkId link : links) {
    costs[link.index()] += 1;
    for (std::size_t s = 0; s < machine.shared().size(); ++s)
      for (const CapacityMember& member : machine.shared()[s].members)
        if (member.link == link) costs[count + s] += member.cost;
  }
  return costs;
}

std::vector<double> slow_max_min(std::span<const double> capacities, std::span<const SlowFlow> flows) {
  std::vector<double> rates(flows.size(), 0);
  std::vector<bool> fixed(flows.size(), false);
  while (std::find(fixed.begin(), fixed.end(), false) != fixed.end()) {
    double level = std::numeric_limits<double>::infinity();
    std::size_t full = 0;
    for (std::size_t c = 0; c < capacities.size(); ++c) {
      double left = capacities[c];
      double load = 0;
      for (std::size_t f = 0; f < flows.size(); ++f) {
        if (fixed[f]) left -= rates[f] * flows[f].cost[c];
        if (!fixed[f]) load += flows[f].weight * flows[f].cost[c];
      }
      if (load == 0 || left / load >= level) continue;
      level = left / load;
      full = c;
    }
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (fixed[f] || flows[f].cost[full] == 0) continue;
      rates[f] = flows[f].weight * level;
      fixed[f] = true;
    }
  }
  return rates;
}

std::optional<std::string> find_unfairness(std::span<const double> capacities, std::span<const SlowFlow> flows,
                                           std::span<const double> rates, double tolerance) {
  std::vector<double> used(capacities.size(), 0);
  std::vector<double> highest(capacities.size(), 0);
  for (std::size_t f = 0; f < flows.size(); ++f) {
    if (!(rates[f] > 0)) return fmt::format("flow {} has the rate {}", f, rates[f]);
    for (std::size_t c = 0; c < capacities.size(); ++c) {
      used[c] += rates[f] * flows[f].cost[c];
      if (flows[f].cost[c] > 0) highest[c] = std::max(highest[c], rates[f] / flows[f].weight);
    }
  }
  for (std::size_t c = 0; c < capacities.size(); ++c) {
    if (used[c] > capacities[c] * (1 + tolerance))
      return fmt::format("capacity {}: {} of {}", c, used[c], capacities[c]);
  }
  for (std::size_t f = 0; f < flows.size(); ++f) {
    bool held = false;
    for (std::size_t c = 0; c < capacities.size(); ++c) {
      held |= flows[f].cost[c] > 0 && used[c] >= capacities[c] * (1 - tolerance) &&
              rates[f] / flows[f].weight >= highest[c] * (1 - tolerance);
    }
    if (!held) return fmt::format("nothing keeps flow {} at {}", f, rates[f]);
  }
  return std::nullopt;
}

}  // namespace tutti::internal::test
