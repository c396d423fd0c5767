#pragma once
#include <vector>

#include "apps/lab/fits/measurement.hpp"
#include "apps/lab/fits/rate_corrections.hpp"

namespace tutti::internal {

/// Digits of a row's rates: finer than any measurement repeats.
inline constexpr int kTableDigits = 4;

struct MadeTable {
  MeasuredTable table;
  bool strained = false;  ///< some symmetric GPUs differ by more than the scatter of the measurements
};

/// The table of a calibrated machine: GPUs whose exchange changes no corrected rate are symmetric; each combination up
/// to such exchanges is a row, with its measured rates or else its corrected ones, which are never above those of each
/// copy alone.
/// @pre at most kMostCalibrated GPUs.
[[nodiscard]] MadeTable make_table(std::size_t gpus, const std::vector<Combination>& combinations,
                                   const RateCorrections& corrections);

}  // namespace tutti::internal
