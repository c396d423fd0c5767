#include "apps/wafer_inspection/die_grid.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "apps/wafer_inspection/random.hpp"

namespace wafer {
namespace {

using tutti::Bytes;

constexpr std::array<std::int64_t, 4> inspection_shares{40, 10, 10, 40};

/// 40, 10, 10 and 40 % of an image, rounded down: the strictest reading of the declared sizes.
std::array<Bytes, 4> inspection_sizes(const DieGrid& grid) {
  const std::int64_t image = std::int64_t{grid.width} * grid.height;
  return {Bytes{image * 4 / 10}, Bytes{image / 10}, Bytes{image / 10}, Bytes{image * 4 / 10}};
}

// 2048 / 20 = 102 px, 8 px left over, 4 on each side; 2048 / 30 = 68 px, 8 px left over, 4 above and below.
TEST(DefaultDieGrid, HasThirtyRowsAndTwentyColumnsInAnEvenFrame) {
  const DieGrid expected{.width = 2048,
                         .height = 2048,
                         .left = 4,
                         .top = 4,
                         .die_width = 102,
                         .die_height = 68,
                         .columns = 20,
                         .rows = 30};
  const auto grid = default_die_grid(2048, 2048);
  ASSERT_TRUE(grid);
  EXPECT_EQ(*grid, expected);
}

TEST(DefaultDieGrid, RefusesImagesThatAreTooSmallOrTooLarge) {
  EXPECT_TRUE(default_die_grid(240, 240));
  EXPECT_TRUE(default_die_grid(32767, 32767));
  for (const auto& [width, height] : {std::pair{239, 240}, {240, 239}, {32768, 240}, {240, 32768}, {0, 0}, {-1, 256}})
    EXPECT_FALSE(default_die_grid(width, height)) << width << " x " << height;
}

// Targets of 32 rows: 12.8, 3.2, 3.2, 12.8. From 12/3/3/12 two rows remain; as the 13th of an outer part each costs
// 0.2^2 - 0.8^2 < 0, as the fourth of an inner part 0.8^2 - 0.2^2 > 0.
TEST(SplitAtDieRows, ComesAsNearToTheSharesAsWholeRowsAllow) {
  EXPECT_EQ(split_at_die_rows(32, inspection_shares).value(), (std::vector{13, 3, 3, 13}));
  EXPECT_EQ(split_at_die_rows(30, inspection_shares).value(), (std::vector{12, 3, 3, 12}));
  EXPECT_EQ(split_at_die_rows(100, inspection_shares).value(), (std::vector{40, 10, 10, 40}));
}

// 14 rows: the targets 5.6, 1.4, 1.4, 5.6 would leave the inner parts with less than 3; 8 rows remain for the outer.
TEST(SplitAtDieRows, GivesEachPartThreeRowsAtLeast) {
  EXPECT_EQ(split_at_die_rows(14, inspection_shares).value(), (std::vector{4, 3, 3, 4}));
  EXPECT_EQ(split_at_die_rows(12, inspection_shares).value(), (std::vector{3, 3, 3, 3}));
  const auto refused = split_at_die_rows(11, inspection_shares);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("12 to"), std::string::npos) << refused.error().text();
}

TEST(SplitAtDieRows, GivesTiesToTheEarlierPart) {
  const std::array<std::int64_t, 4> even{1, 1, 1, 1};
  EXPECT_EQ(split_at_die_rows(14, even).value(), (std::vector{4, 4, 3, 3}));
}

// Without bounds 32 rows are 13/3/3/13. Where the first part may have 12 only, its row costs
//   1.2^2 - 0.2^2 = 1.40 as the last part's 14th, 0.8^2 - 0.2^2 = 0.60 as an inner part's fourth: the earlier of those.
TEST(SplitAtDieRows, KeepsUpperBounds) {
  const std::array<std::int64_t, 4> at_most{12, 4, 4, 40};
  EXPECT_EQ(split_at_die_rows(32, inspection_shares, at_most).value(), (std::vector{12, 4, 3, 13}));
  const std::array<std::int64_t, 4> tight{12, 3, 3, 12};
  EXPECT_TRUE(split_at_die_rows(30, inspection_shares, tight));
  EXPECT_FALSE(split_at_die_rows(31, inspection_shares, tight));
  const std::array<std::int64_t, 4> two_rows{12, 2, 3, 20};
  EXPECT_FALSE(split_at_die_rows(30, inspection_shares, two_rows));
}

/// Sum of (rows - target)^2, times the square of all shares.
std::int64_t distance(const std::array<int, 3>& rows, int die_rows, const std::array<std::int64_t, 3>& shares) {
  const std::int64_t all = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int64_t off = rows[i] * all - die_rows * shares[i];
    sum += off * off;
  }
  return sum;
}

// The slow oracle tries every split into three parts.
TEST(SplitAtDieRows, IsTheNearestOfAllSplits) {
  Random random{7};
  for (int round = 0; round < 300; ++round) {
    const int die_rows = random.between(6, 40);
    const std::array<std::int64_t, 3> shares{random.between(1, 9), random.between(1, 9), random.between(1, 9)};
    const std::array<std::int64_t, 3> at_most{random.between(3, 40), random.between(3, 40), random.between(3, 40)};
    std::optional<std::int64_t> nearest;
    for (int a = 3; a <= at_most[0]; ++a)
      for (int b = 3; b <= at_most[1]; ++b)
        if (const int c = die_rows - a - b; c >= 3 && c <= at_most[2]) {
          const std::int64_t off = distance({a, b, c}, die_rows, shares);
          if (!nearest || off < *nearest) nearest = off;
        }
    const auto rows = split_at_die_rows(die_rows, shares, at_most);
    ASSERT_EQ(rows.has_value(), nearest.has_value());
    if (!rows) continue;
    EXPECT_EQ(distance({(*rows)[0], (*rows)[1], (*rows)[2]}, die_rows, shares), *nearest);
  }
}

TEST(SplitAtDieRowsDeathTest, NeedsPartsWithShares) {
  const std::array<std::int64_t, 2> nothing{1, 0};
  EXPECT_DEATH((void)split_at_die_rows(30, nothing), "above zero");
  EXPECT_DEATH((void)split_at_die_rows(30, {}), "one part at least");
}

// 256 x 256: dies of 12 x 8, a frame of 8 px, so a die row has 8 * 256 = 2048 bytes and the first starts at 8 * 256.
//   12 rows = 24576 <= 26214 (40 %), 3 rows = 6144 <= 6553 (10 %)
TEST(SplitImage, GivesRunsOfBytesWithinTheDeclaredSizes) {
  const auto grid = default_die_grid(256, 256).value();
  const std::vector<Part> expected{
      {0, 12, 2048, 24576}, {12, 3, 2048 + 24576, 6144}, {15, 3, 2048 + 30720, 6144}, {18, 12, 2048 + 36864, 24576}};
  EXPECT_EQ(split_image(grid, inspection_sizes(grid)).value(), expected);
}

// Why the default grid has thirty rows: whatever the height, 40/10/10/40 % hold 12/3/3/12 of them.
TEST(SplitImage, FitsTheInspectionSharesAtEveryHeight) {
  for (int height = 240; height <= 4096; ++height) {
    const auto grid = default_die_grid(2049, height).value();
    ASSERT_TRUE(is_consistent(grid));
    const auto sizes = inspection_sizes(grid);
    const auto parts = split_image(grid, sizes);
    ASSERT_TRUE(parts) << height << ": " << parts.error().text();
    std::int64_t next = std::int64_t{grid.top} * grid.width;
    for (std::size_t i = 0; i < parts->size(); ++i) {
      EXPECT_LE((*parts)[i].bytes, sizes[i].count);
      EXPECT_EQ((*parts)[i].offset, next);
      next += (*parts)[i].bytes;
    }
    EXPECT_LE(next, std::int64_t{grid.width} * grid.height);
    EXPECT_EQ((*parts)[3].first_die_row + (*parts)[3].die_rows, 30);
  }
}

// Two bytes a pixel: the parts of the 8-bit image, with twice the offsets and sizes.
TEST(SplitImage, CountsTheBytesOfAPixel) {
  const auto grid = default_die_grid(256, 256).value();
  auto sizes = inspection_sizes(grid);
  for (Bytes& size : sizes) size.count *= 2;
  const auto parts = split_image(grid, sizes, 2).value();
  EXPECT_EQ(parts[1], (Part{12, 3, 2 * (2048 + 24576), 2 * 6144}));
}

// 12 rows of 10 x 100 bytes without a frame. 40/10/10/40 % of 12000 hold 4/1/1/4 rows. A tenth holds three rows where
// 30 are declared: 30 * 1000 bytes.
TEST(SizeToDeclare, GrowsUntilTheSmallestShareHoldsThreeDieRows) {
  const auto grid = grid_of_whole_dies(100, 120, {0, 0, 20, 10}).value();
  const std::array shares{Bytes{4800}, Bytes{1200}, Bytes{1200}, Bytes{4800}};
  EXPECT_EQ(size_to_declare(grid, shares, 1), Bytes{30'000});
  const std::array sized{Bytes{12'000}, Bytes{3000}, Bytes{3000}, Bytes{12'000}};
  EXPECT_TRUE(split_image(grid, sized));
}

// 31 rows of 1000 bytes in halves of 15500: 15 rows each, one is left over. 32 declared rows hold 16 in each half.
TEST(SizeToDeclare, GrowsUntilAllDieRowsFindAPlace) {
  const auto grid = grid_of_whole_dies(100, 310, {0, 0, 20, 10}).value();
  EXPECT_EQ(size_to_declare(grid, std::array{Bytes{15'500}, Bytes{15'500}}, 1), Bytes{32'000});
}

TEST(SizeToDeclare, IsTheImageWhereItsSharesSuffice) {
  const auto grid = default_die_grid(256, 256).value();
  EXPECT_EQ(size_to_declare(grid, inspection_sizes(grid), 1), Bytes{65'536});
}

// A fixed size grows with nothing: the split says what is wrong.
TEST(SizeToDeclare, GivesUpOnASizeThatIsNoShare) {
  const auto grid = default_die_grid(256, 256).value();
  EXPECT_EQ(size_to_declare(grid, std::array{Bytes{1}, Bytes{65'536}}, 1), Bytes{65'536});
}

// 100 px from 7 on hold four dies of 20 px, and 13 px are left; 50 px from 5 on hold four of 11.
TEST(GridOfWholeDies, TakesAsManyAsFit) {
  const DieGrid expected{
      .width = 100, .height = 50, .left = 7, .top = 5, .die_width = 20, .die_height = 11, .columns = 4, .rows = 4};
  EXPECT_EQ(grid_of_whole_dies(100, 50, {7, 5, 20, 11}).value(), expected);
  for (const Box& die : {Box{0, 0, 0, 8}, {0, 0, 8, 0}, {-1, 0, 8, 8}, {93, 0, 8, 8}, {0, 43, 8, 8}, {0, 0, 101, 8}})
    EXPECT_FALSE(grid_of_whole_dies(100, 50, die));
}

// Dies of 20 x 11 px from 7,5: the pixel 47,16 is the first of column 2, row 1.
TEST(DieAt, IsTheDieOfAPixelOrNone) {
  const auto grid = grid_of_whole_dies(100, 50, {7, 5, 20, 11}).value();
  EXPECT_EQ(die_at(grid, 47, 16), (DiePosition{2, 1}));
  EXPECT_EQ(die_at(grid, 46, 15), (DiePosition{1, 0}));
  EXPECT_EQ(die_at(grid, 86, 48), (DiePosition{3, 3}));
  for (const auto& [x, y] : {std::pair{6, 5}, {7, 4}, {87, 5}, {7, 49}}) EXPECT_FALSE(die_at(grid, x, y));
}

TEST(SplitImage, RefusesDeclaredSizesThatCannotHoldTheImage) {
  const auto grid = default_die_grid(256, 256).value();
  const auto row = Bytes{grid.die_row_pixels()};
  const auto refused = split_image(grid, std::array{Bytes{row.count * 15}, Bytes{row.count * 15 - 1}});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("hold 29 whole die rows of 30"), std::string::npos) << refused.error().text();
  EXPECT_FALSE(split_image(grid, std::array{Bytes{65536}, Bytes{0}}));
  EXPECT_FALSE(split_image(grid, std::array{Bytes{65536}, Bytes{-5}}));
  EXPECT_FALSE(split_image(grid, std::array{Bytes{65536}, row}));
  EXPECT_TRUE(split_image(grid, std::array{Bytes{65536}}));
}

// An upper bound beyond the image's size says no more than the image's size.
TEST(SplitImage, TakesAbsurdlyLargeBoundsAsTheWholeImage) {
  const auto grid = default_die_grid(256, 256).value();
  const Bytes huge{std::numeric_limits<std::int64_t>::max()};
  const auto parts = split_image(grid, std::array{huge, huge, Bytes{65536}});
  ASSERT_TRUE(parts);
  EXPECT_EQ((*parts)[0].die_rows, 10);
  EXPECT_EQ((*parts)[2].die_rows, 10);
}

TEST(DieGrid, IsConsistentOnlyInsideItsImage) {
  const auto grid = default_die_grid(256, 256).value();
  EXPECT_TRUE(is_consistent(grid));
  const auto broken = [&](int DieGrid::*member, int value) {
    DieGrid other = grid;
    other.*member = value;
    return !is_consistent(other);
  };
  EXPECT_TRUE(broken(&DieGrid::left, 17));
  EXPECT_TRUE(broken(&DieGrid::top, 17));
  EXPECT_TRUE(broken(&DieGrid::top, -1));
  EXPECT_TRUE(broken(&DieGrid::rows, 0));
  EXPECT_TRUE(broken(&DieGrid::rows, std::numeric_limits<int>::max()));
  EXPECT_TRUE(broken(&DieGrid::die_width, std::numeric_limits<int>::max()));
  EXPECT_TRUE(broken(&DieGrid::left, std::numeric_limits<int>::max()));
  EXPECT_TRUE(broken(&DieGrid::width, 0));
}

}  // namespace
}  // namespace wafer
