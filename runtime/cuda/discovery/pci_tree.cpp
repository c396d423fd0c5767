#include "runtime/cuda/discovery/pci_tree.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <hwloc.h>

namespace tutti::internal::cuda {
namespace {

/// The name that `PciBridge` has for a bridge.
std::string name_of(const hwloc_obj_attr_u::hwloc_bridge_attr_s& bridge) {
  if (bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST)
    return fmt::format("pci{:04x}:{:02x}", bridge.downstream.pci.domain, bridge.downstream.pci.secondary_bus);
  const auto& pci = bridge.upstream.pci;
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func);
}

/// Null where there is no such device.
hwloc_obj_t find(hwloc_topology_t topology, const std::string& bus_id) {
  return hwloc_get_pcidev_by_busidstring(topology, bus_id.c_str());
}

/// The node of a processor. To hwloc, memory without processors of its own is near to those of others: the node of a
/// processor is the one that fewest share, and of several such the first.
hwloc_obj_t node_of(hwloc_topology_t topology, hwloc_obj_t processor) {
  hwloc_obj_t nearest = nullptr;
  const auto rank = [](hwloc_obj_t node) { return std::pair(hwloc_bitmap_weight(node->cpuset), node->os_index); };
  for (hwloc_obj_t node = nullptr; (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr;)
    if (hwloc_bitmap_isincluded(processor->cpuset, node->cpuset) && (nearest == nullptr || rank(node) < rank(nearest)))
      nearest = node;
  return nearest;
}

/// The system's numbers of the nodes of these processors.
std::set<int> nodes_of(hwloc_topology_t topology, hwloc_const_cpuset_t processors) {
  std::set<int> nodes;
  for (hwloc_obj_t processor = nullptr; (processor = hwloc_get_next_obj_covering_cpuset_by_type(
                                             topology, processors, HWLOC_OBJ_PU, processor)) != nullptr;)
    if (const hwloc_obj_t node = node_of(topology, processor)) nodes.insert(static_cast<int>(node->os_index));
  return nodes;
}

}  // namespace

void PciTree::Destroy::operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }

Expected<PciTree> PciTree::read() {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) return machine_error("hwloc does not start; free some memory");
  Handle topology(made);
  hwloc_topology_set_io_types_filter(made, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_type_filter(made, HWLOC_OBJ_OS_DEVICE, HWLOC_TYPE_FILTER_KEEP_NONE);
  // Linux lists the PCI devices itself; hwloc's plugin for other systems, where it is installed, loses memory.
  hwloc_topology_set_components(made, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "pci");
  // A GPU may be near to a node that this process is kept off.
  hwloc_topology_set_flags(made, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  if (hwloc_topology_load(made) != 0)
    return machine_error(fmt::format("hwloc cannot look at this host ({}); mount /sys", std::strerror(errno)));
  return PciTree(std::move(topology));
}

std::vector<int> PciTree::numa_nodes() const {
  const auto nodes = nodes_of(topology_.get(), hwloc_get_root_obj(topology_.get())->cpuset);
  return {nodes.begin(), nodes.end()};
}

int PciTree::numa_node(const std::string& bus_id) const {
  const hwloc_obj_t device = find(topology_.get(), bus_id);
  if (device == nullptr) return -1;
  const auto nodes = nodes_of(topology_.get(), hwloc_get_non_io_ancestor_obj(topology_.get(), device)->cpuset);
  return nodes.size() == 1 ? *nodes.begin() : -1;
}

std::vector<PciBridge> PciTree::bridges_above(const std::string& bus_id) const {
  std::vector<PciBridge> bridges;
  const hwloc_obj_t device = find(topology_.get(), bus_id);
  for (hwloc_obj_t at = device == nullptr ? nullptr : device->parent; at != nullptr; at = at->parent)
    if (at->type == HWLOC_OBJ_BRIDGE) bridges.push_back({name_of(at->attr->bridge), std::nullopt});
  std::reverse(bridges.begin(), bridges.end());
  return bridges;
}

}  // namespace tutti::internal::cuda
