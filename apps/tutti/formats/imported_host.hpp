#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/error.hpp"
#include "runtime/host/host_facts.hpp"

namespace tutti::internal {

/// A host as a file of another tool describes it. What the file does not say is left at its default.
struct ImportedHost {
  std::string source;  ///< what wrote the file: "hwloc"
  HostFacts host;
  std::vector<GBps> up, down;  ///< [devices] measured, from and to the memory; empty: the file has no rates
  std::vector<GBps> up_together, down_together;  ///< [devices] the same while all others copy, too; empty: not measured
  std::vector<GBps> up_both_ways, down_both_ways;  ///< [devices] the same while the GPU copies the other way, too;
                                                   ///< empty: not measured
  std::vector<std::vector<GBps>> between;          ///< [devices][devices] measured, of copies from the first; 0: none
  std::vector<int> nvlinks;                        ///< [devices] to the switch, where there is one; empty: not known
  std::vector<GBps> to_cpu;  ///< [devices] of the links to its processor that are no PCIe; 0: none; empty: none at all
  /// Positions of devices that may share a switch of PCIe, which the file does not show; each group of one NUMA node.
  std::vector<std::vector<std::size_t>> may_share;
  std::vector<std::size_t>
      may_switch;                    ///< positions of devices whose NVLinks to others may be the same ones, to a switch
  bool has_peers = true;             ///< false: the file says that no GPU reaches another one
  std::vector<std::string> unknown;  ///< what the file leaves open, and what is assumed in its place
};

/// Reads hwloc's XML (`lstopo FILE.xml`), NCCL's (NCCL_TOPO_DUMP_FILE), the text of `nvidia-smi topo -m`, or the JSON
/// of `nvbandwidth --json`, whichever the text is.
/// @param name  of the file, for messages
/// @errors InvalidInput with file, line and column or the place in the JSON: none of these, cut off, a cell or a device
///         that means nothing, no GPU.
[[nodiscard]] Expected<ImportedHost> parse_imported_host(const std::string& text, const std::string& name);
/// Reads a file like `parse_imported_host`.
[[nodiscard]] Expected<ImportedHost> load_imported_host(const std::string& path);

/// The readers of each form; they end with `InputError`.
[[nodiscard]] ImportedHost read_host_xml(const std::string& text, const std::string& name);
[[nodiscard]] ImportedHost read_topology_matrix(std::string_view text, const std::string& name);
[[nodiscard]] ImportedHost read_nvbandwidth(const std::string& text, const std::string& name);

}  // namespace tutti::internal
