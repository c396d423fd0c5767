#pragma once
#include <cstdint>
#include <span>

#include "apps/wafer_inspection/die_compare.hpp"

struct CUstream_st;

namespace wafer {

/// The kernels of the inspection on a GPU: each enqueues its work on a stream of the current device, in whose memory
/// all spans lie.
struct DeviceForms {
  /// `align_dies`
  void (*align)(std::span<const std::uint8_t> part, std::span<Shift> shifts, const DieComparison& comparison,
                CUstream_st* stream);
  /// `die_compare`
  void (*compare)(std::span<const std::uint8_t> part, std::span<const Shift> shifts, std::span<std::uint8_t> report,
                  const DieComparison& comparison, CUstream_st* stream);
  /// `classify`
  void (*classify)(std::span<const std::uint8_t> report, std::span<const std::uint8_t> part,
                   std::span<const Shift> shifts, std::span<std::uint8_t> list, const DieComparison& comparison,
                   CUstream_st* stream);
};

/// The library that has them, since they need CUDA, and the function that gives them. The function's name changes
/// whenever their arguments do.
inline constexpr const char* kDieCompareLibrary = "libtutti_wafer_cuda.so";
inline constexpr const char* kDieCompareEntry = "wafer_device_forms_v3";
using DieCompareEntry = const DeviceForms* (*)();

/// Opens that library when it is called first.
/// @throws std::runtime_error: it is not there, or does not load.
[[nodiscard]] const DeviceForms& device_forms();

}  // namespace wafer
