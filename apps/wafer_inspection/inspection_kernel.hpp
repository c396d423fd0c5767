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
inline constexpr std::string_view kAlignKernel = "align_dies", kInspectionKernel = "die_compare",
                                  kClassifyKernel = "classify_defects";

// The forms of the kernels. Parameters are one `InspectionParameters`; without any, the part is taken as three die rows
// of one pixel each, without columns. A launch throws std::invalid_argument where the part is not three or more whole
// die rows, or something does not fit.

/// Reads a part, writes the `Shift` of each of its dies.
void align_on_host(const tutti::KernelLaunch& launch);
void align_on_gpu(const tutti::KernelLaunch& launch, CUstream_st* stream);

/// Reads a part, and the shifts of its dies where a second buffer is named; writes the report.
void compare_on_host(const tutti::KernelLaunch& launch);
void compare_on_gpu(const tutti::KernelLaunch& launch, CUstream_st* stream);

/// Reads a report, its part, and the shifts where a third buffer is named; writes a `PixelList`, of 8 bytes or more.
void classify_on_host(const tutti::KernelLaunch& launch);
void classify_on_gpu(const tutti::KernelLaunch& launch, CUstream_st* stream);

/// Adds them to a table of kernels. @return as its `add`
template <class Table>
auto add_inspection(Table& kernels) {
  auto added = kernels.add(std::string(kAlignKernel), align_on_host, align_on_gpu);
  if (added) added = kernels.add(std::string(kInspectionKernel), compare_on_host, compare_on_gpu);
  return added ? kernels.add(std::string(kClassifyKernel), classify_on_host, classify_on_gpu) : added;
}

/// Parameters of the kernel.
struct InspectionParameters {
  DieComparison comparison;
  std::size_t part_bytes = 0;  ///< of the input; the buffers have room for the declared size, which may be more
};

[[nodiscard]] std::vector<std::byte> to_bytes(const InspectionParameters& parameters);

}  // namespace wafer
