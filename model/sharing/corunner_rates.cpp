#include "model/sharing/corunner_rates.hpp"

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

Rivals rivals_on(std::size_t capacities, std::span<const CorunnerFlow> flows) {
  Rivals rivals(capacities);
  for (const CorunnerFlow& flow : flows) {
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

std::vector<double> rates_beside_corunners(std::span<const double> capacities, std::span<const CorunnerFlow> flows) {
  const Rivals rivals = rivals_on(capacities.size(), flows);
  std::vector<double> rates;
  for (const CorunnerFlow& flow : flows) {
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

CorunnerTimes::CorunnerTimes(std::span<const double> capacities, std::span<const CorunnerFlow> flows,
                             std::vector<FlowVolume> volumes)
    : capacities_(capacities),
      flows_(flows),
      volumes_(std::move(volumes)),
      loaded_(flows.size()),
      loads_(flows.size()) {
  std::ranges::stable_sort(volumes_, {}, [&](const FlowVolume& volume) { return flows_[volume.flow].engine; });
}

void CorunnerTimes::load(std::size_t flow) {
  if (std::exchange(loaded_, flow) == flow) return;
  bytes_ = 0;
  const CorunnerFlow& own = flows_[flow];
  own_ = 1 / own.alone;
  std::ranges::fill(loads_, Load{});
  for (const CapacityUse& use : own.uses) {
    const double capacity = capacities_[use.capacity.index()];
    own_ = std::max(own_, use.cost / capacity);
    for (std::size_t g = 0; g < flows_.size(); ++g)
      for (const CapacityUse& rivals : flows_[g].uses)
        if (rivals.capacity == use.capacity) loads_[g].a_byte = std::max(loads_[g].a_byte, rivals.cost / capacity);
  }
  for (std::size_t g = 0; g < flows_.size(); ++g) loads_[g].a_level = loads_[g].a_byte * flows_[g].weight / own.weight;
}

double CorunnerTimes::longest(std::size_t flow, double bytes, double most) {
  load(flow);
  if (bytes != bytes_ || most != most_) found_ = first_time(flow, bytes, most);
  bytes_ = bytes;
  most_ = most;
  return found_;
}

double CorunnerTimes::first_time(std::size_t flow, double bytes, double most) const {
  constexpr int kMostSteps = 100;
  constexpr double kRounding = 1 + 1e-9;
  double time = 0;
  for (int step = 0; step < kMostSteps; ++step) {
    double next = bytes * own_;
    for (auto first = volumes_.begin(); first != volumes_.end() && next < most;) {
      const std::uint32_t engine = flows_[first->flow].engine;
      double moved = 0, level = 0;  // by the engine's flows, and what their level allows
      auto volume = first;
      for (; volume != volumes_.end() && flows_[volume->flow].engine == engine; ++volume) {
        const Load& rival = loads_[volume->flow];
        level = std::max(level, rival.a_level * bytes);
        const double jobs = std::floor((time + volume->alive) / volume->period) + 1;
        moved += jobs * volume->bytes * rival.a_byte;
      }
      if (engine != flows_[flow].engine) next += std::min(moved, level);
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
