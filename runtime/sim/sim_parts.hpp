#pragma once
#include <optional>

#include "model/batch/timeline.hpp"
#include "runtime/core/backend.hpp"
#include "runtime/core/kernel_registry.hpp"

namespace tutti::internal {

/// Calls a kernel's host function. @return why it failed: what it threw
[[nodiscard]] std::optional<Error> call_kernel(const HostKernel& kernel, const CommandStream& stream,
                                               const StreamBinding& binding);

/// Stretches the segments of a transfer to its start and end, where they do not fit.
void fit_segments(TransferInterval& transfer);

}  // namespace tutti::internal
