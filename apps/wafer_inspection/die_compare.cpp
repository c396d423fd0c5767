#include "apps/wafer_inspection/die_compare.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

#include "apps/wafer_inspection/errors.hpp"

namespace wafer {

namespace {

// __restrict: without it the compiler must assume that writing the report changes the picture.
template <class Pixel>
void compare_row(const Pixel* __restrict row, const Pixel* __restrict one, const Pixel* __restrict other,
                 Pixel* __restrict report, std::size_t pixels, Pixel threshold) {
  for (std::size_t i = 0; i < pixels; ++i) report[i] = excess(row[i], one[i], other[i], threshold);
}

template <class Pixel>
void compare_part(std::span<const std::uint8_t> part, std::span<std::uint8_t> report, const DieComparison& comparison) {
  const auto pixels_at = [](const std::uint8_t* bytes) { return reinterpret_cast<const Pixel*>(bytes); };
  const std::size_t bytes = comparison.die_row_bytes();
  for (std::size_t offset = 0; offset < part.size(); offset += bytes) {
    const std::uint8_t* row = part.data() + offset;
    const auto [one, other] = counterparts_of(offset, part.size(), bytes);
    compare_row(pixels_at(row), pixels_at(row + one), pixels_at(row + other),
                reinterpret_cast<Pixel*>(report.data() + offset), bytes / sizeof(Pixel),
                static_cast<Pixel>(comparison.threshold));
  }
}

}  // namespace

bool is_comparable(std::size_t part_bytes, const DieComparison& comparison) {
  if (comparison.width < 1 || comparison.die_height < 1) return false;
  if (comparison.bits != 16 && (comparison.bits != 8 || comparison.threshold > 255)) return false;
  return part_bytes % comparison.die_row_bytes() == 0 && part_bytes / comparison.die_row_bytes() > comparison_reach;
}

void die_compare(std::span<const std::uint8_t> part, std::span<std::uint8_t> report, const DieComparison& comparison) {
  WAFER_EXPECTS(is_comparable(part.size(), comparison), "a part is three or more whole die rows");
  WAFER_EXPECTS(report.size() == part.size(), "a report has the size of its part");
  comparison.bits == 8 ? compare_part<std::uint8_t>(part, report, comparison)
                       : compare_part<std::uint16_t>(part, report, comparison);
}

}  // namespace wafer
