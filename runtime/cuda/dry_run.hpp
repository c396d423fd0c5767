#pragma once
#include <string_view>

#include "runtime/core/kernel_registry.hpp"
#include "runtime/cuda/status.hpp"

namespace tutti::internal::cuda {

/// Finds out, before gates are closed, whether a user's callable only enqueues: it is called on a stream that records
/// and does not run, in a thread of its own with a time limit. What it launches is loaded onto the device.
/// @param stream  whose kernel it is; for messages
/// @errors Kernel: it throws, waits, allocates, uses the default stream, or does not return.
[[nodiscard]] Expected<void> try_kernel(int device, std::string_view kernel, std::string_view stream,
                                        const DeviceKernel& callable, const KernelLaunch& launch);

}  // namespace tutti::internal::cuda
