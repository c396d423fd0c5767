#pragma once
#include <span>
#include <string>

#include "model/base/document.hpp"
#include "model/base/faults.hpp"
#include "model/machine/machine_yaml.hpp"
#include "model/machine/topology.hpp"

namespace tutti::internal {

/// The machine of a spec. Where the graph guarantees more than a row of the table gives, guaranteed bandwidths become
/// lower, and `Topology::notes` says so: no table makes a promise false. Then background flows take their part
/// (`beside_background`).
/// @param faults  of reading the spec
/// @errors as `Topology::assemble` and `beside_background`.
[[nodiscard]] Expected<Topology> compile(MachineSpec spec, Faults faults = {});

/// What a machine was made from, without its measured table: the graph alone.
[[nodiscard]] MachineSpec graph_of(const Topology& machine);
/// The graph with the bandwidths that background flows leave, and without these flows.
[[nodiscard]] MachineSpec left_graph_of(const Topology& machine);
/// The machine as it is while nothing flows in the background: as it is measured.
[[nodiscard]] Topology without_background(const Topology& machine);
/// The spec with other numbers of copy engines.
/// @param engines  [GPUs] in the order of the vertices
[[nodiscard]] MachineSpec with_copy_engines(MachineSpec spec, std::span<const int> engines);

/// The machine of a machine file that is already parsed.
/// @errors InvalidInput with file, line and column: all that is wrong with the file.
[[nodiscard]] Expected<Topology> machine_from(const Node& document);

/// Reads a machine file.
/// @errors as `machine_from`; a file that cannot be read.
[[nodiscard]] Expected<Topology> load_machine(const std::string& path);

/// A machine as the text of a machine file, which reads back as the same machine.
[[nodiscard]] inline std::string machine_yaml(const Topology& machine) { return machine_text(machine.spec()); }

}  // namespace tutti::internal
