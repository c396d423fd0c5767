#pragma once
#include <optional>

#include <cuda.h>

#include "apps/accelerate/pageable_copies.hpp"

namespace tutti::internal::cuda {

/// The bytes that a copy of rows or of a box moves, where they follow each other on the host, and on the device or in
/// rows of 1 KiB and more; none where they do not, or where an end is an array.
[[nodiscard]] std::optional<CopyCall> bytes_of(const CUDA_MEMCPY2D* rows, CUstream stream, bool waits);
[[nodiscard]] std::optional<CopyCall> bytes_of(const CUDA_MEMCPY3D* box, CUstream stream, bool waits);

}  // namespace tutti::internal::cuda
