#include "apps/wafer_inspection/die_compare.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "apps/wafer_inspection/errors.hpp"

namespace wafer {

namespace {

// __restrict: without it the compiler must assume that writing the report changes the picture.
template <class Pixel>
void compare_row(const Pixel* __restrict row, const Pixel* __restrict one, const Pixel* __restrict other,
                 Pixel* __restrict report, std::size_t pixels, Pixel threshold) {
  for (std::size_t i = 0; i < pixels; ++i) report[i] = excess(row[i], one[i], other[i], threshold);
}

/// One row of pixels of a die, and nothing where its counterparts lie outside of their dies.
template <class Pixel>
void compare_aligned(const Pixel* row, Pixel* report, int y, const DieComparison& dies,
                     const AlignedCounterparts& found) {
  std::fill_n(report, dies.die_width, Pixel{0});
  if (y < found.top || y >= dies.die_height - found.bottom) return;
  const int pixels = dies.die_width - found.left - found.right;
  if (pixels <= 0) return;
  row += found.left;
  compare_row(row, row + found.one, row + found.other, report + found.left, static_cast<std::size_t>(pixels),
              static_cast<Pixel>(dies.threshold));
}

/// Compares the dies, behind what lies beside them.
template <class Pixel>
void compare_dies(std::span<const std::uint8_t> part, std::span<std::uint8_t> report, const DieComparison& dies,
                  std::span<const Shift> shifts) {
  const auto* const pixels = reinterpret_cast<const Pixel*>(part.data());
  auto* const result = reinterpret_cast<Pixel*>(report.data());
  const int die_rows = static_cast<int>(part.size() / dies.die_row_bytes());
  for (int row = 0; row < die_rows; ++row)
    for (int column = 0; column < dies.columns; ++column) {
      const auto found = AlignedCounterparts::of(dies, die_rows, row, column, shifts.data());
      for (int y = 0; y < dies.die_height; ++y) {
        const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row * dies.die_height + y) * dies.width + dies.left +
                                  static_cast<std::ptrdiff_t>(column) * dies.die_width;
        compare_aligned(pixels + at, result + at, y, dies, found);
      }
    }
}

template <class Pixel>
Shift find_shift(const Pixel* die, const Pixel* first, const DieComparison& dies, std::vector<std::uint64_t>& sums) {
  const auto samples = ShiftSamples::of(dies.die_width, dies.die_height);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const Shift shift = shift_candidate(static_cast<int>(i), samples.reach);
    const Pixel* const moved = die + static_cast<std::ptrdiff_t>(shift.y) * dies.width + shift.x;
    sums[i] = 0;
    for (int sample = 0; sample < samples.count(); ++sample) {
      const std::ptrdiff_t at = samples.offset(sample, dies.width);
      sums[i] += static_cast<std::uint64_t>(std::abs(moved[at] - first[at]));
    }
  }
  return best_shift(sums.data(), samples.reach);
}

template <class Pixel>
void align_part(const Pixel* part, std::span<Shift> shifts, const DieComparison& dies) {
  std::vector<std::uint64_t> sums(
      static_cast<std::size_t>(shift_candidates(shift_reach(dies.die_width, dies.die_height))));
  const auto columns = static_cast<std::size_t>(dies.columns);
  for (std::size_t die = 0; die < shifts.size(); ++die) {
    const Pixel* const first = part + dies.left + die % columns * static_cast<std::size_t>(dies.die_width);
    const std::size_t below = die / columns * static_cast<std::size_t>(dies.die_height);
    shifts[die] =
        below == 0 ? Shift{} : find_shift(first + below * static_cast<std::size_t>(dies.width), first, dies, sums);
  }
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

void die_compare(std::span<const std::uint8_t> part, std::span<std::uint8_t> report, const DieComparison& comparison,
                 std::span<const Shift> shifts) {
  WAFER_EXPECTS(is_comparable(part.size(), comparison), "a part is three or more whole die rows");
  WAFER_EXPECTS(report.size() == part.size(), "a report has the size of its part");
  comparison.bits == 8 ? compare_part<std::uint8_t>(part, report, comparison)
                       : compare_part<std::uint16_t>(part, report, comparison);
  if (std::ranges::all_of(shifts, [](const Shift& shift) { return shift == Shift{}; })) return;
  WAFER_EXPECTS(shifts.size() == dies_in(part.size(), comparison), "each die has a shift");
  comparison.bits == 8 ? compare_dies<std::uint8_t>(part, report, comparison, shifts)
                       : compare_dies<std::uint16_t>(part, report, comparison, shifts);
}

std::size_t dies_in(std::size_t part_bytes, const DieComparison& comparison) {
  return part_bytes / comparison.die_row_bytes() * static_cast<std::size_t>(comparison.columns);
}

void align_dies(std::span<const std::uint8_t> part, std::span<Shift> shifts, const DieComparison& comparison) {
  WAFER_EXPECTS(is_comparable(part.size(), comparison), "a part is three or more whole die rows");
  WAFER_EXPECTS(shifts.size() == dies_in(part.size(), comparison), "each die gets a shift");
  comparison.bits == 8 ? align_part(part.data(), shifts, comparison)
                       : align_part(reinterpret_cast<const std::uint16_t*>(part.data()), shifts, comparison);
}

}  // namespace wafer
