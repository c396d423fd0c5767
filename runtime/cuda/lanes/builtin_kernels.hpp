#pragma once
#include <string_view>
#include <vector>

#include "runtime/core/bound_call.hpp"

namespace tutti::internal::cuda {

/// The form of a registered kernel that GPUs run: its own, or this backend's where the kernel is built in.
/// @return null where GPUs cannot run it
[[nodiscard]] const DeviceKernel* device_form(std::string_view name, const KernelForms& forms);

/// A kernel with the form of it that GPUs run. A value, since a call may not come back.
struct DeviceCall {
  BoundCall bound;
  DeviceKernel form;
};

/// The kernels of a stream for a GPU.
/// @errors InvalidInput, with the stream's place: one that GPUs cannot run.
[[nodiscard]] Expected<std::vector<DeviceCall>> device_calls_of(const CommandStream& stream,
                                                                const std::vector<BoundCall>& calls);

}  // namespace tutti::internal::cuda
