#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

#include "apps/wafer_inspection/die_compare.hpp"

struct CUstream_st;
namespace tutti {
struct KernelLaunch;
}

namespace wafer {

/// The name of the inspection kernel in batches.
inline constexpr std::string_view kInspectionKernel = "die_compare";

/// The kernel's forms: the part of the image in, its report out.
///
/// Parameters are one `InspectionParameters`; without any, the input is taken as three die rows of one pixel each. A
/// launch throws std::invalid_argument where the part is not three or more whole die rows, or does not fit.
void compare_on_host(const tutti::KernelLaunch& launch);
void compare_on_gpu(const tutti::KernelLaunch& launch, CUstream_st* stream);

/// Parameters of the kernel.
struct InspectionParameters {
  DieComparison comparison;
  std::size_t part_bytes = 0;  ///< of the input; the buffers have room for the declared size, which may be more
};

[[nodiscard]] std::vector<std::byte> to_bytes(const InspectionParameters& parameters);

}  // namespace wafer
