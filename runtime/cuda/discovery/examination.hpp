#pragma once
#include "runtime/host/gpu_condition.hpp"

namespace tutti::internal {

/// How a GPU is doing. Copies to it run for 0.3 s meanwhile, since an idle link is trained down, and an
/// idle GPU has low clocks; none run where another run of this project uses the GPU: they would break its guarantees.
/// Changes no setting.
/// @param device  as `discover_host` found it
/// @return  without a name.
[[nodiscard]] GpuCondition examine_gpu(const DeviceFacts& device);

}  // namespace tutti::internal
