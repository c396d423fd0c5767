#include "model/bandwidth_model.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace tutti {

void BandwidthModel::reset(const Topology& machine, Basis basis) {
  capacities_ = machine.capacities(basis);
  machine_ = &machine;
  if (local_of_.size() < capacities_.size()) local_of_.resize(capacities_.size(), 0);
  if (++epoch_ == 0) {
    std::fill(local_of_.begin(), local_of_.end(), 0);
    epoch_ = 1;
  }
  local_.clear();
  uses_.clear();
  shared_.clear();
  flows_.clear();
  bindings_.clear();
}

void BandwidthModel::add_use(const CapacityUse& use, std::uint32_t chain, std::uint32_t flow_begin) {
  std::uint64_t& slot = local_of_[use.capacity.index()];
  if (slot >> 32 != epoch_) {
    slot = std::uint64_t{epoch_} << 32 | local_.size();
    local_.push_back({capacities_[use.capacity.index()], chain, false, 0, 0});
  }
  const auto local = static_cast<std::uint32_t>(slot);
  local_[local].several |= local_[local].chain != chain;
  for (std::size_t i = flow_begin; i < uses_.size() && use.cost != 0; ++i) {
    if (uses_[i].capacity != local) continue;
    uses_[i].cost += use.cost;  // the way crosses this capacity more than once
    return;
  }
  uses_.push_back({local, use.cost});
}

void BandwidthModel::add_flow(std::uint32_t chain, std::span<const LinkId> first, std::span<const LinkId> second,
                              double weight) {
  const auto begin = static_cast<std::uint32_t>(uses_.size());
  for (const std::span<const LinkId> leg : {first, second})
    for (const LinkId link : leg)
      for (const CapacityUse& use : machine_->uses(link)) add_use(use, chain, begin);

  double limit = std::numeric_limits<double>::infinity();
  for (std::size_t i = begin; i < uses_.size(); ++i)
    limit = std::min(limit, local_[uses_[i].capacity].value / uses_[i].cost);
  for (std::size_t i = begin; i < uses_.size(); ++i) local_[uses_[i].capacity].demand += limit * uses_[i].cost;
  flows_.push_back({weight, limit / weight, chain, begin, static_cast<std::uint32_t>(uses_.size()), 0, 0});
}

void BandwidthModel::finish() {
  // A capacity whose flows at their own limits stay below it never binds; the slack keeps rounding on the safe side.
  constexpr double kClearlyBelow = 1 - 1e-9;
  for (Capacity& capacity : local_) {
    capacity.several = capacity.several && capacity.demand > capacity.value * kClearlyBelow;
    if (!capacity.several) continue;
    capacity.row = static_cast<std::uint32_t>(bindings_.size());
    bindings_.push_back({capacity.value, 0, 0, 0, 0});
  }
  for (Flow& flow : flows_) {
    flow.shared_begin = static_cast<std::uint32_t>(shared_.size());
    for (std::uint32_t i = flow.use_begin; i < flow.use_end; ++i) {
      const Capacity& capacity = local_[uses_[i].capacity];
      if (capacity.several) shared_.push_back({capacity.row, uses_[i].cost});
    }
    flow.shared_end = static_cast<std::uint32_t>(shared_.size());
  }
}

void BandwidthModel::load_bindings(std::span<const std::uint32_t> active) {
  for (Binding& binding : bindings_) {
    binding.left = binding.value;
    binding.load = 0;
    binding.flows = 0;
  }
  for (const std::uint32_t flow : active) {
    for (std::uint32_t i = flows_[flow].shared_begin; i < flows_[flow].shared_end; ++i) {
      Binding& binding = bindings_[shared_[i].capacity];
      binding.load += flows_[flow].weight * shared_[i].cost;
      ++binding.flows;
    }
  }
  for (Binding& binding : bindings_) binding.full = binding.load;
}

/// Adds up the load anew: where most of it has been taken away, what is left is rounding noise.
void BandwidthModel::recount(std::uint32_t row) {
  double load = 0;
  for (const std::uint32_t flow : open_) {
    for (std::uint32_t i = flows_[flow].shared_begin; i < flows_[flow].shared_end; ++i)
      if (shared_[i].capacity == row) load += flows_[flow].weight * shared_[i].cost;
  }
  bindings_[row].load = bindings_[row].full = load;
}

void BandwidthModel::fix(std::uint32_t flow, double rate, std::span<double> rates) {
  rates[flow] = rate;
  for (std::uint32_t i = flows_[flow].shared_begin; i < flows_[flow].shared_end; ++i) {
    Binding& binding = bindings_[shared_[i].capacity];
    binding.left = std::max(0.0, binding.left - rate * shared_[i].cost);
    binding.load -= flows_[flow].weight * shared_[i].cost;
    --binding.flows;
  }
}

void BandwidthModel::max_min(std::span<const std::uint32_t> active, std::span<double> rates) {
  constexpr double kMostlyGone = 1e-3;
  load_bindings(active);
  open_.assign(active.begin(), active.end());
  while (!open_.empty()) {
    // The capacity that fills up first if all open flows rise together, and the level at which it does.
    double level = std::numeric_limits<double>::infinity();
    std::uint32_t bottleneck = 0;
    for (std::uint32_t row = 0; row < bindings_.size(); ++row) {
      const Binding& binding = bindings_[row];
      if (binding.flows == 0) continue;
      if (binding.load < kMostlyGone * binding.full) recount(row);
      if (binding.left >= level * binding.load) continue;
      level = binding.left / binding.load;
      bottleneck = row;
    }
    // Flows whose own limit is below that level stop there; the level of everything else only rises by it. Where
    // there are none, the flows of the bottleneck stop at the level.
    const auto stops_at_limit = [&](std::uint32_t flow) { return flows_[flow].limit <= level; };
    const auto crosses = [&](std::uint32_t flow) {
      for (std::uint32_t i = flows_[flow].shared_begin; i < flows_[flow].shared_end; ++i)
        if (shared_[i].capacity == bottleneck) return true;
      return false;
    };
    const bool limited = std::any_of(open_.begin(), open_.end(), stops_at_limit);
    std::size_t kept = 0;
    for (const std::uint32_t flow : open_) {
      if (limited ? stops_at_limit(flow) : crosses(flow)) {
        fix(flow, flows_[flow].weight * (limited ? flows_[flow].limit : level), rates);
      } else {
        open_[kept++] = flow;
      }
    }
    open_.resize(kept);
  }
}

void BandwidthModel::allocate(std::span<double> rates) {
  // A chain's flows follow each other, so it counts once on each capacity, with the largest load of its flows.
  load_.assign(local_.size(), 0);
  largest_.assign(local_.size(), 0);
  for (std::size_t begin = 0, end = 0; begin < flows_.size(); begin = end) {
    for (end = begin; end < flows_.size() && flows_[end].chain == flows_[begin].chain; ++end)
      for (std::uint32_t i = flows_[end].use_begin; i < flows_[end].use_end; ++i) {
        double& most = largest_[uses_[i].capacity];
        most = std::max(most, flows_[end].weight * uses_[i].cost);
      }
    for (std::size_t f = begin; f < end; ++f)
      for (std::uint32_t i = flows_[f].use_begin; i < flows_[f].use_end; ++i) {
        load_[uses_[i].capacity] += std::exchange(largest_[uses_[i].capacity], 0.0);
      }
  }
  for (std::size_t f = 0; f < flows_.size(); ++f) {
    rates[f] = std::numeric_limits<double>::infinity();
    for (std::uint32_t i = flows_[f].use_begin; i < flows_[f].use_end; ++i) {
      const std::uint32_t capacity = uses_[i].capacity;
      rates[f] = std::min(rates[f], flows_[f].weight * local_[capacity].value / load_[capacity]);
    }
  }
}

}  // namespace tutti
