#include "model/way_rates.hpp"

#include <set>

#include "model/route.hpp"
#include "model/way_kind.hpp"

namespace tutti {
namespace {

Transfer transfer_of(const Topology& machine, const Way& way) {
  const auto [from, to] = *ends_of(machine, way);
  return {from, to, Bytes{1}, {}, {}};
}

}  // namespace

std::optional<std::pair<VertexId, VertexId>> ends_of(const Topology& machine, const Way& way) {
  const auto vertex = [&](const WayEnd& end) -> std::optional<VertexId> {
    const auto all = end.gpu ? machine.gpus() : machine.memories();
    return end.position < all.size() ? std::optional(all[end.position]) : std::nullopt;
  };
  const auto from = vertex(way.from), to = vertex(way.to);
  if (!from || !to || *from == *to || (!way.from.gpu && !way.to.gpu)) return std::nullopt;
  if (machine.route(*from, *to).empty()) return std::nullopt;
  if (way.from.gpu && way.to.gpu && !machine.has_peer_access(*from, *to)) return std::nullopt;
  return std::pair(*from, *to);
}

bool can_be_active(const Topology& machine, const WaySet& ways) {
  std::set<EngineId> held;
  for (const Way& way : ways) {
    if (!ends_of(machine, way)) return false;
    const auto [one, other] = find_route(machine, transfer_of(machine, way)).engines;
    if (!held.insert(one).second || (other != one && !held.insert(other).second)) return false;
  }
  return true;
}

std::span<const LinkId> links_of(const Topology& machine, const Way& way) {
  const auto [from, to] = *ends_of(machine, way);
  return machine.route(from, to);
}

std::vector<double> WayRates::find(const Topology& machine, Basis basis, const WaySet& ways) {
  std::vector<WayKind> own;  // of copies between GPUs
  for (const Way& way : ways)
    if (way.from.gpu && way.to.gpu)
      own.push_back(make_way_kind(machine, links_of(machine, way), {}, machine.weights().peer));
  bandwidth_.reset(machine, basis, own, ways.size());
  std::vector<std::uint32_t> kinds;
  auto next = static_cast<std::uint32_t>(machine.way_kinds().size());
  for (const Way& way : ways) {
    const auto [from, to] = *ends_of(machine, way);
    kinds.push_back(bandwidth_.add_flow(way.from.gpu && way.to.gpu ? next++ : machine.way_kind(from, to)));
  }
  bandwidth_.finish();
  bandwidth_.restart();
  for (const std::uint32_t kind : kinds) bandwidth_.start(bandwidth_.group(kind));
  bandwidth_.solve();
  std::vector<double> rates;
  for (const std::uint32_t kind : kinds) rates.push_back(bandwidth_.rate(bandwidth_.group(kind)).value);
  return rates;
}

}  // namespace tutti
