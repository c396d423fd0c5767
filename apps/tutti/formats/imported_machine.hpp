#pragma once
#include <string>
#include <vector>

#include "apps/tutti/formats/imported_host.hpp"
#include "model/machine/topology.hpp"

namespace tutti::internal {

/// The machine of a host that another tool described: the graph of `detected_machine`, with the rates that the file
/// has, and NVLinks by their number.
/// @param pcie  of links that the file does not describe, those of switches included
/// @errors as `detected_machine`
[[nodiscard]] Expected<Topology> imported_machine(ImportedHost imported, std::string name, PcieLink pcie);

/// What the file leaves open, and what the machine assumes in its place; a sentence each.
[[nodiscard]] std::vector<std::string> unknown_of(const ImportedHost& imported);

/// Its machine file, which begins with what is unknown, what was read and what is assumed.
[[nodiscard]] std::string imported_yaml(const ImportedHost& imported, const Topology& machine, PcieLink pcie);

}  // namespace tutti::internal
