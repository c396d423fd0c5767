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
[[nodiscard]] constexpr std::uint8_t excess(std::uint8_t pixel, std::uint8_t one, std::uint8_t other,
                                            std::uint8_t threshold) {
  const std::uint8_t low = std::min(one, other);
  const std::uint8_t high = std::max(one, other);
  // At most one of the two is not zero.
  const auto above = static_cast<std::uint8_t>(std::max(pixel, high) - high);
  const auto below = static_cast<std::uint8_t>(low - std::min(pixel, low));
  const auto distance = static_cast<std::uint8_t>(above | below);
  return static_cast<std::uint8_t>(std::max(distance, threshold) - threshold);
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
