#pragma once
#include <optional>
#include <span>

#include "model/batch/timeline.hpp"
#include "runtime/core/bound_call.hpp"

namespace tutti::internal {

/// Calls the host functions of a stream's kernels, until one fails. @return why it did: what it threw
[[nodiscard]] std::optional<Error> call_kernels(const CommandStream& stream, std::span<const BoundCall> calls);

/// Copies a part of a transfer, row by row where its rows lie apart.
/// @param offset,bytes  the part, as if all rows followed each other
void move_bytes(const Topology& machine, const Transfer& transfer, const StreamBinding& binding, std::size_t offset,
                std::size_t bytes);

/// Stretches the segments of a transfer to its start and end, where they do not fit.
void fit_segments(TransferInterval& transfer);

}  // namespace tutti::internal
