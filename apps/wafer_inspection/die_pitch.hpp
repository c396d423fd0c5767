#pragma once
#include <optional>
#include <span>

#include "apps/wafer_inspection/die_grid.hpp"
#include "apps/wafer_inspection/gray_image.hpp"

namespace wafer {

/// The distance after which a profile repeats: the smallest lag at which the autocorrelation of its slopes nearly
/// reaches its maximum.
///
/// Slopes stand in for levels, since uneven light changes levels slowly. Multiples of the pitch correlate as well as
/// the pitch; repetitions inside a die correlate less.
///
/// @param profile  [n] mean gray levels along one axis.
/// @return  px, 8 to n / 3; none where no lag correlates above one half.
[[nodiscard]] std::optional<int> find_pitch(std::span<const double> profile);

/// Finds the dies of a picture: their pitch in both directions, and the region in which they repeat.
///
/// The region begins and ends where most pixels of a row, or of a column, leave the pattern. Inside the space that is
/// left over, the grid lines are laid where the picture has the least detail, as a street does.
///
/// @param threshold  gray levels; a difference up to this is noise.
/// @errors  InvalidInput: nothing repeats three times across or down.
/// @heuristic  A pitch that is no whole number of pixels is found as a multiple of it, or not at all.
[[nodiscard]] tutti::Expected<DieGrid> find_die_grid(const GrayImage& image, int threshold);

}  // namespace wafer
