#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace wafer {

/// Parameters of the comparison of a part.
struct DieComparison {
  int width = 0;                ///< of the image, px
  int die_height = 0;           ///< px
  std::uint16_t threshold = 0;  ///< gray levels; a difference up to this is noise
  int bits = 8;                 ///< of a pixel, 8 or 16
  int left = 0;                 ///< of the first die, px; where dies are aligned
  int die_width = 0;            ///< px; so is this
  int columns = 0;              ///< of dies; so are they

  [[nodiscard]] std::size_t die_row_bytes() const {
    return static_cast<std::size_t>(width) * static_cast<std::size_t>(die_height) * static_cast<std::size_t>(bits / 8);
  }

  friend bool operator==(const DieComparison&, const DieComparison&) = default;
};

/// The distance, in die rows, of the farthest die that a die is compared with (at the edge of a part).
inline constexpr int comparison_reach = 2;

/// The threshold that fits every generated wafer: above twice the strongest noise, below the weakest defect.
inline constexpr std::uint16_t default_threshold = 24;

/// The distance of a pixel from the median of itself and its two counterparts, less the threshold; 0 = fine.
///
/// The median decides which of two differing dies is at fault, so a defect shows in its own die and leaves no ghost in
/// the neighbours. The code computes the distance to the span of the counterparts, which is the same number. Host and
/// device share this function, so their reports are equal in every byte.
///
/// @tparam Pixels  one pixel, or several side by side: `min`, `max`, `-` and `|` of each; no difference is below 0.
template <class Pixels>
[[nodiscard]] constexpr Pixels excess(Pixels pixel, Pixels one, Pixels other, Pixels threshold) {
  using std::max;
  using std::min;
  const Pixels low = min(one, other);
  const Pixels high = max(one, other);
  // At most one of the two is not zero.
  const auto above = static_cast<Pixels>(max(pixel, high) - high);
  const auto below = static_cast<Pixels>(low - min(pixel, low));
  const auto distance = static_cast<Pixels>(above | below);
  return static_cast<Pixels>(max(distance, threshold) - threshold);
}

/// Offsets, in bytes, from a pixel to the two pixels that it is compared with.
struct Counterparts {
  std::ptrdiff_t one = 0;
  std::ptrdiff_t other = 0;
};

/// The counterparts of the pixel at an offset: one die row above and one below, or the two nearest at an edge.
/// @pre three or more die rows.
[[nodiscard]] constexpr Counterparts counterparts_of(std::size_t offset, std::size_t part_bytes,
                                                     std::size_t die_row_bytes) {
  const auto row = static_cast<std::ptrdiff_t>(die_row_bytes);
  if (offset < die_row_bytes) return {row, 2 * row};
  if (offset >= part_bytes - die_row_bytes) return {-row, -2 * row};
  return {-row, row};
}

/// A die's displacement from its place in the grid, px: relative to the die of its column in the first die row of the
/// part, which has none.
struct Shift {
  std::int16_t x = 0, y = 0;

  friend constexpr bool operator==(const Shift&, const Shift&) = default;
};

/// The farthest that two dies of such sides are looked for from each other, px: 0 where they are too small for that.
[[nodiscard]] constexpr int shift_reach(int die_width, int die_height) {
  const int side = die_width < die_height ? die_width : die_height;
  return side / 16 < 4 ? side / 16 : 4;
}

/// Candidates for a shift: a square of side `2 * reach + 1`, by rows.
[[nodiscard]] constexpr int shift_candidates(int reach) { return (2 * reach + 1) * (2 * reach + 1); }
[[nodiscard]] constexpr Shift shift_candidate(int number, int reach) {
  const int side = 2 * reach + 1;
  return {static_cast<std::int16_t>(number % side - reach), static_cast<std::int16_t>(number / side - reach)};
}

/// The pixels of a die at which it is laid over another one: a lattice of at most 32 to 63 across and down, as far from
/// the edges as a shift reaches.
struct ShiftSamples {
  int reach, step_x, step_y, across, down;

  [[nodiscard]] static constexpr ShiftSamples of(int die_width, int die_height) {
    const int reach = shift_reach(die_width, die_height);
    const int width = die_width - 2 * reach, height = die_height - 2 * reach;
    const int step_x = width < 64 ? 1 : width / 32, step_y = height < 64 ? 1 : height / 32;
    return {reach, step_x, step_y, (width + step_x - 1) / step_x, (height + step_y - 1) / step_y};
  }
  [[nodiscard]] constexpr int count() const { return across * down; }
  /// Offset, in pixels, of a sample from the die's first one.
  [[nodiscard]] constexpr std::ptrdiff_t offset(int sample, int image_width) const {
    const int x = reach + sample % across * step_x, y = reach + sample / across * step_y;
    return static_cast<std::ptrdiff_t>(y) * image_width + x;
  }
};

/// The shift for which the sum of absolute differences is the least; none where that is not clearly less than without,
/// so that noise alone moves nothing.
/// @param sums  [`shift_candidates(reach)`]
template <class Sum>
[[nodiscard]] constexpr Shift best_shift(const Sum* sums, int reach) {
  const int none = shift_candidates(reach) / 2;
  int best = none;
  for (int i = 0; i < shift_candidates(reach); ++i)
    if (sums[i] < sums[best]) best = i;
  return sums[best] * 8 < sums[none] * 7 ? shift_candidate(best, reach) : Shift{};
}

/// The pixels with which a pixel of a die is compared: those that show the same of the circuit, in the dies above and
/// below it, or the two nearest at an edge.
struct AlignedCounterparts {
  /// From a pixel to its counterparts, px.
  std::ptrdiff_t one = 0, other = 0;
  /// How far from the edges of the die (left, right, top, bottom) these still lie in their dies, px.
  int left = 0, right = 0, top = 0, bottom = 0;

  /// @param shifts  [die rows of the part][columns]
  [[nodiscard]] static constexpr AlignedCounterparts of(const DieComparison& dies, int die_rows, int row, int column,
                                                        const Shift* shifts) {
    const int rows[2] = {row == 0 ? 1 : row - 1, row == 0 ? 2 : row + 1 == die_rows ? row - 2 : row + 1};
    const Shift own = shifts[row * dies.columns + column];
    std::ptrdiff_t offsets[2] = {};
    AlignedCounterparts made;
    for (int i = 0; i < 2; ++i) {
      const Shift there = shifts[rows[i] * dies.columns + column];
      const int x = there.x - own.x, y = there.y - own.y;
      offsets[i] = static_cast<std::ptrdiff_t>((rows[i] - row) * dies.die_height + y) * dies.width +
                   static_cast<std::ptrdiff_t>(x);
      made.left = -x > made.left ? -x : made.left;
      made.right = x > made.right ? x : made.right;
      made.top = -y > made.top ? -y : made.top;
      made.bottom = y > made.bottom ? y : made.bottom;
    }
    made.one = offsets[0];
    made.other = offsets[1];
    return made;
  }
  /// Whether a pixel of the die has both.
  [[nodiscard]] constexpr bool has(int x, int y, const DieComparison& dies) const {
    return x >= left && x < dies.die_width - right && y >= top && y < dies.die_height - bottom;
  }
};

/// The counterparts of a pixel of a part, as offsets in pixels; both 0 where it has none. Beside the dies nothing is
/// aligned.
/// @param shifts  [die rows][columns]; null: no die is displaced
[[nodiscard]] constexpr Counterparts counterparts_at(std::size_t pixel, int die_rows, const DieComparison& dies,
                                                     const Shift* shifts) {
  const int y = static_cast<int>(pixel / static_cast<std::size_t>(dies.width));
  const int x = static_cast<int>(pixel % static_cast<std::size_t>(dies.width)) - dies.left;
  const int row = y / dies.die_height;
  if (shifts == nullptr || x < 0 || x >= dies.columns * dies.die_width) {
    const auto row_pixels = static_cast<std::size_t>(dies.width) * static_cast<std::size_t>(dies.die_height);
    return counterparts_of(pixel, row_pixels * static_cast<std::size_t>(die_rows), row_pixels);
  }
  const int column = x / dies.die_width;
  const auto found = AlignedCounterparts::of(dies, die_rows, row, column, shifts);
  if (!found.has(x - column * dies.die_width, y - row * dies.die_height, dies)) return {};
  return {found.one, found.other};
}

/// Whether a part of this many bytes can be compared: it is three or more whole die rows, and the threshold is a gray
/// level of the pixels.
[[nodiscard]] bool is_comparable(std::size_t part_bytes, const DieComparison& comparison);

/// Compares each die of a part with the dies above and below it: the kernel of the inspection.
///
/// In the first and the last die row the two nearest dies are on the same side. Neighbours are vertical because a die
/// row is contiguous: the loop has no columns, edges or gaps. It needs no allocation and no state, only integers.
///
/// @param part    [n] bytes of whole die rows over the full width of the image.
/// @param report  [n] a pixel of the picture's depth for each one: 0 where it is fine, else the gray levels above the
///                threshold; all n bytes are written.
/// @pre     `is_comparable(n, comparison)`; the spans do not overlap, and begin at multiples of a pixel's bytes.
/// @param shifts  [die rows][columns] as `align_dies` finds them; pixels whose counterparts lie outside of their dies
/// are
///                fine. Empty: no die is displaced.
void die_compare(std::span<const std::uint8_t> part, std::span<std::uint8_t> report, const DieComparison& comparison,
                 std::span<const Shift> shifts = {});

/// The dies of a part: `die_rows * columns`.
[[nodiscard]] std::size_t dies_in(std::size_t part_bytes, const DieComparison& comparison);

/// Finds how far each die of a part is displaced: lays it over the first die of its column, at a lattice of pixels, and
/// takes the shift with the least sum of absolute differences.
///
/// @param part    as above
/// @param shifts  [`dies_in`]
/// @pre as above; the dies lie side by side in the picture's width
void align_dies(std::span<const std::uint8_t> part, std::span<Shift> shifts, const DieComparison& comparison);

}  // namespace wafer
