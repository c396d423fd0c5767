#pragma once
#include <memory>

#include "runtime/core/stencil.hpp"

namespace tutti::internal {

/// Puts a field of zeros on GPUs, with the streams and words for all three ways to run.
/// @errors InvalidInput: values outside their ranges, fields that are too large, a GPU that is not there, GPUs that do
///         not reach each other, fewer than 2 slots for a fused kernel. Machine: a call failed, such as for memory.
[[nodiscard]] Expected<std::unique_ptr<Stencil>> make_stencil(const StencilSpec& spec);

}  // namespace tutti::internal
