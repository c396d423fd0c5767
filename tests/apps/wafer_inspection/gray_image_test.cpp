#include "apps/wafer_inspection/gray_image.hpp"

#include <utility>

#include <gtest/gtest.h>

namespace wafer {
namespace {

// 3 x 2 pixels, row after row: pixel (2, 1) is the byte 1 * 3 + 2 = 5.
TEST(GrayImage, KeepsItsRowsWithoutGaps) {
  GrayImage image{3, 2, 7};
  image.at(2, 1) = 9;
  ASSERT_EQ(image.pixels().size(), 6U);
  EXPECT_EQ(image.pixels()[5], 9);
  EXPECT_EQ(image.row(1)[2], 9);
  EXPECT_EQ(image.row(0)[2], 7);
  EXPECT_EQ(std::as_const(image).row(1).data(), std::as_const(image).pixels().data() + 3);
}

TEST(GrayImage, IsAValue) {
  GrayImage image{2, 2};
  const GrayImage copy = image;
  EXPECT_EQ(copy, image);
  image.at(0, 0) = 1;
  EXPECT_NE(copy, image);
  EXPECT_NE(GrayImage(1, 4), GrayImage(4, 1));
}

TEST(GrayImageDeathTest, HasNoNegativeSide) { EXPECT_DEATH(GrayImage(-1, 1), "negative"); }

}  // namespace
}  // namespace wafer
