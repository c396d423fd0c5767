#include "model/sharing/route_rates.hpp"

#include <set>

#include "model/machine/route_class.hpp"
#include "model/transfer/transfer_method.hpp"

namespace tutti::internal {
namespace {

Transfer transfer_of(const Topology& machine, const CopyRoute& copy_route) {
  const auto [from, to] = *ends_of(machine, copy_route);
  return {from, to, Bytes{1}, {}, {}};
}

}  // namespace

std::optional<std::pair<VertexId, VertexId>> ends_of(const Topology& machine, const CopyRoute& copy_route) {
  const auto vertex = [&](const RouteEnd& end) -> std::optional<VertexId> {
    const auto all = end.gpu ? machine.gpus() : machine.memories();
    return end.position < all.size() ? std::optional(all[end.position]) : std::nullopt;
  };
  const auto from = vertex(copy_route.from), to = vertex(copy_route.to);
  if (!from || !to || *from == *to || (!copy_route.from.gpu && !copy_route.to.gpu)) return std::nullopt;
  if (machine.route(*from, *to).empty()) return std::nullopt;
  if (copy_route.from.gpu && copy_route.to.gpu && !machine.has_peer_access(*from, *to)) return std::nullopt;
  return std::pair(*from, *to);
}

bool can_be_active(const Topology& machine, const CopyRouteSet& copy_routes) {
  std::set<EngineId> held;
  for (const CopyRoute& copy_route : copy_routes) {
    if (!ends_of(machine, copy_route)) return false;
    const auto [one, other] = find_route(machine, transfer_of(machine, copy_route)).engines;
    if (!held.insert(one).second || (other != one && !held.insert(other).second)) return false;
  }
  return true;
}

std::span<const LinkId> links_of(const Topology& machine, const CopyRoute& copy_route) {
  const auto [from, to] = *ends_of(machine, copy_route);
  return machine.route(from, to);
}

std::vector<double> RouteRates::find(const Topology& machine, Basis basis, const CopyRouteSet& copy_routes) {
  std::vector<RouteClass> own;  // of copies between GPUs
  for (const CopyRoute& copy_route : copy_routes)
    if (copy_route.from.gpu && copy_route.to.gpu)
      own.push_back(make_route_class(machine, links_of(machine, copy_route), {}, machine.weights().peer));
  bandwidth_.reset(machine, basis, own, copy_routes.size());
  std::vector<std::uint32_t> kinds;
  auto next = static_cast<std::uint32_t>(machine.route_classes().size());
  for (const CopyRoute& copy_route : copy_routes) {
    const auto [from, to] = *ends_of(machine, copy_route);
    kinds.push_back(
        bandwidth_.add_flow(copy_route.from.gpu && copy_route.to.gpu ? next++ : machine.route_class(from, to)));
  }
  bandwidth_.finish();
  bandwidth_.restart();
  for (const std::uint32_t kind : kinds) bandwidth_.start(bandwidth_.group(kind));
  bandwidth_.solve();
  std::vector<double> rates;
  for (const std::uint32_t kind : kinds) rates.push_back(bandwidth_.rate(bandwidth_.group(kind)).value);
  return rates;
}

}  // namespace tutti::internal
