#pragma once
#include <cstdint>
#include <span>

#include "apps/wafer_inspection/die_compare.hpp"

struct CUstream_st;

namespace wafer {

/// `die_compare` on a GPU: enqueues it on a stream of the current device, in whose memory both spans lie.
using DeviceDieCompare = void (*)(std::span<const std::uint8_t> part, std::span<std::uint8_t> report,
                                  const DieComparison& comparison, CUstream_st* stream);

/// The library that has it, since it needs CUDA, and the function that gives it. The function's name changes whenever
/// its arguments do.
inline constexpr const char* kDieCompareLibrary = "libtutti_wafer_cuda.so";
inline constexpr const char* kDieCompareEntry = "wafer_die_compare_v1";
using DieCompareEntry = DeviceDieCompare (*)();

/// Opens that library when it is called first.
/// @throws std::runtime_error: it is not there, or does not load.
[[nodiscard]] DeviceDieCompare device_die_compare();

}  // namespace wafer
