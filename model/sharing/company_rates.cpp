#include "model/sharing/company_rates.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace tutti::internal {
namespace {

/// What an engine can take of a capacity at a level: load x level, at most `most`.
struct Rival {
  double load = 0;
  double most = 0;
  [[nodiscard]] double full_at() const { return most / load; }
};

/// [capacities][engines] the largest of an engine's flows; one that is never full where a flow has no limit.
using Rivals = std::vector<std::map<std::uint32_t, Rival>>;

Rivals rivals_on(std::size_t capacities, std::span<const CompanyFlow> flows) {
  Rivals rivals(capacities);
  for (const CompanyFlow& flow : flows) {
    for (const CapacityUse& use : flow.uses) {
      Rival& rival = rivals[use.capacity.index()][flow.engine];
      rival.load = std::max(rival.load, flow.weight * use.cost);
      rival.most = std::max(rival.most, flow.most * use.cost);
    }
  }
  return rivals;
}

/// The level at which a flow with this load and the rivals fill a capacity: its smallest there.
double level_on(double capacity, double load, std::vector<Rival> rivals) {
  std::ranges::sort(rivals, {}, &Rival::full_at);
  double loads = load;  // of those that are not full at the level
  for (const Rival& rival : rivals) loads += rival.load;
  double left = capacity;  // by those that are full
  for (const Rival& rival : rivals) {
    if (loads * rival.full_at() >= left) break;
    left -= rival.most;
    loads -= rival.load;
  }
  return left / loads;
}

}  // namespace

std::vector<double> rates_in_company(std::span<const double> capacities, std::span<const CompanyFlow> flows) {
  const Rivals rivals = rivals_on(capacities.size(), flows);
  std::vector<double> rates;
  for (const CompanyFlow& flow : flows) {
    double level = flow.alone / flow.weight;
    for (const CapacityUse& use : flow.uses) {
      std::vector<Rival> others;
      for (const auto& [engine, rival] : rivals[use.capacity.index()])
        if (engine != flow.engine) others.push_back(rival);
      level = std::min(level, level_on(capacities[use.capacity.index()], flow.weight * use.cost, std::move(others)));
    }
    rates.push_back(level * flow.weight);
  }
  return rates;
}

}  // namespace tutti::internal
