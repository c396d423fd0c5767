#pragma once
#include <span>
#include <string_view>

#include "runtime/doctor/finding.hpp"
#include "runtime/host/gpu_condition.hpp"

namespace tutti::internal {

/// A check of one GPU: a row of the table in `gpu_checks.cpp`. To add one, write its function there and a row; what it
/// needs of the driver is a field of `GpuCondition`, which `runtime/cuda/discovery/examination` fills.
struct GpuCheck {
  std::string_view name;  ///< "PCIe link"
  /// @return  subject and check are left open.
  Finding (*look)(const GpuCondition& gpu);
};

/// All of them, in the order of the report.
[[nodiscard]] std::span<const GpuCheck> gpu_checks();

/// What every check of a GPU finds; the subject of each is the GPU's name.
[[nodiscard]] Findings look_at_gpu(const GpuCondition& gpu);

}  // namespace tutti::internal
