#pragma once
#include "model/machine/topology.hpp"
#include "runtime/core/kernel_registry.hpp"

namespace tutti::internal {

/// `spin`, `checksum` and the wafer inspection's `die_compare`.
[[nodiscard]] KernelRegistry kernels_of_this_program();

/// A machine with a memory and a GPU, for task sets that name none.
[[nodiscard]] Expected<Topology> idle_machine();

}  // namespace tutti::internal
