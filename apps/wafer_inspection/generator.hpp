#pragma once
#include <cstdint>
#include <string>

#include <tutti/error.hpp>

#include "apps/wafer_inspection/die_compare.hpp"
#include "apps/wafer_inspection/gray_image.hpp"
#include "apps/wafer_inspection/truth.hpp"

namespace wafer {

/// The largest noise of a generated wafer: the default threshold separates it from every defect.
inline constexpr int max_noise = 8;

/// The farthest that dies of such sides are displaced in generated wafers, px: so far that `align_dies` finds it.
[[nodiscard]] constexpr int max_shift(int die_width, int die_height) { return shift_reach(die_width, die_height) / 2; }

/// Specification of a wafer. Equal specs give equal wafers, byte for byte, on every machine.
struct WaferSpec {
  int width = 2048;   ///< px
  int height = 2048;  ///< px
  std::uint64_t seed = 1;
  int noise = 4;     ///< gray levels, the largest deviation of a pixel
  int defects = 12;  ///< how many to plant; 0 is a clean wafer
  int shift = 0;     ///< px, at most, that a die is displaced in each direction; cut down to `max_shift` of its dies

  friend bool operator==(const WaferSpec&, const WaferSpec&) = default;
};

/// A picture and its ground truth.
struct Wafer {
  GrayImage image;
  Truth truth;

  friend bool operator==(const Wafer&, const Wafer&) = default;
};

/// Draws a wafer: the same circuit in every die of the default grid, each displaced at random, sensor noise, and
/// planted defects.
///
/// Each defect is decidable by comparing dies: it is one connected patch of 4 px or more, at most 20 px a side, inside
/// one die, keeps clear of all others, and no two overlap at the same place of dies that are compared with each other.
/// Every one of its pixels differs from a good die by at least 45 gray levels before noise.
///
/// @param name  of the image file, for the truth.
/// @errors  InvalidInput: a size without a default grid, noise or a number of defects out of range, more defects than
///          the wafer has room for.
[[nodiscard]] tutti::Expected<Wafer> make_wafer(const WaferSpec& spec, const std::string& name);

}  // namespace wafer
