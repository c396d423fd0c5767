#pragma once
#include <memory>
#include <vector>

#include "runtime/core/baselines.hpp"
#include "runtime/cuda/lanes/bound_devices.hpp"

namespace tutti::internal::cuda {

/// As `Baselines::time_plain_copy`: `cudaMemcpyAsync`, then `cudaStreamSynchronize`.
[[nodiscard]] Expected<CopyTimes> time_plain_copy(const BufferView& from, const BufferView& to);

/// As `Baselines::plain_queue`; copies alone are one `cudaMemcpyBatchAsync`.
[[nodiscard]] Expected<std::unique_ptr<PlainQueue>> make_plain_queue(BoundDevices& bound, std::vector<PlainStep> steps);

}  // namespace tutti::internal::cuda
