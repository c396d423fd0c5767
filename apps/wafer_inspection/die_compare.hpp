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
void die_compare(std::span<const std::uint8_t> part, std::span<std::uint8_t> report, const DieComparison& comparison);

}  // namespace wafer
