#pragma once
#include <string>

#include "model/machine/topology.hpp"
#include "runtime/host/host_facts.hpp"

namespace tutti::internal {

/// A first machine description of a host: its detected structure, with guesses for all bandwidths, which no host
/// reports.
///
/// The vertices: a memory and a cpu for each NUMA node, named by its number; a hub for PCI bridges that several GPUs
/// share, unless it is indistinguishable from the cpu above; a switch for each group of three or more GPUs that all
/// have NVLink to each other, unless the host says that their links pass none; the GPUs in the order of their bus ids.
/// All other GPUs with NVLink to each other are linked in pairs.
///
/// Peer access as the host reports it; access in one direction only counts as none, since a machine has it in both
/// directions or in none.
///
/// @param name   letters, digits, `_ . -`
/// @param cores  of each NUMA node; the machine then has a pageable memory on each, with as many producers as half of
///               them, 8 at most. 0: none
/// @pre  `peer_access` and `nvlink` of every GPU have an entry for each GPU.
/// @errors InvalidInput: as `compile`, such as more than 1024 GPUs and memories.
[[nodiscard]] Expected<Topology> detected_machine(const HostFacts& host, std::string name, int cores = 0);

/// The machine file of a detected machine; it begins with a list of the guesses.
[[nodiscard]] std::string detected_yaml(const HostFacts& host, const Topology& machine);

}  // namespace tutti::internal
