#pragma once
#include <optional>

#include "model/batch/timeline.hpp"
#include "runtime/core/backend.hpp"
#include "runtime/core/kernel_registry.hpp"

namespace tutti::internal {

/// Calls a kernel's host function. @return why it failed: what it threw
[[nodiscard]] std::optional<Error> call_kernel(const HostKernel& kernel, const CommandStream& stream,
                                               const StreamBinding& binding);

/// Copies a part of a transfer, row by row where its rows lie apart.
/// @param offset,bytes  the part, as if all rows followed each other
void move_bytes(const Topology& machine, const Transfer& transfer, const StreamBinding& binding, std::size_t offset,
                std::size_t bytes);

/// Stretches the segments of a transfer to its start and end, where they do not fit.
void fit_segments(TransferInterval& transfer);

}  // namespace tutti::internal
