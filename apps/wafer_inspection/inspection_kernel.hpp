#pragma once
#include <string_view>
#include <vector>

#include "apps/wafer_inspection/die_compare.hpp"
#include "runtime/core/kernel_registry.hpp"

namespace wafer {

/// The name of the inspection kernel in batches.
inline constexpr std::string_view kInspectionKernel = "die_compare";

/// Registers `die_compare` for host and GPU: the part of the image in, its report out.
///
/// Parameters are one `InspectionParameters`; without any, the input is taken as three die rows of one pixel each. A
/// launch throws std::invalid_argument where the part is not three or more whole die rows, or does not fit.
/// @errors InvalidInput: the name is taken.
[[nodiscard]] tutti::Expected<void> add_inspection_kernel(tutti::internal::KernelRegistry& registry);

/// Parameters of the kernel.
struct InspectionParameters {
  DieComparison comparison;
  std::size_t part_bytes = 0;  ///< of the input; the buffers have room for the declared size, which may be more
};

[[nodiscard]] std::vector<std::byte> to_bytes(const InspectionParameters& parameters);

}  // namespace wafer
