#include "runtime/sim/sim_copies.hpp"

#include <algorithm>
#include <limits>

#include "model/base/expects.hpp"

namespace tutti::internal {

std::uint32_t SimCopies::add(const RouteClass& route) {
  TUTTI_EXPECTS(flowing_.empty(), "copies are made known before any is under way");
  loaded_ = false;
  routes_.push_back(route);
  copies_.emplace_back();
  flowing_.reserve(copies_.size());
  return static_cast<std::uint32_t>(copies_.size() - 1);
}

void SimCopies::load() {
  if (loaded_) return;
  const auto own = static_cast<std::uint32_t>(machine_->route_classes().size());
  now_ = routes_;
  for (RouteClass& route : now_) route.alone.guaranteed = alone(route);
  model_.reset(*machine_, Basis::Guaranteed, now_, now_.size());
  for (std::uint32_t i = 0; i < copies_.size(); ++i) copies_[i].kind = model_.add_flow(own + i);
  model_.finish();
  for (const std::uint32_t copy : flowing_) model_.start(model_.group(copies_[copy].kind));
  loaded_ = true;
  solved_ = false;
}

/// The rate of a copy with nothing beside it, on the machine as it is.
GBps SimCopies::alone(const RouteClass& route) const {
  double rate = route.capped ? route.alone.guaranteed.value : std::numeric_limits<double>::infinity();
  for (const CapacityUse& use : route.guaranteed_uses)
    rate = std::min(rate, machine_->capacities(Basis::Guaranteed)[use.capacity.index()] / use.cost);
  return {rate};
}

void SimCopies::share_as(const Topology& machine, double now) {
  if (&machine == machine_) return;
  pass(now);
  machine_ = &machine;
  loaded_ = false;
  load();
}

void SimCopies::start(std::uint32_t copy, double bytes, double now) {
  load();
  pass(now);
  copies_[copy].left = bytes;
  copies_[copy].flows = true;
  flowing_.push_back(copy);
  model_.start(model_.group(copies_[copy].kind));
  solved_ = false;
}

void SimCopies::stop(std::uint32_t copy, double now) {
  pass(now);
  copies_[copy].flows = false;
  std::erase(flowing_, copy);
  model_.stop(model_.group(copies_[copy].kind));
  solved_ = false;
}

double SimCopies::end(std::uint32_t copy) {
  TUTTI_EXPECTS(copies_[copy].flows, "a copy that ends is under way");
  if (!solved_ && !flowing_.empty()) model_.solve();
  solved_ = true;
  return at_ + std::max(copies_[copy].left, 0.0) / rate(copies_[copy]);
}

/// Bytes flow until now.
void SimCopies::pass(double now) {
  if (now <= at_) return;
  if (!solved_ && !flowing_.empty()) model_.solve();
  solved_ = true;
  for (const std::uint32_t copy : flowing_) copies_[copy].left -= (now - at_) * rate(copies_[copy]);
  at_ = now;
}

}  // namespace tutti::internal
