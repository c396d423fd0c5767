#include "apps/wafer_inspection/marked_picture.hpp"

#include <array>
#include <vector>

#include <gtest/gtest.h>

namespace wafer {
namespace {

using Rgb = std::array<int, 3>;

Rgb at(const std::vector<std::uint8_t>& rgb, int width, int x, int y) {
  const auto first = static_cast<std::size_t>(3 * (y * width + x));
  return {rgb[first], rgb[first + 1], rgb[first + 2]};
}

constexpr Rgb red{255, 0, 0};

// A defect at 10,12 of 2 x 3 px, a rim of 3 px: the frame runs from 10 - 4 = 6 to 10 + 2 + 3 = 15 across, and from 8 to
// 18 down, one pixel wide in a picture below 500 px.
TEST(MarkedPicture, FramesADefectAndLeavesItVisible) {
  GrayImage image{40, 30};
  image.set(10, 12, 200);
  const auto rgb = marked_picture(image, 8, std::array{Defect{.box = {10, 12, 2, 3}}});
  ASSERT_EQ(rgb.size(), 3U * 40 * 30);
  for (const auto& [x, y] : {std::pair{6, 8}, {15, 8}, {6, 18}, {15, 18}, {10, 8}, {6, 12}})
    EXPECT_EQ(at(rgb, 40, x, y), red) << x << ", " << y;
  for (const auto& [x, y] : {std::pair{5, 8}, {7, 9}, {16, 18}, {15, 19}, {11, 13}})
    EXPECT_EQ(at(rgb, 40, x, y), (Rgb{0, 0, 0})) << x << ", " << y;
  EXPECT_EQ(at(rgb, 40, 10, 12), (Rgb{200, 200, 200}));
}

// Frames end at the picture's edge; the defect is the whole picture.
TEST(MarkedPicture, StaysInsideThePicture) {
  const auto rgb = marked_picture(GrayImage{4, 4}, 8, std::array{Defect{.box = {0, 0, 4, 4}}});
  EXPECT_EQ(rgb, std::vector<std::uint8_t>(48, 0));
}

// Of 12 bits, 4095 is white and 2048 = 128 * 16 is 128.
TEST(MarkedPicture, ShowsTheHighestBitsThatAreUsed) {
  GrayImage image{2, 1, 16};
  image.set(0, 0, 4095);
  image.set(1, 0, 2048);
  const auto rgb = marked_picture(image, 12, {});
  EXPECT_EQ(at(rgb, 2, 0, 0), (Rgb{255, 255, 255}));
  EXPECT_EQ(at(rgb, 2, 1, 0), (Rgb{128, 128, 128}));
}

}  // namespace
}  // namespace wafer
