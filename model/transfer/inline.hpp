#pragma once
#include <optional>

#include "model/transfer/transfer_method.hpp"

namespace tutti::internal {

/// Most bytes of an inline copy: what the arguments of a kernel or two hold.
inline constexpr Bytes kMostInline{4096};

/// Up to `kMostInline` bytes from a memory to a GPU, carried by the command itself: one or two words as values that the
/// stream writes, more as an argument of a kernel. It counts as a kernel, which holds the GPU.
///
/// The bytes are read when the command is enqueued, so nothing of such a batch is enqueued before its data is final.
[[nodiscard]] std::optional<RouteView> route_inline(const Topology& machine, const Transfer& transfer);

}  // namespace tutti::internal
