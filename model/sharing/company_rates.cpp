#include "model/sharing/company_rates.hpp"

#include <algorithm>
#include <cmath>
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

CompanyTimes::CompanyTimes(std::span<const double> capacities, std::span<const CompanyFlow> flows,
                           std::vector<FlowVolume> volumes)
    : loads_(flows.size() * flows.size()), volumes_(std::move(volumes)) {
  for (const CompanyFlow& flow : flows) {
    double& own = own_.emplace_back(1 / flow.alone);
    for (const CapacityUse& use : flow.uses) own = std::max(own, use.cost / capacities[use.capacity.index()]);
    engine_.push_back(flow.engine);
  }
  for (std::size_t f = 0; f < flows.size(); ++f)
    for (std::size_t g = 0; g < flows.size(); ++g)
      for (const CapacityUse& use : flows[f].uses)
        for (const CapacityUse& rivals : flows[g].uses) {
          if (use.capacity != rivals.capacity) continue;
          Load& load = loads_[f * flows.size() + g];
          load.a_byte = std::max(load.a_byte, rivals.cost / capacities[use.capacity.index()]);
          load.a_level = std::max(load.a_level, load.a_byte * flows[g].weight / flows[f].weight);
        }
  std::ranges::stable_sort(volumes_, {}, [&](const FlowVolume& volume) { return engine_[volume.flow]; });
}

double CompanyTimes::longest(std::size_t flow, double bytes, double most) const {
  constexpr int kMostSteps = 100;
  constexpr double kRounding = 1 + 1e-9;
  double time = 0;
  for (int step = 0; step < kMostSteps; ++step) {
    double next = bytes * own_[flow];
    for (auto first = volumes_.begin(); first != volumes_.end() && next < most;) {
      const std::uint32_t engine = engine_[first->flow];
      double moved = 0, level = 0;  // by the engine's flows, and what their level allows
      auto volume = first;
      for (; volume != volumes_.end() && engine_[volume->flow] == engine; ++volume) {
        const Load& rival = load(flow, volume->flow);
        level = std::max(level, rival.a_level * bytes);
        const double jobs = std::floor((time + volume->alive) / volume->period) + 1;
        moved += jobs * volume->bytes * rival.a_byte;
      }
      if (engine != engine_[flow]) next += std::min(moved, level);
      first = volume;
    }
    next *= kRounding;
    if (next >= most) return most;
    if (next <= time * kRounding) return std::max(next, time);
    time = next;
  }
  return most;
}

}  // namespace tutti::internal
