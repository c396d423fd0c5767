#include "apps/tutti/formats/detected_machine.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "model/base/joined.hpp"
#include "model/sharing/compile_machine.hpp"

namespace tutti::internal {
namespace {

// Rough, rather low values for recent hosts.
constexpr double kShareOfTheoretical = 0.85;
constexpr GBps kUnknownPcie{12};
constexpr GBps kMemory{100};
constexpr GBps kPageable{40};
constexpr GBps kBetweenCpus{20};
constexpr GBps kNvlink{100};  // of a GPU, where the number of its links is not known

/// Positions of GPUs, ascending.
using Gpus = std::vector<std::size_t>;

/// The rate rounded to two decimals, in GB/s.
GBps rounded(double rate) { return {std::round(rate * 100) / 100}; }

bool mutually(const std::vector<DeviceFacts>& devices, std::vector<bool> DeviceFacts::*has, std::size_t a,
              std::size_t b) {
  return (devices[a].*has)[b] && (devices[b].*has)[a];
}

/// A GPU and all GPUs with an NVLink to it.
Gpus nvlink_neighbours(const std::vector<DeviceFacts>& devices, std::size_t gpu) {
  Gpus neighbours;
  for (std::size_t other = 0; other < devices.size(); ++other)
    if (other == gpu || mutually(devices, &DeviceFacts::nvlink, gpu, other)) neighbours.push_back(other);
  return neighbours;
}

/// The groups of two or more GPUs that all have NVLink to each other and to no other GPU, through a switch as far as
/// the host knows. GPUs linked otherwise form no group: a switch would promise routes that do not exist.
std::vector<Gpus> nvlink_groups(const std::vector<DeviceFacts>& devices) {
  std::vector<Gpus> groups;
  for (std::size_t gpu = 0; gpu < devices.size(); ++gpu) {
    Gpus group = nvlink_neighbours(devices, gpu);
    if (group.size() > 1 && group.front() == gpu && std::all_of(group.begin(), group.end(), [&](std::size_t member) {
          return devices[member].nvlinks.empty() && nvlink_neighbours(devices, member) == group;
        }))
      groups.push_back(std::move(group));
  }
  return groups;
}

/// As many as each GPU can set apart; 0 where one of them cannot.
int gate_sms_of(const std::vector<DeviceFacts>& devices) {
  int most = 0;
  for (const DeviceFacts& device : devices) {
    if (device.gate_sms == 0) return 0;
    most = std::max(most, device.gate_sms);
  }
  return most;
}

PeerSpec peer_access_of(const std::vector<DeviceFacts>& devices) {
  PeerSpec entry;
  for (std::size_t a = 0; a < devices.size(); ++a)
    for (std::size_t b = a + 1; b < devices.size(); ++b)
      if (mutually(devices, &DeviceFacts::peer_access, a, b)) entry.pairs.emplace_back(gpu_name(a), gpu_name(b));
  const std::size_t all = devices.size() * (devices.size() - 1) / 2;
  entry.mode = entry.pairs.empty() ? PeerMode::None : entry.pairs.size() == all ? PeerMode::All : PeerMode::Pairs;
  if (entry.mode != PeerMode::Pairs) entry.pairs.clear();
  return entry;
}

/// The NUMA node nearest to a GPU; nothing where the host does not report it, or the node has no processors.
std::optional<int> node_of(const HostFacts& host, const DeviceFacts& device) {
  const auto& nodes = host.numa_nodes;
  if (std::find(nodes.begin(), nodes.end(), device.numa_node) == nodes.end()) return std::nullopt;
  return device.numa_node;
}

std::string cpu_of(const HostFacts& host, std::size_t gpu) {
  return fmt::format("cpu{}", node_of(host, host.devices[gpu]).value_or(host.numa_nodes.front()));
}

/// A hub or a GPU below a cpu, with its link upwards.
struct Branch {
  std::string name;
  std::string above;             // a cpu or a hub
  std::optional<PcieLink> link;  // to it, where known
  bool is_hub = false;
};

/// The bridges that several GPUs share, keyed by those GPUs.
class SharedBridges {
 public:
  explicit SharedBridges(const HostFacts& host) {
    for (std::size_t gpu = 0; gpu < host.devices.size(); ++gpu) {
      on_cpu_[cpu_of(host, gpu)].push_back(gpu);
      for (const PciBridge& bridge : host.devices[gpu].pci_path) below_[bridge.id].push_back(gpu);
    }
    for (const DeviceFacts& device : host.devices) {
      for (const PciBridge& bridge : device.pci_path) {
        auto& link = links_[below(bridge)];
        link = narrower(link, bridge.link_at_best);
      }
    }
  }

  [[nodiscard]] const Gpus& below(const PciBridge& bridge) const { return below_.at(bridge.id); }
  /// The narrowest link upwards among all bridges with exactly these GPUs below them: such bridges form one path.
  [[nodiscard]] const std::optional<PcieLink>& link(const Gpus& gpus) const { return links_.at(gpus); }
  /// Whether the bridges above these GPUs make a hub. A host bridge has no link of its own; with all GPUs of a cpu
  /// below it, no measurement could distinguish it from that cpu.
  [[nodiscard]] bool make_hub(const Gpus& gpus, const std::string& cpu) const {
    return gpus.size() > 1 && (link(gpus) || gpus != on_cpu_.at(cpu));
  }

 private:
  std::map<std::string, Gpus> on_cpu_;
  std::map<std::string, Gpus> below_;
  std::map<Gpus, std::optional<PcieLink>> links_;
};

/// All branches; each hub precedes the branches below it.
std::vector<Branch> branches_of(const HostFacts& host) {
  const SharedBridges bridges(host);
  std::vector<Branch> branches;
  std::map<Gpus, std::string> hubs;
  for (std::size_t gpu = 0; gpu < host.devices.size(); ++gpu) {
    const DeviceFacts& device = host.devices[gpu];
    const std::string cpu = cpu_of(host, gpu);
    std::string above = cpu;
    for (const PciBridge& bridge : device.pci_path) {
      const Gpus& gpus = bridges.below(bridge);
      if (!bridges.make_hub(gpus, cpu)) continue;
      const auto [hub, is_new] = hubs.emplace(gpus, fmt::format("hub{}", hubs.size()));
      if (is_new) branches.push_back({hub->second, above, bridges.link(gpus), true});
      above = hub->second;
    }
    branches.push_back({gpu_name(gpu), above, device.link_at_best ? device.link_at_best : device.link});
  }
  return branches;
}

/// A guess for the rate of a branch's link: a share of its theoretical bandwidth; for a hub without a known link, such
/// as a host bridge, the sum of the branches below it.
GBps guess(const Branch& branch, const std::vector<Branch>& all) {
  if (branch.link) return rounded(kShareOfTheoretical * branch.link->theoretical().value);
  if (!branch.is_hub) return kUnknownPcie;
  double sum = 0;
  for (const Branch& other : all)
    if (other.above == branch.name) sum += guess(other, all).value;
  return rounded(sum);
}

LinkSpec both_ways(std::string from, std::string to, GBps rate, std::optional<GBps> theoretical = std::nullopt) {
  const LinkBandwidth bandwidth(rate, theoretical);
  return {std::move(from), std::move(to), bandwidth, bandwidth};
}

Vertex gpu_vertex(const DeviceFacts& device, std::size_t position) {
  constexpr std::int64_t kMegabyte = 1'000'000;
  return {.name = gpu_name(position),
          .kind = VertexKind::Gpu,
          .copy_engines = std::max(1, device.copy_engines),
          .memory = Bytes{device.memory.count / kMegabyte * kMegabyte},
          .bus_id = device.bus_id,
          .uuid = device.uuid};
}

/// The rate of the NVLinks that join two GPUs.
GBps rate_between(const DeviceFacts& device, std::size_t other) {
  return device.nvlinks.empty() ? kNvlink : GBps{kRateOfNvlink * device.nvlinks[other]};
}

/// Adds NVLinks. They are added before other links: of two routes with equally many links, the links added first win.
void add_nvlink(MachineSpec& spec, const std::vector<DeviceFacts>& devices) {
  const auto groups = nvlink_groups(devices);
  std::vector<bool> at_switch(devices.size(), false);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::string name = fmt::format("nvlink{}", g);
    spec.vertices.push_back({.name = name, .kind = VertexKind::Switch});
    for (const std::size_t gpu : groups[g]) spec.links.push_back(both_ways(gpu_name(gpu), name, kNvlink));
    for (const std::size_t gpu : groups[g]) at_switch[gpu] = true;
  }
  for (std::size_t a = 0; a < devices.size(); ++a)
    for (std::size_t b = a + 1; b < devices.size(); ++b)
      if (!at_switch[a] && mutually(devices, &DeviceFacts::nvlink, a, b))
        spec.links.push_back(both_ways(gpu_name(a), gpu_name(b), rate_between(devices[a], b)));
}

void add_nodes(MachineSpec& spec, const std::vector<int>& nodes) {
  for (const int node : nodes) {
    const std::string cpu = fmt::format("cpu{}", node);
    const std::string memory = fmt::format("mem{}", node);
    spec.vertices.push_back({.name = memory, .kind = VertexKind::Memory});
    spec.vertices.push_back({.name = cpu, .kind = VertexKind::Cpu});
    spec.links.push_back(both_ways(memory, cpu, kMemory));
    for (const int other : nodes)
      if (other < node) spec.links.push_back(both_ways(fmt::format("cpu{}", other), cpu, kBetweenCpus));
  }
}

/// Behind all other memories: buffers lie in the first one.
void add_pageable(MachineSpec& spec, const std::vector<int>& nodes, int cores) {
  constexpr int kMostProducers = 8;
  for (Vertex& vertex : spec.vertices)
    if (vertex.kind == VertexKind::Cpu) vertex.cores = cores;
  for (const int node : nodes) {
    const std::string heap = fmt::format("heap{}", node);
    spec.vertices.push_back({.name = heap,
                             .kind = VertexKind::Memory,
                             .pageable = true,
                             .producers = std::clamp(cores / 2, 1, kMostProducers)});
    spec.links.push_back(both_ways(heap, fmt::format("cpu{}", node), kPageable));
  }
}

void add_branches(MachineSpec& spec, const std::vector<Branch>& branches) {
  for (const Branch& branch : branches) {
    if (branch.is_hub) spec.vertices.push_back({.name = branch.name, .kind = VertexKind::Hub});
    std::optional<GBps> theoretical;
    if (branch.link) theoretical = rounded(branch.link->theoretical().value);
    spec.links.push_back(both_ways(branch.above, branch.name, guess(branch, branches), theoretical));
  }
}

/// The names of the GPUs that satisfy a predicate.
template <class Holds>
std::string names_of(const HostFacts& host, Holds holds) {
  std::vector<std::string> names;
  for (std::size_t gpu = 0; gpu < host.devices.size(); ++gpu)
    if (holds(host.devices[gpu])) names.push_back(gpu_name(gpu));
  return joined(names);
}

/// The guesses and omissions that concern this host in particular; a line each.
std::string odd_text(const HostFacts& host) {
  std::string text;
  const std::string no_link = names_of(host, [](const DeviceFacts& d) { return !d.link_at_best && !d.link; });
  if (!no_link.empty()) text += fmt::format("# The host does not tell the PCIe link of {}.\n", no_link);
  const std::string no_node = names_of(host, [&](const DeviceFacts& d) { return !node_of(host, d); });
  if (!no_node.empty() && host.numa_nodes.size() > 1)
    text += fmt::format("# The host does not tell the NUMA node of {}: taken to be {}.\n", no_node,
                        host.numa_nodes.front());
  for (std::size_t a = 0; a < host.devices.size(); ++a)
    for (std::size_t b = 0; b < host.devices.size(); ++b)
      if (host.devices[a].peer_access[b] && !host.devices[b].peer_access[a])
        text += fmt::format("# {} has access to {}, not the other way: taken as none.\n", gpu_name(a), gpu_name(b));
  return text;
}

}  // namespace

Expected<Topology> detected_machine(const HostFacts& host, std::string name, int cores) {
  MachineSpec spec{.name = std::move(name)};
  add_nvlink(spec, host.devices);
  add_nodes(spec, host.numa_nodes);
  add_branches(spec, branches_of(host));
  for (std::size_t gpu = 0; gpu < host.devices.size(); ++gpu)
    spec.vertices.push_back(gpu_vertex(host.devices[gpu], gpu));
  if (cores > 0) add_pageable(spec, host.numa_nodes, cores);
  spec.peer_access = peer_access_of(host.devices);
  spec.conductor_sms = gate_sms_of(host.devices);
  return compile(std::move(spec));
}

std::string detected_yaml(const HostFacts& host, const Topology& machine) {
  return fmt::format(
             "# Written by 'tutti topology detect'. Found: the GPUs and what they can do, PCI bridges, NUMA nodes, "
             "peer "
             "access, theoretical bandwidths.\n"
             "# Guessed, and no ground for a guarantee until 'tutti calibrate --machine FILE --out FILE' has measured "
             "them: all other bandwidths.\n"
             "# PCIe links {:.0f} % of theoretical, {} where that is unknown; host bridges the sum of "
             "what is below them;\n"
             "# memories {}; between cpus {}; NVLink {}.\n",
             100 * kShareOfTheoretical, to_string(kUnknownPcie), to_string(kMemory), to_string(kBetweenCpus),
             to_string(kNvlink)) +
         odd_text(host) + machine_yaml(machine);
}

}  // namespace tutti::internal
