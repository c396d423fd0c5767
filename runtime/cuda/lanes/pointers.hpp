#pragma once
#include "runtime/cuda/lanes/bound_devices.hpp"

namespace tutti::internal::cuda {

/// Whether the memory that a batch is bound to is where the machine says it is: host memory that is pinned, memory of
/// the right GPU. A copy from or to other host memory would make the driver wait behind a closed gate.
/// @errors InvalidInput: the stream, the side and the remedy. Machine: the driver's refusal.
[[nodiscard]] Expected<void> check_pointers(const BoundDevices& bound, const BoundPlan& plan);

/// Whether memory of the program can be a buffer at this vertex as it is; false: it is ordinary memory, which would
/// have to be pinned for that. @pre it has a byte
/// @errors InvalidInput: it lies elsewhere, or in part. Machine: the driver's refusal.
[[nodiscard]] Expected<bool> lies_at(const BoundDevices& bound, VertexId where, std::span<const std::byte> memory);

}  // namespace tutti::internal::cuda
