#pragma once
#include "runtime/kernel_registry.hpp"

namespace tutti {

/// The CUDA forms of the built-in kernels; empty functions in a build without CUDA.
[[nodiscard]] DeviceKernel cuda_spin();
[[nodiscard]] DeviceKernel cuda_checksum();

}  // namespace tutti
