#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "model/document.hpp"
#include "model/guarantee.hpp"
#include "model/route.hpp"
#include "model/route_class.hpp"
#include "model/topology_parts.hpp"

namespace tutti::internal {
namespace {

constexpr std::size_t kMaxEndpoints = 1024;
constexpr std::size_t kMaxVertices = 8192;
constexpr Duration kLongest{1LL << 53};  // what a double holds exactly
constexpr std::size_t kMaxRouteLinks = 1U << 24;

bool is_endpoint(VertexKind kind) { return kind == VertexKind::Memory || kind == VertexKind::Gpu; }
bool in_domain(VertexKind kind) { return kind != VertexKind::Memory && kind != VertexKind::Cpu; }

void check_positive(double value, const Place& place, std::string_view what) {
  if (!(value > 0) || !std::isfinite(value)) fail(place, fmt::format("{} is {:g}; it must be above 0", what, value));
}

/// Weights and costs that lie further apart than this would leave a transfer less than rounding noise.
void check_weight(double value, const Place& place, std::string_view what) {
  if (!(value >= 1e-3 && value <= 1e3))
    fail(place, fmt::format("{} is {:g}; write a number from 0.001 to 1000", what, value));
}

void check_bandwidth(const Bandwidth& bandwidth, const Place& place) {
  check_positive(bandwidth.nominal.value, place, "the nominal bandwidth");
  check_positive(bandwidth.guaranteed.value, place, "the guaranteed bandwidth");
  if (bandwidth.guaranteed > bandwidth.nominal) {
    fail(place, fmt::format("guaranteed {} is above nominal {}; guaranteed is what the machine never falls below",
                            to_string(bandwidth.guaranteed), to_string(bandwidth.nominal)));
  }
}

VertexId resolve(const Topology::Parts& parts, const std::string& name, const Place& place) {
  const auto found = parts.vertex_by_name.find(name);
  if (found != parts.vertex_by_name.end()) return found->second;
  std::vector<std::string_view> names;
  for (const Vertex& vertex : parts.vertices) names.push_back(vertex.name);
  const std::string guess = suggestion(name, names);
  fail(place, fmt::format("there is no vertex '{}';{}", name, guess.empty() ? " add it to 'vertices'" : guess));
}

void add_vertices(Topology::Parts& parts, std::span<const VertexEntry> entries) {
  if (entries.empty()) fail({}, "the machine has no vertices; it needs at least a memory and a GPU");
  if (entries.size() > kMaxVertices) fail(entries.back().place, "more than 8192 vertices; describe a smaller machine");
  for (const auto& [vertex, place] : entries) {
    const VertexId id(parts.vertices.size());
    if (!parts.vertex_by_name.emplace(vertex.name, id).second) {
      fail(place, fmt::format("there are two vertices '{}'; names are unique", vertex.name));
    }
    if (vertex.kind != VertexKind::Gpu && vertex.memory) {
      fail(place, fmt::format("'{}' is no GPU and has 'memory'; only a GPU's memory is counted", vertex.name));
    }
    if (vertex.copy_engines < 1) fail(place, fmt::format("'{}' has no copy engine; a GPU has 1 or more", vertex.name));
    if (!vertex.domain.empty() && !in_domain(vertex.kind)) {
      fail(place, fmt::format("'{}' is a {}; only hubs, switches and GPUs lie in a PCIe domain", vertex.name,
                              to_string(vertex.kind)));
    }
    if (vertex.kind == VertexKind::Memory) parts.memories.push_back(id);
    if (vertex.kind == VertexKind::Gpu) parts.gpus.push_back(id);
    parts.vertices.push_back(vertex);
  }
  if (parts.memories.size() + parts.gpus.size() > kMaxEndpoints) {
    fail(entries.front().place, "more than 1024 memories and GPUs; describe a smaller machine");
  }
}

void add_direction(Topology::Parts& parts, VertexId from, VertexId to, const Bandwidth& bandwidth,
                   const std::optional<GBps>& theoretical, const Place& place) {
  check_bandwidth(bandwidth, place);
  if (theoretical) check_positive(theoretical->value, place, "the theoretical bandwidth");
  if (!parts.link_by_ends.emplace(std::pair(from, to), LinkId(parts.links.size())).second) {
    fail(place, fmt::format("there are two links from '{}' to '{}'; write one with their joint bandwidth",
                            parts.vertices[from.index()].name, parts.vertices[to.index()].name));
  }
  parts.links.push_back({from, to, bandwidth, theoretical});
}

void add_links(Topology::Parts& parts, std::span<const LinkEntry> entries) {
  for (const LinkEntry& entry : entries) {
    const VertexId from = resolve(parts, entry.from, entry.place);
    const VertexId to = resolve(parts, entry.to, entry.place);
    if (from == to) fail(entry.place, fmt::format("this link goes from '{}' to itself; name two vertices", entry.from));
    add_direction(parts, from, to, entry.bandwidth, entry.theoretical, entry.place);
    if (entry.back) add_direction(parts, to, from, *entry.back, entry.back_theoretical, entry.place);
  }
}

CapacityMember resolve_member(const Topology::Parts& parts, const MemberEntry& entry) {
  check_weight(entry.cost, entry.place, "the cost");
  const std::pair ends{resolve(parts, entry.from, entry.place), resolve(parts, entry.to, entry.place)};
  const auto link = parts.link_by_ends.find(ends);
  if (link == parts.link_by_ends.end()) {
    fail(entry.place,
         fmt::format("there is no link from '{}' to '{}'; a member is one direction of a link", entry.from, entry.to));
  }
  return {link->second, entry.cost};
}

void add_shared(Topology::Parts& parts, std::span<const SharedEntry> entries) {
  std::set<std::string_view> names;
  for (const SharedEntry& entry : entries) {
    if (!names.insert(entry.name).second) {
      fail(entry.place, fmt::format("there are two shared capacities '{}'; names are unique", entry.name));
    }
    check_bandwidth(entry.capacity, entry.place);
    SharedCapacity shared{entry.name, entry.capacity, {}};
    std::set<LinkId> links;
    for (const MemberEntry& member : entry.members) {
      shared.members.push_back(resolve_member(parts, member));
      if (!links.insert(shared.members.back().link).second) {
        fail(member.place,
             fmt::format("the link from '{}' to '{}' is a member twice; add up its costs", member.from, member.to));
      }
    }
    if (shared.members.empty()) fail(entry.place, fmt::format("'{}' has no members; name its links", entry.name));
    parts.shared.push_back(std::move(shared));
  }
}

void index_capacities(Topology::Parts& parts) {
  std::vector<std::vector<CapacityUse>> by_link(parts.links.size());
  const auto add_capacity = [&](const Bandwidth& bandwidth) {
    parts.nominal.push_back(bandwidth.nominal.value);
    parts.guaranteed.push_back(bandwidth.guaranteed.value);
    return CapacityId(parts.nominal.size() - 1);
  };
  for (std::size_t i = 0; i < parts.links.size(); ++i) {
    by_link[i].push_back({add_capacity(parts.links[i].bandwidth), 1});
  }
  for (const SharedCapacity& shared : parts.shared) {
    const CapacityId id = add_capacity(shared.capacity);
    for (const CapacityMember& member : shared.members) by_link[member.link.index()].push_back({id, member.cost});
  }
  parts.use_begin.push_back(0);
  for (const auto& uses : by_link) {
    parts.uses.insert(parts.uses.end(), uses.begin(), uses.end());
    parts.use_begin.push_back(static_cast<std::uint32_t>(parts.uses.size()));
  }
}

std::size_t find_root(std::vector<std::size_t>& parent, std::size_t i) {
  while (parent[i] != i) i = parent[i] = parent[parent[i]];
  return i;
}

/// For every vertex the smallest vertex that it is connected with over the links that `passes` lets through.
template <class Passes>
std::vector<std::size_t> components(const Topology::Parts& parts, Passes passes) {
  std::vector<std::size_t> parent(parts.vertices.size());
  std::iota(parent.begin(), parent.end(), std::size_t{0});
  for (const Link& link : parts.links) {
    if (!passes(link)) continue;
    const std::size_t a = find_root(parent, link.from.index());
    const std::size_t b = find_root(parent, link.to.index());
    parent[std::max(a, b)] = std::min(a, b);
  }
  for (std::size_t i = 0; i < parent.size(); ++i) parent[i] = find_root(parent, i);
  return parent;
}

void check_connected(const Topology::Parts& parts, std::span<const VertexEntry> entries) {
  const auto root = components(parts, [](const Link&) { return true; });
  for (std::size_t i = 0; i < root.size(); ++i) {
    if (root[i] == 0) continue;
    fail(entries[i].place, fmt::format("no links connect '{}' with '{}'; the machine must be one piece",
                                       parts.vertices[i].name, parts.vertices[0].name));
  }
}

void find_domains(Topology::Parts& parts) {
  const auto root = components(parts, [&](const Link& link) {
    return in_domain(parts.vertices[link.from.index()].kind) && in_domain(parts.vertices[link.to.index()].kind);
  });
  std::map<std::string, DomainId> named;
  std::map<std::size_t, DomainId> found;
  parts.domain.resize(parts.vertices.size());
  for (std::size_t i = 0; i < parts.vertices.size(); ++i) {
    if (!in_domain(parts.vertices[i].kind)) continue;
    const DomainId next(named.size() + found.size());
    const std::string& name = parts.vertices[i].domain;
    parts.domain[i] =
        name.empty() ? found.emplace(root[i], next).first->second : named.emplace(name, next).first->second;
  }
}

void number_engines(Topology::Parts& parts) {
  for (auto* engines : {&parts.engine_in, &parts.engine_out, &parts.peer_engine_in, &parts.peer_engine_out})
    engines->resize(parts.vertices.size());
  for (const VertexId gpu : parts.gpus) {
    const std::size_t i = gpu.index();
    const int engines = parts.vertices[i].copy_engines;
    const auto next = [&] { return EngineId(parts.engine_count++); };
    parts.engine_in[i] = next();
    parts.engine_out[i] = engines == 1 ? parts.engine_in[i] : next();
    parts.peer_engine_in[i] = engines < kPeerEngines ? parts.engine_in[i] : next();
    parts.peer_engine_out[i] = engines < kPeerEngines ? parts.engine_out[i] : next();
  }
}

/// Links that leave each vertex, in the order of the file.
std::vector<std::vector<LinkId>> outgoing_links(const Topology::Parts& parts) {
  std::vector<std::vector<LinkId>> outgoing(parts.vertices.size());
  for (std::size_t i = 0; i < parts.links.size(); ++i) outgoing[parts.links[i].from.index()].push_back(LinkId(i));
  return outgoing;
}

/// Breadth-first from one memory or GPU: the link by which each vertex is reached first. Expanding vertices in the
/// order in which they were reached, and links in the order of the file, breaks ties as the contract says.
std::vector<std::optional<LinkId>> shortest_path_tree(const Topology::Parts& parts,
                                                      const std::vector<std::vector<LinkId>>& outgoing,
                                                      VertexId source) {
  std::vector<std::optional<LinkId>> reached_by(parts.vertices.size());
  std::vector<VertexId> queue{source};
  for (std::size_t head = 0; head < queue.size(); ++head) {
    const VertexId at = queue[head];
    if (at != source && is_endpoint(parts.vertices[at.index()].kind)) continue;
    for (const LinkId link : outgoing[at.index()]) {
      const VertexId next = parts.links[link.index()].to;
      if (next == source || reached_by[next.index()]) continue;
      reached_by[next.index()] = link;
      queue.push_back(next);
    }
  }
  return reached_by;
}

void find_routes(Topology::Parts& parts) {
  std::vector<VertexId> endpoints;
  parts.endpoint.assign(parts.vertices.size(), static_cast<std::uint32_t>(kMaxVertices));
  for (std::size_t i = 0; i < parts.vertices.size(); ++i) {
    if (!is_endpoint(parts.vertices[i].kind)) continue;
    parts.endpoint[i] = static_cast<std::uint32_t>(endpoints.size());
    endpoints.emplace_back(i);
  }
  parts.endpoint_count = endpoints.size();
  parts.route_begin.push_back(0);
  const auto outgoing = outgoing_links(parts);
  for (const VertexId source : endpoints) {
    const auto reached_by = shortest_path_tree(parts, outgoing, source);
    for (const VertexId target : endpoints) {
      const auto begin = static_cast<std::ptrdiff_t>(parts.route_links.size());
      for (VertexId at = target; reached_by[at.index()]; at = parts.links[reached_by[at.index()]->index()].from) {
        parts.route_links.push_back(*reached_by[at.index()]);
      }
      if (parts.route_links.size() > kMaxRouteLinks) {
        fail({}, "the routes have more than 16 million links together; describe a smaller machine");
      }
      std::reverse(parts.route_links.begin() + begin, parts.route_links.end());
      parts.route_begin.push_back(static_cast<std::uint32_t>(parts.route_links.size()));
    }
  }
}

/// Finds the classes of all routes between memories and GPUs.
/// @param machine  looks into the same parts, complete but for the classes.
void find_route_classes(const Topology& machine, Topology::Parts& parts) {
  parts.route_classes.clear();
  parts.route_class_of.assign(parts.endpoint_count * parts.endpoint_count, kNone);
  std::map<std::vector<double>, std::uint32_t> known;
  const auto add = [&](VertexId from, VertexId to, double weight, CopyPort stream) {
    const auto route = machine.route(from, to);
    if (route.empty()) return;
    RouteClass kind = make_route_class(machine, route, {}, weight);
    if (parts.table && (from == parts.memories.front() || to == parts.memories.front()))
      kind.streams = PortSet{1} << stream.position();
    const auto [entry, is_new] = known.emplace(route_class_key(kind), static_cast<std::uint32_t>(known.size()));
    if (is_new) parts.route_classes.push_back(std::move(kind));
    parts.route_class_of[*parts.pair_of(from, to)] = entry->second;
  };
  for (const VertexId memory : parts.memories) {
    for (std::uint32_t g = 0; g < parts.gpus.size(); ++g) {
      add(memory, parts.gpus[g], parts.weights.h2d, {g, Direction::HostToDevice});
      add(parts.gpus[g], memory, parts.weights.d2h, {g, Direction::DeviceToHost});
    }
  }
}

std::uint32_t resolve_gpu(const Topology::Parts& parts, const std::string& name, const Place& place) {
  const VertexId vertex = resolve(parts, name, place);
  const auto gpu = std::find(parts.gpus.begin(), parts.gpus.end(), vertex);
  if (gpu == parts.gpus.end()) fail(place, fmt::format("'{}' is no GPU; the table has GPUs alone", name));
  return static_cast<std::uint32_t>(gpu - parts.gpus.begin());
}

PortRates resolve_entry(const Topology::Parts& parts, const TableEntry& entry) {
  std::map<std::uint32_t, double> rates;
  const auto add = [&](const auto& of_gpus, Direction direction) {
    for (const auto& [name, rate] : of_gpus) {
      const CopyPort stream{resolve_gpu(parts, name, entry.place), direction};
      if (!rates.emplace(stream.position(), rate).second)
        fail(entry.place, fmt::format("'{}' stands twice under {}; give it one rate", name, to_string(direction)));
    }
  };
  add(entry.h2d, Direction::HostToDevice);
  add(entry.d2h, Direction::DeviceToHost);
  PortRates result{0, {}, entry.source};
  for (const auto& [position, rate] : rates) {
    result.streams |= PortSet{1} << position;
    result.rates.push_back(rate);
  }
  return result;
}

void check_route(const Topology& machine, std::uint32_t position, const Place& place) {
  const CopyPort stream = CopyPort::at(position);
  const auto [from, to] = ends_of(machine, stream);
  if (!machine.route(from, to).empty()) return;
  const bool in = stream.direction == Direction::HostToDevice;
  fail(place,
       fmt::format("no way leads {} '{}' {} '{}'; leave the stream out of the table", in ? "from" : "to",
                   machine.vertex(in ? from : to).name, in ? "to" : "from", machine.vertex(in ? to : from).name));
}

/// @param machine  looks into the same parts, complete but for the table and the data derived from it.
void add_table(const Topology& machine, Topology::Parts& parts,
               std::span<const std::pair<std::vector<std::string>, Place>> symmetric,
               std::span<const TableEntry> entries) {
  std::vector<std::vector<std::uint32_t>> groups;
  for (const auto& [names, place] : symmetric) {
    groups.emplace_back();
    for (const std::string& name : names) groups.back().push_back(resolve_gpu(parts, name, place));
  }
  if (entries.empty()) return;
  if (parts.gpus.size() > MeasuredTable::kMostGpus) {
    fail(entries.front().place,
         fmt::format("a measured table serves {} GPUs at most; leave it out", MeasuredTable::kMostGpus));
  }
  if (parts.memories.empty()) fail(entries.front().place, "a measured table needs a host memory; add a vertex");
  std::vector<PortRates> rows;
  std::vector<Place> places;
  for (const TableEntry& entry : entries) {
    rows.push_back(resolve_entry(parts, entry));
    places.push_back(entry.place);
    for (const std::uint32_t position : positions_of(rows.back().streams)) check_route(machine, position, entry.place);
  }
  const Place& first = symmetric.empty() ? entries.front().place : symmetric.front().second;
  parts.table = value_at(first, MeasuredTable::make(parts.gpus.size(), std::move(groups), std::move(rows), places));
}

/// "the link cpu0 -> gpu0", "the shared capacity chip".
std::string capacity_name(const Topology::Parts& parts, CapacityId capacity) {
  if (capacity.index() >= parts.links.size())
    return "the shared capacity " + parts.shared[capacity.index() - parts.links.size()].name;
  const Link& link = parts.links[capacity.index()];
  return fmt::format("the link {} -> {}", parts.vertices[link.from.index()].name, parts.vertices[link.to.index()].name);
}

/// "h2d gpu0 gpu1, d2h gpu2".
std::string names_of(const Topology::Parts& parts, PortSet streams) {
  std::string text;
  for (const Direction direction : {Direction::HostToDevice, Direction::DeviceToHost}) {
    std::string names;
    for (const std::uint32_t position : positions_of(streams))
      if (CopyPort::at(position).direction == direction)
        names += " " + parts.vertices[parts.gpus[position / 2].index()].name;
    if (!names.empty()) text += fmt::format("{}{}{}", text.empty() ? "" : ", ", to_string(direction), names);
  }
  return text;
}

/// Lowers guaranteed bandwidths until the graph guarantees no more than any row of the table.
/// @param machine  looks into the same parts, complete.
void hold_below_table(const Topology& machine, Topology::Parts& parts, std::span<const TableEntry> entries) {
  constexpr int kGentleRounds = 200;
  constexpr double kNotWorthAWord = 1 - 1e-3;  // of what it was; the last digit of a file is less
  if (!parts.table) return;
  const std::vector<double> before = parts.guaranteed;
  BelowTable below;
  for (int round = 0;; ++round) {
    auto lowered = below.lower_once(machine, round < kGentleRounds);
    if (!lowered) break;
    parts.guaranteed = *std::move(lowered);
    find_route_classes(machine, parts);
  }
  const auto bandwidth_of = [&](std::size_t capacity) -> Bandwidth& {
    return capacity < parts.links.size() ? parts.links[capacity].bandwidth
                                         : parts.shared[capacity - parts.links.size()].capacity;
  };
  for (const BelowTable::Reason& why : below.reasons()) {
    const double now = parts.guaranteed[why.capacity.index()];
    bandwidth_of(why.capacity.index()).guaranteed = {now};
    if (now > before[why.capacity.index()] * kNotWorthAWord) continue;
    const Error note{
        ErrorCode::InvalidInput,
        fmt::format("with [{}] active the table gives {} {:.4g} GB/s, and the links guarantee it {:.4g}; {} counts as "
                    "guaranteed {:.4g} GB/s in place of {:.4g}; write that there, or measure the row again",
                    names_of(parts, why.streams), names_of(parts, PortSet{1} << why.position), why.table, why.graph,
                    capacity_name(parts, why.capacity), now, before[why.capacity.index()]),
        entries[parts.table->row(why.streams) - 1].place};
    parts.notes.push_back(note.text());
  }
}

PeerAccess resolve_peers(const Topology::Parts& parts, const PeerAccessEntry& entry) {
  PeerAccess access{entry.mode, {}};
  for (const auto& [from, to] : entry.pairs) {
    const std::pair pair{resolve(parts, from, entry.place), resolve(parts, to, entry.place)};
    for (const VertexId end : {pair.first, pair.second}) {
      const Vertex& vertex = parts.vertices[end.index()];
      if (vertex.kind != VertexKind::Gpu) {
        fail(entry.place,
             fmt::format("'{}' is a {}; peer access is between GPUs", vertex.name, to_string(vertex.kind)));
      }
    }
    if (pair.first == pair.second) fail(entry.place, fmt::format("'{}' is paired with itself; name two GPUs", from));
    access.pairs.push_back(pair);
  }
  return access;
}

void check_cost(const Cost& cost, std::string_view what) {
  if (cost.nominal < Duration{0} || cost.guaranteed > kLongest)
    fail({}, "a set-up time or margin is absurd; write 0 to 100 days");
  if (cost.guaranteed < cost.nominal)
    fail({}, fmt::format("the set-up time of {} is guaranteed to be at most {}, below its nominal {}; raise the first",
                         what, to_string(cost.guaranteed), to_string(cost.nominal)));
}

void check_setup(const SetupTimes& setup) {
  check_cost(setup.batch, "a batch");
  for (const NamedCost& named : kFurtherCosts) check_cost(setup.*named.cost, named.what);
  for (const CopyKind route : kCopyKinds) {
    const CopyCost& cost = setup.transfer.of(route);
    check_cost(cost.each, fmt::format("a copy ({})", to_string(route)));
    check_cost(cost.first, fmt::format("a chain's first copy ({})", to_string(route)));
    if (cost.below.count < 0) fail({}, "the size below which copies are small is negative; write one like 256 KiB");
    if (cost.small) check_bandwidth(*cost.small, {});
  }
}

void check_scalars(const Topology::Parts& parts) {
  check_weight(parts.weights.h2d, {}, "the sharing weight h2d");
  check_weight(parts.weights.d2h, {}, "the sharing weight d2h");
  check_weight(parts.weights.peer, {}, "the sharing weight peer");
  const double relative = parts.margin.relative;
  if (!(relative >= 0) || !std::isfinite(relative)) {
    fail({}, "the relative margin is negative; write 0 or more");
  }
  if (!(parts.spread >= 0 && parts.spread <= kWidestSpread)) {
    fail({}, fmt::format("the spread of rates is {}; write a share from 0 to {}", parts.spread, kWidestSpread));
  }
  check_setup(parts.setup);
  if (parts.margin.absolute < Duration{0} || parts.margin.absolute > kLongest)
    fail({}, "a set-up time or margin is absurd; write 0 to 100 days");
  if (parts.staging_chunk.count < 0) fail({}, "the staging chunk is negative; write a size like 8 MiB");
}

}  // namespace

Expected<Topology> TopologyBuilder::build() const {
  return reading([&] {
    auto parts = std::make_shared<Topology::Parts>();
    parts->name = name_;
    parts->weights = weights_;
    parts->setup = setup_;
    parts->margin = margin_;
    parts->spread = spread_;
    parts->staging_chunk = staging_chunk_;
    parts->gate = gate_;
    check_scalars(*parts);
    add_vertices(*parts, vertices_);
    add_links(*parts, links_);
    add_shared(*parts, shared_);
    check_connected(*parts, vertices_);
    parts->peer_access = resolve_peers(*parts, peer_access_);
    index_capacities(*parts);
    find_domains(*parts);
    number_engines(*parts);
    find_routes(*parts);
    parts->provenance = provenance_;
    Topology machine(parts);
    add_table(machine, *parts, symmetric_, table_);
    find_route_classes(machine, *parts);
    hold_below_table(machine, *parts, table_);
    return machine;
  });
}

}  // namespace tutti::internal
