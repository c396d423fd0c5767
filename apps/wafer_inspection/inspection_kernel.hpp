#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "apps/wafer_inspection/die_compare.hpp"

struct CUstream_st;
namespace tutti {
struct KernelLaunch;
}

namespace wafer {

/// The names of the kernels of the inspection in batches.
inline constexpr std::string_view kInspectionKernel = "die_compare", kListKernel = "list_defects";

/// The kernel's forms: the part of the image in, its report out.
///
/// Parameters are one `InspectionParameters`; without any, the input is taken as three die rows of one pixel each. A
/// launch throws std::invalid_argument where the part is not three or more whole die rows, or does not fit.
void compare_on_host(const tutti::KernelLaunch& launch);
void compare_on_gpu(const tutti::KernelLaunch& launch, CUstream_st* stream);

/// The forms of the kernel behind it: a report in, its `PixelList` out. Parameters as above; without any, the report
/// has 8 bits. A launch throws std::invalid_argument where the report does not fit, and where the list has no 8 bytes.
void list_on_host(const tutti::KernelLaunch& launch);
void list_on_gpu(const tutti::KernelLaunch& launch, CUstream_st* stream);

/// Adds both to a table of kernels. @return as its `add`
template <class Table>
auto add_inspection(Table& kernels) {
  auto added = kernels.add(std::string(kInspectionKernel), compare_on_host, compare_on_gpu);
  return added ? kernels.add(std::string(kListKernel), list_on_host, list_on_gpu) : added;
}

/// Parameters of the kernel.
struct InspectionParameters {
  DieComparison comparison;
  std::size_t part_bytes = 0;  ///< of the input; the buffers have room for the declared size, which may be more
};

[[nodiscard]] std::vector<std::byte> to_bytes(const InspectionParameters& parameters);

}  // namespace wafer
