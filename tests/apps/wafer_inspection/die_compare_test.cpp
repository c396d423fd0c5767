#include "apps/wafer_inspection/die_compare.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "apps/wafer_inspection/random.hpp"

namespace wafer {
namespace {

using Pixels = std::vector<std::uint8_t>;

Pixels compared(const Pixels& part, const DieComparison& comparison) {
  Pixels report(part.size(), 0xcd);
  die_compare(part, report, comparison);
  return report;
}

int median(int a, int b, int c) {
  std::array sorted{a, b, c};
  std::ranges::sort(sorted);
  return sorted[1];
}

// A pixel of 90 between counterparts of 20 and 24: the median is 24, the difference 66, 61 above a threshold of 5.
// A counterpart of 90 beside one of 24: a pixel of 20 has the median 24, and 4 is noise.
TEST(Excess, IsTheDistanceToTheMedianAboveTheThreshold) {
  EXPECT_EQ(excess(90, 20, 24, 5), 61);
  EXPECT_EQ(excess(20, 90, 24, 5), 0);
  EXPECT_EQ(excess(0, 255, 255, 0), 255);
  EXPECT_EQ(excess(255, 0, 0, 255), 0);
  EXPECT_EQ(excess(30, 24, 24, 6), 0);
  EXPECT_EQ(excess(31, 24, 24, 6), 1);
}

TEST(Excess, AgreesWithTheMedianOfThree) {
  for (int pixel = 0; pixel <= 255; pixel += 5)
    for (int one = 0; one <= 255; one += 5)
      for (int other = 0; other <= 255; other += 5)
        for (const int threshold : {0, 1, 24, 255}) {
          const int expected = std::max(std::abs(pixel - median(pixel, one, other)) - threshold, 0);
          ASSERT_EQ(excess(static_cast<std::uint8_t>(pixel), static_cast<std::uint8_t>(one),
                           static_cast<std::uint8_t>(other), static_cast<std::uint8_t>(threshold)),
                    expected);
        }
}

// Three dies of one line, threshold 5. Per column, each pixel against the span of the two others:
//   column 0:  10 in [10,12]   10 in [10,12]   12 to [10,10] = 2, noise
//   column 1:  20 in [20,90]   90 to [20,20] = 70 - 5 = 65      20 in [20,90]: no ghost above or below
//   column 2:  30 in [22,30]   30 in [22,30]   22 to [30,30] = 8 - 5 = 3
//   column 3:  40 in [40,46]   46 to [40,40] = 6 - 5 = 1        40 in [40,46]
TEST(DieCompare, ShowsADefectInItsOwnDieOnly) {
  const Pixels part{10, 20, 30, 40,   //
                    10, 90, 30, 46,   //
                    12, 20, 22, 40};  //
  const Pixels expected{0, 0,  0, 0,  //
                        0, 65, 0, 1,  //
                        0, 0,  3, 0};
  EXPECT_EQ(compared(part, {.width = 4, .die_height = 1, .threshold = 5}), expected);
}

// Dies of 2 lines and 1 column: line 0 of a die meets line 0 of the others, never line 1.
//   lines 0: 10, 10, 60, 10     lines 1: 200, 240, 200, 200
TEST(DieCompare, ComparesTheSameLineOfEachDie) {
  const Pixels part{10, 200, 10, 240, 60, 200, 10, 200};
  const Pixels expected{0, 0, 0, 40, 50, 0, 0, 0};
  EXPECT_EQ(compared(part, {.width = 1, .die_height = 2, .threshold = 0}), expected);
}

/// Dark or bright, in any die row: the report is the defect.
TEST(DieCompare, FindsADefectInEveryDieRow) {
  for (std::size_t rows = 3; rows <= 7; ++rows)
    for (std::size_t row = 0; row < rows; ++row)
      for (const int level : {20, 180}) {
        Pixels part(rows * 6, 100);
        part[row * 6 + 4] = static_cast<std::uint8_t>(level);
        Pixels expected(part.size(), 0);
        expected[row * 6 + 4] = 80 - 24;
        EXPECT_EQ(compared(part, {.width = 3, .die_height = 2, .threshold = 24}), expected);
      }
}

// Twice the strongest noise is the threshold: |(l + a) - (l - a)| = 2a.
TEST(DieCompare, IsSilentAboutNoiseUpToHalfTheThreshold) {
  Random random{3};
  Pixels part(40 * 50);
  for (auto& pixel : part) pixel = static_cast<std::uint8_t>(100 + random.between(-12, 12));
  EXPECT_EQ(compared(part, {.width = 10, .die_height = 4, .threshold = 24}), Pixels(part.size(), 0));
}

/// Pixel by pixel, from the definition.
Pixels slowly_compared(const Pixels& part, const DieComparison& comparison) {
  const auto lines = static_cast<int>(part.size()) / comparison.width;
  const int rows = lines / comparison.die_height;
  const auto at = [&](int row, int y, int x) {
    return int{part[static_cast<std::size_t>((row * comparison.die_height + y) * comparison.width + x)]};
  };
  Pixels report;
  for (int row = 0; row < rows; ++row) {
    const int one = row == 0 ? 1 : row - 1;
    const int other = row == 0 ? 2 : row == rows - 1 ? rows - 3 : row + 1;
    for (int y = 0; y < comparison.die_height; ++y)
      for (int x = 0; x < comparison.width; ++x) {
        const int middle = median(at(row, y, x), at(one, y, x), at(other, y, x));
        const int difference = std::abs(at(row, y, x) - middle);
        report.push_back(static_cast<std::uint8_t>(std::max(difference - comparison.threshold, 0)));
      }
  }
  return report;
}

TEST(DieCompare, AgreesWithTheDefinitionOnRandomParts) {
  Random random{11};
  for (int round = 0; round < 200; ++round) {
    const DieComparison comparison{.width = random.between(1, 70),
                                   .die_height = random.between(1, 9),
                                   .threshold = static_cast<std::uint16_t>(random.between(0, 80))};
    Pixels part(comparison.die_row_bytes() * static_cast<std::size_t>(random.between(3, 8)));
    for (auto& pixel : part) pixel = static_cast<std::uint8_t>(random.between(0, 255));
    ASSERT_EQ(compared(part, comparison), slowly_compared(part, comparison));
  }
}

/// The bytes of pixels of 16 bits, in this machine's order.
Pixels bytes_of(const std::vector<std::uint16_t>& levels) {
  Pixels bytes(2 * levels.size());
  std::memcpy(bytes.data(), levels.data(), bytes.size());
  return bytes;
}

// Three dies of two pixels, 16 bits, threshold 100. Column 0: 1000, 1100, 1301 has the medians 1100, 1100, 1100; 100 is
// noise, and 1301 is 201 off, 101 above the threshold. Column 1: 65535 between 0 and 100 is 65435 off. In 8 bits, the
// high bytes 3, 4, 5 would differ by one level.
TEST(DieCompare, KeepsSixteenBits) {
  const Pixels part = bytes_of({1000, 0, 1100, 65'535, 1301, 100});
  const Pixels expected = bytes_of({0, 0, 0, 65'335, 101, 0});
  EXPECT_EQ(compared(part, {.width = 2, .die_height = 1, .threshold = 100, .bits = 16}), expected);
}

// A 16-bit picture whose levels are those of an 8-bit one has the same report, pixel for pixel.
TEST(DieCompare, AgreesBetweenTheDepths) {
  Random random{12};
  for (int round = 0; round < 100; ++round) {
    DieComparison comparison{.width = random.between(1, 40),
                             .die_height = random.between(1, 9),
                             .threshold = static_cast<std::uint16_t>(random.between(0, 80))};
    Pixels part(comparison.die_row_bytes() * static_cast<std::size_t>(random.between(3, 8)));
    for (auto& pixel : part) pixel = static_cast<std::uint8_t>(random.between(0, 255));
    const Pixels report = compared(part, comparison);
    comparison.bits = 16;
    EXPECT_EQ(compared(bytes_of({part.begin(), part.end()}), comparison), bytes_of({report.begin(), report.end()}));
  }
}

TEST(DieCompare, TakesWholeDieRowsOnly) {
  const DieComparison comparison{.width = 4, .die_height = 2, .threshold = 1};
  EXPECT_TRUE(is_comparable(24, comparison));
  EXPECT_TRUE(is_comparable(32, comparison));
  EXPECT_FALSE(is_comparable(16, comparison));
  EXPECT_FALSE(is_comparable(28, comparison));
  EXPECT_FALSE(is_comparable(0, comparison));
  EXPECT_FALSE(is_comparable(24, {.width = 0, .die_height = 2}));
  EXPECT_FALSE(is_comparable(24, {.width = 4, .die_height = -2}));
  EXPECT_FALSE(is_comparable(24, {.width = 4, .die_height = 2, .bits = 16})) << "one row and a half";
  EXPECT_TRUE(is_comparable(48, {.width = 4, .die_height = 2, .threshold = 256, .bits = 16}));
  EXPECT_FALSE(is_comparable(24, {.width = 4, .die_height = 2, .threshold = 256})) << "no level of 8 bits";
  EXPECT_FALSE(is_comparable(48, {.width = 4, .die_height = 2, .bits = 12}));
}

TEST(DieCompareDeathTest, NeedsWholeDieRowsAndAReportOfTheirSize) {
  const DieComparison comparison{.width = 4, .die_height = 2, .threshold = 1};
  Pixels part(24);
  Pixels report(23);
  EXPECT_DEATH(die_compare(part, report, comparison), "size of its part");
  EXPECT_DEATH(die_compare(report, report, comparison), "whole die rows");
}

}  // namespace
}  // namespace wafer
