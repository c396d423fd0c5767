#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "model/base/document.hpp"
#include "model/base/expects.hpp"
#include "model/base/suggestion.hpp"
#include "model/machine/machine_fields.hpp"
#include "model/machine/ports.hpp"
#include "model/machine/route_class.hpp"
#include "model/machine/topology_parts.hpp"

namespace tutti::internal {
namespace {

constexpr std::size_t kMaxEndpoints = 1024;
constexpr Bytes kSmallestBuffer{64 << 10}, kLargestBuffer{64 << 20};  // of pageable memory
constexpr Bytes kLargestCrossover{1 << 30};
constexpr std::size_t kMaxVertices = 8192;
constexpr Duration kLongest{1LL << 53};  // what a double holds exactly
constexpr std::size_t kMaxRouteLinks = 1U << 24;

bool in_domain(VertexKind kind) { return kind != VertexKind::Memory && kind != VertexKind::Cpu; }

using Parts = Topology::Parts;

void check_positive(double value, Faults& faults, const std::string& field, std::string_view what) {
  if (value > 0 && std::isfinite(value)) return;
  faults.add(field, fmt::format("{} is {:g}; it must be above 0", what, value));
}

void check_bandwidth(const Bandwidth& bandwidth, Faults& faults, const std::string& field) {
  check_positive(bandwidth.nominal.value, faults, field, "the nominal bandwidth");
  check_positive(bandwidth.guaranteed.value, faults, field, "the guaranteed bandwidth");
  if (bandwidth.guaranteed > bandwidth.nominal) {
    faults.add(field, fmt::format("guaranteed {} is above nominal {}; guaranteed is what the machine never falls below",
                                  to_string(bandwidth.guaranteed), to_string(bandwidth.nominal)));
  }
}

void check_load(const LoadRate& load, Faults& faults, const std::string& field) {
  check_positive(load.nominal.value, faults, field, "the usual rate");
  check_positive(load.most.value, faults, field, "the highest rate");
  if (load.most < load.nominal)
    faults.add(path_of(field, "most"),
               fmt::format("most {} is below nominal {}; most is what the flow never exceeds, so raise it",
                           to_string(load.most), to_string(load.nominal)));
}

void check_cost(const Cost& cost, Faults& faults, const std::string& field) {
  if (cost.nominal < Duration{0} || cost.guaranteed > kLongest)
    return faults.add(field, "this set-up time is absurd; write 0 to 100 days");
  if (cost.guaranteed < cost.nominal)
    faults.add(
        path_of(field, "guaranteed"),
        fmt::format("guaranteed {} is below nominal {}; guaranteed is what the machine never exceeds, so raise it",
                    to_string(cost.guaranteed), to_string(cost.nominal)));
}

void check_gap(const Gap& gap, Faults& faults, const std::string& field) {
  constexpr Bytes kLongestGap{1 << 20};
  const Bytes in_step = gap.in_step.value_or(gap.guaranteed);
  if (gap.nominal.count < 0 || std::max({gap.nominal, gap.guaranteed, in_step}) > kLongestGap)
    return faults.add(field, "this gap is absurd; write 0 B to 1 MiB");
  if (gap.guaranteed < gap.nominal)
    faults.add(path_of(field, "guaranteed"),
               fmt::format("guaranteed {} is below nominal {}; guaranteed is what no row exceeds, so raise it",
                           to_string(gap.guaranteed), to_string(gap.nominal)));
  if (in_step < gap.guaranteed)
    faults.add(path_of(field, "in_step"),
               fmt::format("in_step {} is below guaranteed {}; rows that are in step with the memory are slowest, so "
                           "raise it",
                           to_string(in_step), to_string(gap.guaranteed)));
}

void check_copy_cost(const CopyCost& cost, Faults& faults, const std::string& field) {
  check_cost(cost.each, faults, field);
  check_cost(cost.first, faults, path_of(field, "first"));
  if (cost.led_first) check_cost(*cost.led_first, faults, path_of(field, "led_first"));
  check_cost(cost.carried.more, faults, path_of(path_of(field, "carried"), "more"));
  if (cost.below.count < 0)
    faults.add(path_of(field, "below"), "the size below which copies are small is negative; write one like 256 KiB");
  check_gap(cost.gap, faults, path_of(field, "gap"));
  if (cost.small) check_bandwidth(*cost.small, faults, path_of(field, "bandwidth"));
  for (std::size_t i = 0; i < cost.sizes.size(); ++i)
    check_cost(cost.sizes[i].more, faults, path_of(path_of(path_of(field, "sizes"), i), "more"));
}

void check_setup(const SetupTimes& setup, Faults& faults) {
  for_each_field<SetupTimes>([&](const auto& row) {
    const std::string field = path_of("setup", row.key);
    using Member = std::remove_cvref_t<decltype(setup.*row.member)>;
    if constexpr (std::is_same_v<Member, Cost>) {
      check_cost(setup.*row.member, faults, field);
    } else if constexpr (std::is_same_v<Member, std::optional<Cost>>) {
      if (setup.*row.member) check_cost(*(setup.*row.member), faults, field);
    } else {
      const auto& classes = (setup.*row.member).classes;
      for (std::size_t i = 0; i < classes.size(); ++i)
        if (i == 0 || classes[i] != classes[i - 1])
          check_copy_cost(classes[i], faults, path_of(field, to_string(kCopyKinds[i])));
    }
  });
  const auto [there, missing] =
      setup.conductor ? std::pair("conductor", "conductor_job") : std::pair("conductor_job", "conductor");
  if (setup.conductor.has_value() != setup.conductor_job.has_value() && !faults.unread(path_of("setup", missing)))
    faults.add(path_of("setup", there),
               fmt::format("a GPU leads jobs with both of its costs; add '{}', or leave '{}' out", missing, there));
  if (setup.conductor_visit && !setup.conductor && !setup.conductor_job &&
      !faults.unread(path_of("setup", "conductor")))
    faults.add(path_of("setup", "conductor_visit"),
               "it is part of what a GPU takes that leads jobs; add 'conductor' and 'conductor_job', or leave it out");
  if (setup.conductor_jobs && !setup.conductor_job && !faults.unread(path_of("setup", "conductor_job")))
    faults.add(path_of("setup", "conductor_jobs"),
               "it is how long jobs in a row are held up that a GPU leads; add 'conductor_job', or leave it out");
  if (setup.conductor_lane && !setup.conductor_visit && !faults.unread(path_of("setup", "conductor_visit")))
    faults.add(
        path_of("setup", "conductor_lane"),
        "a 'conductor' that has no lanes in it says nothing of what it does beside them; add 'conductor_visit', or "
        "leave 'conductor_lane' out");
}

void check_scalars(const MachineSpec& spec, Faults& faults) {
  check_fields(spec, faults);
  check_setup(spec.setup, faults);
  if (spec.margin.absolute < Duration{0} || spec.margin.absolute > kLongest)
    faults.add("margin.absolute", "this margin is absurd; write 0 to 100 days");
  if (spec.staging.chunk.count < 0)
    faults.add("staging.chunk", "the staging chunk is negative; write a size like 8 MiB");
}

std::optional<VertexId> resolve(const Parts& parts, const std::string& name, Faults& faults, const std::string& field) {
  const auto found = parts.vertex_by_name.find(name);
  if (found != parts.vertex_by_name.end()) return found->second;
  if (faults.incomplete("vertices")) return std::nullopt;
  std::vector<std::string_view> names;
  for (const Vertex& vertex : parts.spec.vertices) names.push_back(vertex.name);
  faults.add(field,
             fmt::format("there is no vertex '{}';{}", name, suggestion_or(name, names, "add it to 'vertices'")));
  return std::nullopt;
}

void check_vertex(const Vertex& vertex, Faults& faults, const std::string& field) {
  if (vertex.kind != VertexKind::Gpu && vertex.memory) {
    faults.add(field, fmt::format("'{}' is no GPU and has 'memory'; only a GPU's memory is counted", vertex.name));
  }
  if (!vertex.domain.empty() && !in_domain(vertex.kind)) {
    faults.add(field, fmt::format("'{}' is a {}; only hubs, switches, GPUs and devices lie in a PCIe domain",
                                  vertex.name, to_string(vertex.kind)));
  }
  if (vertex.pageable && vertex.kind != VertexKind::Memory)
    faults.add(field, fmt::format("'{}' is a {}; only a memory is pageable", vertex.name, to_string(vertex.kind)));
  if (vertex.pageable && (vertex.buffer < kSmallestBuffer || vertex.buffer > kLargestBuffer))
    faults.add(path_of(field, "buffer"),
               fmt::format("a buffer of {} is no use; write one from 64 KiB to 64 MiB", to_string(vertex.buffer)));
  if (vertex.pageable && vertex.crossover > kLargestCrossover)
    faults.add(path_of(field, "crossover"),
               fmt::format("a crossover of {} leaves the producers nothing to do; write one up to 1 GiB",
                           to_string(vertex.crossover)));
}

/// Buffers of pageable memory lie in the first memory, and measured tables are of copies of it.
void check_first_memory(const Parts& parts, Faults& faults) {
  if (parts.memories.empty() || !parts.spec.vertices[parts.memories.front().index()].pageable) return;
  faults.add(path_of("vertices", parts.memories.front().index()),
             fmt::format("'{}' is pageable and the first memory; list the memory that its pinned buffers lie in first",
                         parts.spec.vertices[parts.memories.front().index()].name));
}

void add_vertices(Parts& parts, Faults& faults) {
  const auto& vertices = parts.spec.vertices;
  if (vertices.empty()) faults.add("vertices", "the machine has no vertices; it needs at least a memory and a GPU");
  if (vertices.size() > kMaxVertices) {
    return faults.add(path_of("vertices", kMaxVertices), "more than 8192 vertices; describe a smaller machine");
  }
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    const std::string field = path_of("vertices", i);
    if (!parts.vertex_by_name.emplace(vertices[i].name, VertexId(i)).second)
      faults.add(field, fmt::format("there are two vertices '{}'; names are unique", vertices[i].name));
    check_vertex(vertices[i], faults, field);
    if (vertices[i].kind == VertexKind::Memory) parts.memories.emplace_back(i);
    if (vertices[i].kind == VertexKind::Gpu) parts.gpus.emplace_back(i);
    if (vertices[i].kind == VertexKind::Device) parts.devices.emplace_back(i);
  }
  check_first_memory(parts, faults);
  if (parts.memories.size() + parts.gpus.size() + parts.devices.size() > kMaxEndpoints)
    faults.add("vertices[0]", "more than 1024 memories, GPUs and devices; describe a smaller machine");
}

void add_direction(Parts& parts, VertexId from, VertexId to, const LinkBandwidth& bandwidth, Faults& faults,
                   const std::string& field) {
  if (!parts.link_by_ends.emplace(std::pair(from, to), LinkId(parts.links.size())).second) {
    return faults.add(field, fmt::format("there are two links from '{}' to '{}'; write one with their joint bandwidth",
                                         parts.spec.vertices[from.index()].name, parts.spec.vertices[to.index()].name));
  }
  parts.links.push_back({from, to, bandwidth});
}

void add_link(Parts& parts, const LinkSpec& link, Faults& faults, const std::string& field) {
  const auto check = [&](const LinkBandwidth& bandwidth, std::string_view key) {
    check_bandwidth(bandwidth, faults, path_of(field, key));
    if (bandwidth.theoretical)
      check_positive(bandwidth.theoretical->value, faults, path_of(field, key), "the theoretical bandwidth");
  };
  check(link.bandwidth, "bandwidth");
  if (link.back) check(*link.back, "back");
  const auto from = resolve(parts, link.from, faults, path_of(field, "from"));
  const auto to = resolve(parts, link.to, faults, path_of(field, "to"));
  if (!from || !to) return;
  if (from == to)
    return faults.add(field, fmt::format("this link goes from '{}' to itself; name two vertices", link.from));
  add_direction(parts, *from, *to, link.bandwidth, faults, field);
  if (link.back) add_direction(parts, *to, *from, *link.back, faults, field);
}

std::optional<CapacityMember> resolve_member(const Parts& parts, const MemberSpec& member, Faults& faults,
                                             const std::string& field) {
  const auto from = resolve(parts, member.from, faults, path_of(field, "from"));
  const auto to = resolve(parts, member.to, faults, path_of(field, "to"));
  if (!from || !to) return std::nullopt;
  const auto link = parts.link_by_ends.find(std::pair(*from, *to));
  if (link != parts.link_by_ends.end()) return CapacityMember{link->second, member.cost};
  if (faults.unread("links")) return std::nullopt;
  faults.add(field, fmt::format("there is no link from '{}' to '{}'; a member is one direction of a link", member.from,
                                member.to));
  return std::nullopt;
}

void add_shared(Parts& parts, Faults& faults) {
  std::set<std::string_view> names;
  for (std::size_t s = 0; s < parts.spec.shared.size(); ++s) {
    const SharedSpec& spec = parts.spec.shared[s];
    const std::string field = path_of("shared", s);
    if (!names.insert(spec.name).second)
      faults.add(field, fmt::format("there are two shared capacities '{}'; names are unique", spec.name));
    check_bandwidth(spec.capacity, faults, path_of(field, "capacity"));
    SharedCapacity shared{spec.name, spec.capacity, {}};
    std::set<LinkId> links;
    for (std::size_t m = 0; m < spec.members.size(); ++m) {
      const MemberSpec& member = spec.members[m];
      const std::string member_field = path_of(path_of(field, "members"), m);
      const auto resolved = resolve_member(parts, member, faults, member_field);
      if (!resolved) continue;
      shared.members.push_back(*resolved);
      if (!links.insert(resolved->link).second)
        faults.add(member_field, fmt::format("the link from '{}' to '{}' is a member twice; add up its costs",
                                             member.from, member.to));
    }
    if (spec.members.empty()) faults.add(field, fmt::format("'{}' has no members; name its links", spec.name));
    parts.shared.push_back(std::move(shared));
  }
}

void index_capacities(Parts& parts) {
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
std::vector<std::size_t> components(const Parts& parts, Passes passes) {
  std::vector<std::size_t> parent(parts.spec.vertices.size());
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

void check_connected(const Parts& parts, Faults& faults) {
  const auto root = components(parts, [](const Link&) { return true; });
  for (std::size_t i = 0; i < root.size(); ++i) {
    if (root[i] == 0) continue;
    faults.add(path_of("vertices", i), fmt::format("no links connect '{}' with '{}'; the machine must be one piece",
                                                   parts.spec.vertices[i].name, parts.spec.vertices[0].name));
    return;
  }
}

void find_domains(Parts& parts) {
  const auto root = components(parts, [&](const Link& link) {
    return in_domain(parts.spec.vertices[link.from.index()].kind) &&
           in_domain(parts.spec.vertices[link.to.index()].kind);
  });
  std::map<std::string, DomainId> named;
  std::map<std::size_t, DomainId> found;
  parts.domain.resize(parts.spec.vertices.size());
  for (std::size_t i = 0; i < parts.spec.vertices.size(); ++i) {
    if (!in_domain(parts.spec.vertices[i].kind)) continue;
    const DomainId next(named.size() + found.size());
    const std::string& name = parts.spec.vertices[i].domain;
    parts.domain[i] =
        name.empty() ? found.emplace(root[i], next).first->second : named.emplace(name, next).first->second;
  }
}

void number_engines(Parts& parts) {
  for (auto* engines : {&parts.engine_in, &parts.engine_out, &parts.peer_engine_in, &parts.peer_engine_out})
    engines->resize(parts.spec.vertices.size());
  for (const VertexId gpu : parts.gpus) {
    const std::size_t i = gpu.index();
    const int engines = parts.spec.vertices[i].copy_engines;
    const auto next = [&] { return EngineId(parts.engine_count++); };
    parts.engine_in[i] = next();
    parts.engine_out[i] = engines == 1 ? parts.engine_in[i] : next();
    parts.peer_engine_in[i] = engines < kPeerEngines ? parts.engine_in[i] : next();
    parts.peer_engine_out[i] = engines < kPeerEngines ? parts.engine_out[i] : next();
  }
  for (const VertexId device : parts.devices) {
    parts.engine_in[device.index()] = EngineId(parts.engine_count++);
    parts.engine_out[device.index()] = EngineId(parts.engine_count++);
  }
}

/// Links that leave each vertex, in the order of the file.
std::vector<std::vector<LinkId>> outgoing_links(const Parts& parts) {
  std::vector<std::vector<LinkId>> outgoing(parts.spec.vertices.size());
  for (std::size_t i = 0; i < parts.links.size(); ++i) outgoing[parts.links[i].from.index()].push_back(LinkId(i));
  return outgoing;
}

/// Breadth-first from one end: the link by which each vertex is reached first. Expanding vertices in the
/// order in which they were reached, and links in the order of the file, breaks ties as the contract says.
std::vector<std::optional<LinkId>> shortest_path_tree(const Parts& parts,
                                                      const std::vector<std::vector<LinkId>>& outgoing,
                                                      VertexId source) {
  std::vector<std::optional<LinkId>> reached_by(parts.spec.vertices.size());
  std::vector<VertexId> queue{source};
  for (std::size_t head = 0; head < queue.size(); ++head) {
    const VertexId at = queue[head];
    if (at != source && is_end(parts.spec.vertices[at.index()].kind)) continue;
    for (const LinkId link : outgoing[at.index()]) {
      const VertexId next = parts.links[link.index()].to;
      if (next == source || reached_by[next.index()]) continue;
      reached_by[next.index()] = link;
      queue.push_back(next);
    }
  }
  return reached_by;
}

void find_routes(Parts& parts, Faults& faults) {
  std::vector<VertexId> endpoints;
  parts.endpoint.assign(parts.spec.vertices.size(), static_cast<std::uint32_t>(kMaxVertices));
  for (std::size_t i = 0; i < parts.spec.vertices.size(); ++i) {
    if (!is_end(parts.spec.vertices[i].kind)) continue;
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
      if (parts.route_links.size() > kMaxRouteLinks)
        return faults.add("", "the routes have more than 16 million links together; describe a smaller machine");
      std::reverse(parts.route_links.begin() + begin, parts.route_links.end());
      parts.route_begin.push_back(static_cast<std::uint32_t>(parts.route_links.size()));
    }
  }
}

/// Finds the classes of all routes between memories and GPUs.
/// @param machine  looks into the same parts, complete but for the classes.
void find_route_classes(const Topology& machine, Parts& parts) {
  parts.route_classes.clear();
  parts.route_class_of.assign(parts.endpoint_count * parts.endpoint_count, kNone);
  std::map<std::vector<double>, std::uint32_t> known;
  const auto add = [&](PortId port) {
    if (links_at(machine, port).empty()) return;
    RouteClass kind = class_at(machine, port, {});
    const auto [entry, is_new] = known.emplace(route_class_key(kind), static_cast<std::uint32_t>(known.size()));
    if (is_new) parts.route_classes.push_back(std::move(kind));
    const auto [from, to] = ends_of(machine, port);
    parts.route_class_of[*parts.pair_of(from, to)] = entry->second;
  };
  const std::size_t ports = 2 * parts.memories.size() * parts.gpus.size();
  for (std::size_t port = 0; port < ports; ++port) add(PortId(port));
}

/// The end of a background flow; nothing where it is at fault.
std::optional<VertexId> resolve_end(const Parts& parts, const std::string& name, Faults& faults,
                                    const std::string& field) {
  const auto end = resolve(parts, name, faults, field);
  if (!end) return std::nullopt;
  const VertexKind kind = parts.spec.vertices[end->index()].kind;
  if (is_end(kind)) return end;
  faults.add(field, fmt::format("'{}' is a {}; a flow in the background goes from a memory, a gpu or a device to one, "
                                "so name these: its route passes '{}'",
                                name, to_string(kind), name));
  return std::nullopt;
}

/// From a memory to a neighbour and back: the way of copies inside it.
std::vector<LinkId> out_and_back(const Topology& machine, VertexId memory) {
  for (std::size_t i = 0; i < machine.links().size(); ++i) {
    const Link& link = machine.links()[i];
    if (link.from != memory) continue;
    if (const auto back = machine.find_link(link.to, memory)) return {LinkId(i), *back};
  }
  return {};
}

/// @param machine  looks into the same parts, with its routes.
void add_background(const Topology& machine, Parts& parts, Faults& faults) {
  for (std::size_t i = 0; i < parts.spec.background.size(); ++i) {
    const BackgroundSpec& spec = parts.spec.background[i];
    const std::string field = path_of("background", i);
    check_load(spec.bandwidth, faults, path_of(field, "bandwidth"));
    const auto from = resolve_end(parts, spec.from, faults, path_of(field, "from"));
    const auto to = resolve_end(parts, spec.to, faults, path_of(field, "to"));
    if (!from || !to) continue;
    if (from == to && machine.vertex(*from).kind != VertexKind::Memory) {
      faults.add(field, fmt::format("this flow goes from '{}' to itself; only in a memory the host copies from place "
                                    "to place, so name two vertices",
                                    spec.from));
      continue;
    }
    const auto links = machine.route(*from, *to);
    std::vector<LinkId> route = from == to ? out_and_back(machine, *from) : std::vector(links.begin(), links.end());
    if (route.empty())
      faults.add(field, fmt::format("no way leads from '{}' to '{}'; add the missing links", spec.from, spec.to));
    parts.background.push_back({std::move(route), spec.bandwidth});
  }
}

std::optional<std::uint32_t> resolve_gpu(const Parts& parts, const std::string& name, Faults& faults,
                                         const std::string& field) {
  const auto vertex = resolve(parts, name, faults, field);
  if (!vertex) return std::nullopt;
  const auto gpu = std::find(parts.gpus.begin(), parts.gpus.end(), *vertex);
  if (gpu != parts.gpus.end()) return static_cast<std::uint32_t>(gpu - parts.gpus.begin());
  faults.add(field, fmt::format("'{}' is no GPU; the table has GPUs alone", name));
  return std::nullopt;
}

/// Collects the rates of one row of the table.
class RowReader {
 public:
  /// @param machine  looks into the same parts, complete but for the table and the data derived from it.
  RowReader(const Topology& machine, const Parts& parts, Faults& faults, std::string field)
      : machine_(machine), parts_(parts), faults_(faults), field_(std::move(field)) {}

  PortRates read(const TableRow& row) {
    for (const Direction direction : {Direction::HostToDevice, Direction::DeviceToHost}) {
      const std::string side = path_of(field_, to_string(direction));
      for (const auto& [name, rate] : direction == Direction::HostToDevice ? row.h2d : row.d2h) {
        const auto gpu = resolve_gpu(parts_, name, faults_, path_of(side, name));
        if (!gpu) continue;
        const PortId port = CopyPort{*gpu, direction}.id();
        check_route(port, field_);
        if (!rates_.emplace(port, rate.value).second)
          faults_.add(field_, fmt::format("'{}' stands twice under {}; give it one rate", name, to_string(direction)));
      }
    }
    for (std::size_t i = 0; i < row.copies.size(); ++i) read_copy(row.copies[i], path_of(path_of(field_, "copies"), i));
    PortRates result{{}, {}, row.source};
    for (const auto& [port, rate] : rates_) {
      result.ports.insert(port);
      result.rates.push_back(rate);
    }
    return result;
  }

 private:
  void read_copy(const CopyRate& copy, const std::string& field) {
    const auto from = resolve(parts_, copy.from, faults_, path_of(field, "from"));
    const auto to = resolve(parts_, copy.to, faults_, path_of(field, "to"));
    if (!from || !to) return;
    const auto port = find_port(machine_, *from, *to);
    if (!port)
      return faults_.add(field, fmt::format("a copy goes between a memory and a GPU, or from GPU to GPU, and not from "
                                            "'{}' to '{}'",
                                            copy.from, copy.to));
    check_route(*port, field);
    if (!rates_.emplace(*port, copy.rate.value).second)
      faults_.add(field, fmt::format("the copy from '{}' to '{}' stands twice; give it one rate", copy.from, copy.to));
  }

  void check_route(PortId port, const std::string& field) {
    if (has_route(machine_, port)) return;
    const auto [from, to] = ends_of(machine_, port);
    const std::string &source = machine_.vertex(from).name, &target = machine_.vertex(to).name;
    if (links_at(machine_, port).empty())
      return faults_.add(
          field, fmt::format("no way leads from '{}' to '{}'; leave the stream out of the table", source, target));
    faults_.add(field, fmt::format("'{}' has no peer access to '{}', so a copy between them is staged; leave it out of "
                                   "the table, or allow 'peer_access'",
                                   source, target));
  }

  const Topology& machine_;
  const Parts& parts_;
  Faults& faults_;
  std::string field_;
  std::map<PortId, double> rates_;
};

/// @param machine  looks into the same parts, complete but for the table and the data derived from it.
void add_table(const Topology& machine, Parts& parts, Faults& faults) {
  const MachineSpec& spec = parts.spec;
  std::vector<std::vector<std::uint32_t>> groups;
  for (std::size_t g = 0; g < spec.symmetric.size(); ++g) {
    groups.emplace_back();
    for (const std::string& name : spec.symmetric[g])
      if (const auto gpu = resolve_gpu(parts, name, faults, path_of("symmetric", g))) groups.back().push_back(*gpu);
  }
  if (spec.table.empty()) return;
  if (parts.memories.empty()) return faults.add("table[0]", "a measured table needs a host memory; add a vertex");
  std::vector<PortRates> rows;
  for (std::size_t i = 0; i < spec.table.size(); ++i)
    rows.push_back(RowReader(machine, parts, faults, path_of("table", i)).read(spec.table[i]));
  if (!faults.none()) return;
  auto table = MeasuredTable::make(parts.gpus.size(), std::move(groups), std::move(rows));
  if (!table) return faults.add(std::move(table.error()));
  parts.table = std::make_shared<const MeasuredTable>(*std::move(table));
}

PeerAccess resolve_peers(const Parts& parts, Faults& faults) {
  PeerAccess access{parts.spec.peer_access.mode, {}};
  for (std::size_t i = 0; i < parts.spec.peer_access.pairs.size(); ++i) {
    const auto& [from, to] = parts.spec.peer_access.pairs[i];
    const std::string field = path_of("peer_access", i);
    const auto first = resolve(parts, from, faults, field);
    const auto second = resolve(parts, to, faults, field);
    for (const auto& end : {first, second}) {
      if (!end || parts.spec.vertices[end->index()].kind == VertexKind::Gpu) continue;
      if (faults.unread(path_of("vertices", end->index()))) continue;  // it may be one
      const Vertex& vertex = parts.spec.vertices[end->index()];
      faults.add(field, fmt::format("'{}' is a {}; peer access is between GPUs", vertex.name, to_string(vertex.kind)));
    }
    if (!first || !second) continue;
    if (first == second) faults.add(field, fmt::format("'{}' is paired with itself; name two GPUs", from));
    access.pairs.emplace_back(*first, *second);
  }
  return access;
}

/// The same links, each direction by itself.
std::vector<LinkSpec> by_direction(std::span<const LinkSpec> links) {
  std::vector<LinkSpec> directions;
  for (const LinkSpec& link : links) {
    directions.push_back({link.from, link.to, link.bandwidth, {}});
    if (link.back) directions.push_back({link.to, link.from, *link.back, {}});
  }
  return directions;
}

}  // namespace

Expected<Topology> Topology::assemble(MachineSpec spec, Faults faults) {
  auto parts = std::make_shared<Parts>();
  parts->spec = std::move(spec);
  check_scalars(parts->spec, faults);
  add_vertices(*parts, faults);
  if (parts->spec.vertices.size() > kMaxVertices) return tl::unexpected(faults.error());
  for (std::size_t i = 0; i < parts->spec.links.size(); ++i)
    add_link(*parts, parts->spec.links[i], faults, path_of("links", i));
  add_shared(*parts, faults);
  parts->peer_access = resolve_peers(*parts, faults);
  if (faults.none()) check_connected(*parts, faults);
  if (!faults.none()) return tl::unexpected(faults.error());
  index_capacities(*parts);
  find_domains(*parts);
  number_engines(*parts);
  find_routes(*parts, faults);
  if (!faults.none()) return tl::unexpected(faults.error());
  const Topology machine(parts);
  add_background(machine, *parts, faults);
  add_table(machine, *parts, faults);
  if (!faults.none()) return tl::unexpected(faults.error());
  find_route_classes(machine, *parts);
  parts->spec.links = by_direction(parts->spec.links);
  return machine;
}

Topology Topology::with_guaranteed(std::span<const double> guaranteed) const {
  auto parts = std::make_shared<Parts>(*parts_);
  TUTTI_EXPECTS(guaranteed.size() == parts->guaranteed.size(), "there is a bandwidth for each capacity");
  parts->guaranteed.assign(guaranteed.begin(), guaranteed.end());
  const std::size_t links = parts->links.size();
  for (std::size_t i = 0; i < links; ++i)
    parts->links[i].bandwidth.guaranteed = parts->spec.links[i].bandwidth.guaranteed = {guaranteed[i]};
  for (std::size_t i = 0; i < parts->shared.size(); ++i)
    parts->shared[i].capacity.guaranteed = parts->spec.shared[i].capacity.guaranteed = {guaranteed[links + i]};
  const Topology machine(parts);
  find_route_classes(machine, *parts);
  return machine;
}

Topology Topology::with_left(std::vector<double> nominal, std::vector<double> guaranteed,
                             std::shared_ptr<const MeasuredTable> table) const {
  auto parts = std::make_shared<Parts>(*parts_);
  parts->nominal = std::move(nominal);
  parts->guaranteed = std::move(guaranteed);
  parts->table = std::move(table);
  const Topology machine(parts);
  find_route_classes(machine, *parts);
  return machine;
}

}  // namespace tutti::internal
