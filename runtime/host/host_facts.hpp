#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/units.hpp"

namespace tutti::internal {

/// A PCIe link, as it is trained or could be.
struct PcieLink {
  int generation = 0;  ///< 1 to 6
  int width = 0;       ///< lanes

  /// Bandwidth by its standard in one direction, line code included.
  [[nodiscard]] GBps theoretical() const;

  friend bool operator==(const PcieLink&, const PcieLink&) = default;
};

/// What one NVLink carries in one direction, since V100: 25 GB/s by its standard, less what is lost on the way.
inline constexpr double kRateOfNvlink = 20;

/// Combined limit of two parts of one route; the known part where the other is not known.
[[nodiscard]] std::optional<PcieLink> narrower(const std::optional<PcieLink>& a, const std::optional<PcieLink>& b);

/// A bridge above a GPU: a host bridge, a port of the root complex or of a switch.
struct PciBridge {
  std::string id;                        ///< bus id; of a host bridge, which has none, the bus below it: "pci0000:00"
  std::optional<PcieLink> link_at_best;  ///< of the link that the bridge is an end of; a host bridge has none

  friend bool operator==(const PciBridge&, const PciBridge&) = default;
};

/// Properties of one GPU of the host.
struct DeviceFacts {
  int ordinal = 0;     ///< as CUDA counts in this process; only the backend names a GPU by it
  std::string name;    ///< "NVIDIA H200"
  std::string bus_id;  ///< "0000:06:00.0", in lower case
  std::string uuid;    ///< "GPU-...", the rest in lower case
  Bytes memory;        ///< in all
  Bytes memory_free;   ///< all memory where the free part is not known
  int copy_engines = 0;
  int gate_sms = 0;                      ///< fewest multiprocessors that it sets apart for gates; 0: none
  bool memory_operations = false;        ///< a stream can wait for a signal in memory, and write one
  int numa_node = -1;                    ///< that it is nearest to; -1: the host does not say
  std::optional<PcieLink> link;          ///< as it is trained now; idle links may be slow
  std::optional<PcieLink> link_at_best;  ///< as far as GPU and slot go
  std::vector<bool> peer_access;         ///< [devices] which of the others it can read and write
  std::vector<bool> nvlink;              ///< [devices] which of the others it reaches over NVLink, where known
  std::vector<int> nvlinks;              ///< [devices] NVLinks to them that pass no switch; empty: not known
  std::vector<PciBridge> pci_path;       ///< the bridges above it, from the host bridge down
};

/// The host: its GPUs and memories.
struct HostFacts {
  std::string driver;                ///< the highest CUDA version that the driver serves, "13.0"
  std::string runtime;               ///< the CUDA version that this program was built with
  std::vector<int> numa_nodes{0};    ///< the system's numbers of those that have processors, ascending; >= 1
  std::vector<DeviceFacts> devices;  ///< in the order of their bus ids
};

/// The name that a machine made of a host has for a GPU.
/// @param position  in `HostFacts::devices`
[[nodiscard]] std::string gpu_name(std::size_t position);

/// The GPU of that bus id or UUID, upper or lower case, a bus id with or without its domain; null where there is none,
/// or several that a bus id without domain fits.
[[nodiscard]] const DeviceFacts* find_device(const HostFacts& host, std::string_view id);

}  // namespace tutti::internal
