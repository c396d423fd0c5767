#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "apps/wafer_inspection/defects.hpp"
#include "apps/wafer_inspection/die_compare.hpp"
#include "apps/wafer_inspection/generator.hpp"
#include "apps/wafer_inspection/random.hpp"

namespace wafer {
namespace {

using Pixels = std::vector<std::uint8_t>;

/// One takes 6 s with sanitizers, which look at the code and not at its figures.
#ifdef __SANITIZE_ADDRESS__
constexpr std::uint64_t kWafers = 1;
#else
constexpr std::uint64_t kWafers = 4;
#endif

DieComparison comparison_of(const DieGrid& grid, int bits = 8) {
  return {grid.width, grid.die_height, default_threshold, bits, grid.left, grid.die_width, grid.columns};
}

/// The dies of a picture.
std::span<const std::uint8_t> dies_of(const Wafer& wafer) {
  const DieGrid& grid = wafer.truth.grid;
  return wafer.image.bytes().subspan(static_cast<std::size_t>(grid.top) * wafer.image.row_bytes(),
                                     static_cast<std::size_t>(grid.rows) * comparison_of(grid).die_row_bytes());
}

std::vector<Shift> shifts_of(const Wafer& wafer) {
  const DieComparison comparison = comparison_of(wafer.truth.grid);
  std::vector<Shift> shifts(dies_in(dies_of(wafer).size(), comparison), Shift{9, 9});
  align_dies(dies_of(wafer), shifts, comparison);
  return shifts;
}

std::vector<FoundDefect> found_in(const Wafer& wafer, std::span<const Shift> shifts) {
  const DieGrid& grid = wafer.truth.grid;
  GrayImage report(grid.width, grid.height);
  const std::size_t from = static_cast<std::size_t>(grid.top) * report.row_bytes();
  die_compare(dies_of(wafer), report.bytes().subspan(from, dies_of(wafer).size()), comparison_of(grid), shifts);
  return find_defects(report);
}

// Reach: a sixteenth of the shorter side, 4 px at most. Samples: every pixel below 64, then 32 to 63.
TEST(Shift, CandidatesAndSamplesFollowFromTheDie) {
  EXPECT_EQ(shift_reach(15, 100), 0);
  EXPECT_EQ(shift_reach(16, 100), 1);
  EXPECT_EQ(shift_reach(1000, 500), 4);
  EXPECT_EQ(shift_candidates(1), 9);
  EXPECT_EQ(shift_candidate(0, 1), (Shift{-1, -1}));
  EXPECT_EQ(shift_candidate(4, 1), (Shift{0, 0}));
  EXPECT_EQ(shift_candidate(8, 1), (Shift{1, 1}));
  const auto small = ShiftSamples::of(20, 16), large = ShiftSamples::of(648, 408);
  EXPECT_EQ(small.count(), 18 * 14);
  EXPECT_EQ(large.step_x, 20);
  EXPECT_EQ(large.across, 32);
  EXPECT_EQ(large.down, 34);  // 400 px in steps of 12
  EXPECT_EQ(large.offset(large.count() - 1, 1000), (4 + 33 * 12) * 1000 + 4 + 31 * 20);
}

// A die 3 x 3 px; above and below it, the same one pixel further right and lower: its last pixel is a defect in all.
TEST(Shift, ComparesWhatShowsTheSame) {
  const DieComparison dies{3, 3, 10, 8, 0, 3, 1};
  const std::vector<Shift> shifts{{0, 0}, {1, 1}, {0, 0}};
  const auto middle = AlignedCounterparts::of(dies, 3, 1, 0, shifts.data());
  EXPECT_EQ(middle.one, -9 - 3 - 1);
  EXPECT_EQ(middle.other, 9 - 3 - 1);
  EXPECT_TRUE(middle.has(1, 1, dies) && middle.has(2, 2, dies) && !middle.has(0, 1, dies) && !middle.has(1, 0, dies));
  const Pixels part{1, 2, 3, 4, 5, 6, 7, 8, 9,   //
                    0, 0, 0, 0, 1, 2, 0, 4, 99,  //
                    1, 2, 3, 4, 5, 6, 7, 8, 9};
  Pixels report(27, 77), expected(27, 0);
  die_compare(part, report, dies, shifts);
  expected[17] = 99 - 5 - 10;
  EXPECT_EQ(report, expected);
}

// A die of 64 px and more is displaced by up to 2 px, and so up to 4 px from another one.
TEST(AlignDies, FindsTheShiftOfEachDie) {
  for (std::uint64_t seed = 0; seed < kWafers; ++seed) {
    const Wafer wafer = make_wafer({2048, 2048, seed, max_noise, 40, 2}, "a.png").value();
    const Wafer still = make_wafer({2048, 2048, seed, max_noise, 40, 0}, "a.png").value();
    const std::vector<Shift> shifts = shifts_of(wafer);
    EXPECT_TRUE(std::ranges::any_of(shifts, [](const Shift& shift) { return shift.x == 4 || shift.y == -4; }));
    EXPECT_TRUE(std::ranges::all_of(shifts_of(still), [](const Shift& shift) { return shift == Shift{}; }));
    // Laid over each other by them, all dies are equal but for noise and defects: nothing else is found.
    const auto found = found_in(wafer, shifts);
    const Score aligned = score(boxes_of(wafer.truth), found);
    EXPECT_TRUE(aligned.missed.empty() && aligned.false_alarms.empty()) << "seed " << seed;
    EXPECT_EQ(aligned.hit.size(), 40U);
    const Score unaligned = score(boxes_of(wafer.truth), found_in(wafer, {}));
    EXPECT_GT(unaligned.false_alarms.size(), 100U) << "edges of the circuit";
  }
}

TEST(AlignDies, AlignsSmallDiesByAPixelAndTinyOnesNot) {
  for (const int side : {240, 480, 700, 960, 1400}) {
    const Wafer wafer = make_wafer({side, side, 3, 4, 12, 2}, "a.png").value();
    const DieGrid& grid = wafer.truth.grid;
    const Score aligned = score(boxes_of(wafer.truth), found_in(wafer, shifts_of(wafer)));
    EXPECT_EQ(aligned.hit.size(), 12U) << side;
    EXPECT_TRUE(aligned.false_alarms.empty()) << side << ", " << max_shift(grid.die_width, grid.die_height);
  }
}

// Equal gray levels everywhere: every shift is as good as none, and none is taken. So is noise.
TEST(AlignDies, MovesNothingInFlatDies) {
  const DieComparison dies{64, 64, 24, 8, 0, 64, 1};
  Pixels part(std::size_t{64} * 64 * 3, 100);
  std::vector<Shift> shifts(3, Shift{1, 1});
  align_dies(part, shifts, dies);
  EXPECT_EQ(shifts, std::vector<Shift>(3));
  Random random(5);
  for (std::uint8_t& pixel : part) pixel = static_cast<std::uint8_t>(random.between(90, 110));
  align_dies(part, shifts, dies);
  EXPECT_EQ(shifts, std::vector<Shift>(3));
}

}  // namespace
}  // namespace wafer
