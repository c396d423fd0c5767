#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/host/host_facts.hpp"

struct hwloc_topology;

namespace tutti::internal::cuda {

/// The host's memories and PCI bridges, as hwloc finds them.
class PciTree {
 public:
  /// @errors Machine: hwloc cannot look at this host.
  [[nodiscard]] static Expected<PciTree> read();

  /// As in `HostFacts`.
  [[nodiscard]] std::vector<int> numa_nodes() const;
  /// The node that a PCI device is nearest to; -1 where it is near to several, or not known.
  [[nodiscard]] int numa_node(const std::string& bus_id) const;
  /// The bridges above a PCI device, from the host bridge down, without what is known of their links; none where it is
  /// not known.
  [[nodiscard]] std::vector<PciBridge> bridges_above(const std::string& bus_id) const;

 private:
  struct Destroy {
    void operator()(hwloc_topology* topology) const;
  };
  using Handle = std::unique_ptr<hwloc_topology, Destroy>;

  explicit PciTree(Handle topology) : topology_(std::move(topology)) {}

  Handle topology_;
};

}  // namespace tutti::internal::cuda
