#include "apps/wafer_inspection/die_compare.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

#include "model/base/expects.hpp"

namespace wafer {

namespace {

// __restrict: without it the compiler must assume that writing the report changes the picture.
void compare_row(const std::uint8_t* __restrict row, const std::uint8_t* __restrict one,
                 const std::uint8_t* __restrict other, std::uint8_t* __restrict report, std::size_t bytes,
                 std::uint8_t threshold) {
  for (std::size_t i = 0; i < bytes; ++i) report[i] = excess(row[i], one[i], other[i], threshold);
}

}  // namespace

bool is_comparable(std::size_t part_bytes, const DieComparison& comparison) {
  if (comparison.width < 1 || comparison.die_height < 1) return false;
  return part_bytes % comparison.die_row_bytes() == 0 && part_bytes / comparison.die_row_bytes() > comparison_reach;
}

void die_compare(std::span<const std::uint8_t> part, std::span<std::uint8_t> report, const DieComparison& comparison) {
  TUTTI_EXPECTS(is_comparable(part.size(), comparison), "a part is three or more whole die rows");
  TUTTI_EXPECTS(report.size() == part.size(), "a report has the size of its part");
  const std::size_t bytes = comparison.die_row_bytes();
  for (std::size_t offset = 0; offset < part.size(); offset += bytes) {
    const std::uint8_t* row = part.data() + offset;
    const auto [one, other] = counterparts_of(offset, part.size(), bytes);
    compare_row(row, row + one, row + other, report.data() + offset, bytes, comparison.threshold);
  }
}

}  // namespace wafer
