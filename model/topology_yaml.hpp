#pragma once
#include <string>

#include "model/topology.hpp"

namespace tutti::internal {

struct Node;

/// Reads a machine file.
/// @errors InvalidInput with file, line and column, whatever is wrong with the file.
[[nodiscard]] Expected<Topology> load_machine(const std::string& path);

/// Reads the machine out of an already parsed document.
[[nodiscard]] Expected<Topology> machine_from(const Node& document);

/// A machine as the text of a machine file, which reads back as the same machine.
[[nodiscard]] std::string machine_yaml(const Topology& machine);

}  // namespace tutti::internal
