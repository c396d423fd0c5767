#pragma once
#include <string_view>

#include "runtime/core/kernel_registry.hpp"

namespace tutti::internal::cuda {

/// The form of a registered kernel that GPUs run: its own, or this backend's where the kernel is built in.
/// @return null where GPUs cannot run it
[[nodiscard]] const DeviceKernel* device_form(std::string_view name, const KernelForms& forms);

}  // namespace tutti::internal::cuda
