#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/commands_in_flight.hpp"
#include "runtime/cuda/batches/enqueuer.hpp"

namespace tutti::internal::cuda {

/// Where a run stands that has broken off, by its signals and its events; where the host waits after each command, by
/// that.
/// @param seen    [lanes] signals of the run that the host saw
/// @param opened  [gates] whether it may be open
[[nodiscard]] RunProgress progress_of(const BoundBatch& batch, const Enqueuer& enqueuer, std::span<const Count> seen,
                                      std::vector<bool> opened);

/// Of commands in flight, those that may have broken a GPU: they are on one that is broken. A copy breaks none, since
/// its addresses were checked; so of these the kernels, if there are any.
[[nodiscard]] std::vector<std::uint32_t> suspects_of_fault(const BoundBatch& batch,
                                                           std::vector<std::uint32_t> in_flight);

}  // namespace tutti::internal::cuda
