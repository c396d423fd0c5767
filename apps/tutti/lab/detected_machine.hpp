#pragma once
#include <string>

#include "model/topology.hpp"
#include "runtime/cuda/discovery.hpp"

namespace tutti {

/// A first machine of a host: what was found, and guesses for all bandwidths, which nobody tells.
///
/// A memory and a cpu for each NUMA node, called by its number; a hub for the PCI bridges that several GPUs share,
/// unless nothing would tell it from the cpu above; a switch for each group of GPUs that all have NVLink to each other;
/// the GPUs in the order of their bus ids.
///
/// Peer access as the host has it; what holds in one direction only counts as none, since a machine knows no half.
///
/// @param name  letters, digits, `_ . -`
/// @pre  `peer_access` and `nvlink` of every GPU have an entry for each GPU.
/// @errors InvalidInput: as `TopologyBuilder::build`, such as more than 1024 GPUs and memories.
[[nodiscard]] Expected<Topology> detected_machine(const HostFacts& host, std::string name);

/// The machine file of it, which begins with what is guessed.
[[nodiscard]] std::string detected_yaml(const HostFacts& host, const Topology& machine);

/// What its vertex is called.
/// @param position  in `HostFacts::devices`
[[nodiscard]] std::string gpu_name(std::size_t position);

}  // namespace tutti
