#pragma once
#include <cstdint>
#include <span>

#include "apps/wafer_inspection/die_compare.hpp"

struct CUstream_st;

namespace wafer {

/// `die_compare` on a GPU: enqueues it on a stream of the current device, in whose memory both spans lie.
using DeviceDieCompare = void (*)(std::span<const std::uint8_t> part, std::span<std::uint8_t> report,
                                  const DieComparison& comparison, CUstream_st* stream);

/// Null in a build without CUDA.
[[nodiscard]] DeviceDieCompare device_die_compare();

}  // namespace wafer
