#include "model/machine/topology.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/base/expects.hpp"
#include "model/machine/topology_parts.hpp"

namespace tutti::internal {

const MachineSpec& Topology::spec() const { return parts_->spec; }
std::span<const Link> Topology::links() const { return parts_->links; }
std::span<const SharedCapacity> Topology::shared() const { return parts_->shared; }
std::span<const BackgroundFlow> Topology::background() const { return parts_->background; }
const PeerAccess& Topology::peer_access() const { return parts_->peer_access; }
const std::shared_ptr<const MeasuredTable>& Topology::shared_table() const { return parts_->table; }
std::span<const Error> Topology::notes() const { return parts_->notes; }
std::span<const VertexId> Topology::memories() const { return parts_->memories; }
std::span<const VertexId> Topology::gpus() const { return parts_->gpus; }
std::span<const VertexId> Topology::devices() const { return parts_->devices; }
std::span<const RouteClass> Topology::route_classes() const { return parts_->route_classes; }
std::size_t Topology::engine_count() const { return parts_->engine_count; }

const SetupTimes& Topology::setup() const { return parts_->led_by_gpu ? *parts_->led_by_gpu : parts_->spec.setup; }
bool Topology::is_led_by_gpu() const { return parts_->led_by_gpu.has_value(); }

std::optional<VertexId> Topology::find_vertex(std::string_view name) const {
  const auto found = parts_->vertex_by_name.find(name);
  if (found == parts_->vertex_by_name.end()) return std::nullopt;
  return found->second;
}

std::optional<LinkId> Topology::find_link(VertexId from, VertexId to) const {
  const auto found = parts_->link_by_ends.find({from, to});
  if (found == parts_->link_by_ends.end()) return std::nullopt;
  return found->second;
}

std::span<const double> Topology::capacities(Basis basis) const {
  return basis == Basis::Nominal ? parts_->nominal : parts_->guaranteed;
}

std::string Topology::capacity_name(CapacityId capacity) const {
  if (capacity.index() >= links().size())
    return "the shared capacity " + shared()[capacity.index() - links().size()].name;
  const Link& limited = links()[capacity.index()];
  return fmt::format("the link {} -> {}", vertex(limited.from).name, vertex(limited.to).name);
}

std::span<const CapacityUse> Topology::uses(LinkId link) const {
  const std::uint32_t begin = parts_->use_begin[link.index()];
  const std::uint32_t end = parts_->use_begin[link.index() + 1];
  return std::span<const CapacityUse>(parts_->uses).subspan(begin, end - begin);
}

std::span<const LinkId> Topology::route(VertexId from, VertexId to) const {
  const auto pair = parts_->pair_of(from, to);
  if (!pair) return {};
  const std::size_t begin = parts_->route_begin[*pair];
  const std::size_t end = parts_->route_begin[*pair + 1];
  return std::span<const LinkId>(parts_->route_links).subspan(begin, end - begin);
}

std::uint32_t Topology::route_class(VertexId from, VertexId to) const {
  const auto pair = parts_->pair_of(from, to);
  return pair ? parts_->route_class_of[*pair] : kNone;
}

DomainId Topology::domain(VertexId vertex) const {
  TUTTI_EXPECTS(parts_->domain[vertex.index()], "a vertex that is no memory and no cpu has a PCIe domain");
  return *parts_->domain[vertex.index()];
}

bool Topology::has_peer_access(VertexId from, VertexId to) const {
  const PeerAccess& access = parts_->peer_access;
  switch (access.mode) {
    case PeerMode::All: return true;
    case PeerMode::None: return false;
    case PeerMode::SameDomain: return domain(from) == domain(to);
    case PeerMode::Pairs: break;
  }
  return std::any_of(access.pairs.begin(), access.pairs.end(),
                     [&](const auto& pair) { return pair == std::pair(from, to) || pair == std::pair(to, from); });
}

Topology Topology::without_peer_access() const {
  auto parts = std::make_shared<Parts>(*parts_);
  parts->peer_access = {PeerMode::None, {}};  // nothing is derived from it
  parts->spec.peer_access = {PeerMode::None, {}};
  return Topology(std::move(parts));
}

std::optional<Topology> Topology::led_by_gpu(std::size_t lanes) const {
  auto costs = tutti::led_by_gpu(spec().setup, lanes);
  if (!costs) return std::nullopt;
  auto parts = std::make_shared<Parts>(*parts_);
  parts->led_by_gpu = std::move(costs);
  return Topology(std::move(parts));
}

Topology Topology::led_by_host() const {
  if (!is_led_by_gpu()) return *this;
  auto parts = std::make_shared<Parts>(*parts_);
  parts->led_by_gpu.reset();
  return Topology(std::move(parts));
}

Topology Topology::with_notes(std::vector<Error> notes) const {
  auto parts = std::make_shared<Parts>(*parts_);
  parts->notes = std::move(notes);
  return Topology(std::move(parts));
}

EngineId Topology::engine_in(VertexId end) const { return parts_->engine_in[end.index()]; }
EngineId Topology::engine_out(VertexId end) const { return parts_->engine_out[end.index()]; }
EngineId Topology::peer_engine_in(VertexId gpu) const { return parts_->peer_engine_in[gpu.index()]; }
EngineId Topology::peer_engine_out(VertexId gpu) const { return parts_->peer_engine_out[gpu.index()]; }

bool operator==(const Topology& a, const Topology& b) {
  return a.parts_ == b.parts_ || (a.parts_->led_by_gpu == b.parts_->led_by_gpu && a.spec() == b.spec());
}

}  // namespace tutti::internal
