#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace wafer {

/// What the comparison must know of a part beside its bytes.
struct DieComparison {
  int width = 0;               ///< of the image, px
  int die_height = 0;          ///< px
  std::uint8_t threshold = 0;  ///< gray levels; up to here a difference is noise

  [[nodiscard]] std::size_t die_row_bytes() const {
    return static_cast<std::size_t>(width) * static_cast<std::size_t>(die_height);
  }

  friend bool operator==(const DieComparison&, const DieComparison&) = default;
};

/// How many die rows away the farthest die stands that a die is compared with (at the edge of a part).
inline constexpr int comparison_reach = 2;

/// The threshold that fits every generated wafer: above twice the strongest noise, below the weakest defect.
inline constexpr std::uint8_t default_threshold = 24;

/// How far a pixel lies from the median of itself and its two counterparts, less the threshold; 0 = fine.
///
/// The median decides which of two differing dies is at fault, so a defect shows in its own die and leaves no ghost in
/// the neighbours. It is written as the distance to the span of the counterparts, which is the same number. Host and
/// device share this function, and with it every byte of a report.
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

/// How far behind a pixel the two pixels stand that it is compared with, in bytes.
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

/// Can these many bytes be compared: whole die rows, three or more?
[[nodiscard]] bool is_comparable(std::size_t part_bytes, const DieComparison& comparison);

/// Compares each die of a part with the dies above and below it: the kernel of the inspection.
///
/// In the first and the last die row the two nearest dies stand on the same side. Vertical neighbours, since a die row
/// is one run of bytes: the loop is free of columns, edges and gaps. No allocation, no state, integers only.
///
/// @param part    [n] pixels of whole die rows over the full width of the image.
/// @param report  [n] 0 where a pixel is fine, else the gray levels above the threshold; all n are written.
/// @pre     `is_comparable(n, comparison)`; the spans do not overlap.
void die_compare(std::span<const std::uint8_t> part, std::span<std::uint8_t> report, const DieComparison& comparison);

}  // namespace wafer
