#include "apps/wafer_inspection/gray_image.hpp"

#include <utility>

#include <gtest/gtest.h>

namespace wafer {
namespace {

// 3 x 2 pixels, row after row: pixel (2, 1) is the byte 1 * 3 + 2 = 5.
TEST(GrayImage, KeepsItsRowsWithoutGaps) {
  GrayImage image{3, 2};
  image.set(2, 1, 9);
  ASSERT_EQ(image.bytes().size(), 6U);
  EXPECT_EQ(image.bytes()[5], 9);
  EXPECT_EQ(image.row(1)[2], 9);
  EXPECT_EQ(image.row(0)[2], 0);
  EXPECT_EQ(std::as_const(image).row(1).data(), std::as_const(image).bytes().data() + 3);
}

// 3 x 2 pixels of two bytes: pixel (2, 1) has the bytes 10 and 11, and 770 = 3 * 256 + 2.
TEST(GrayImage, KeepsSixteenBits) {
  GrayImage image{3, 2, 16};
  image.set(2, 1, 770);
  EXPECT_EQ(image.at(2, 1), 770);
  ASSERT_EQ(image.bytes().size(), 12U);
  EXPECT_EQ(image.bytes()[10] + image.bytes()[11], 3 + 2);
  EXPECT_EQ(image.row(1).size(), 6U);
  image.set(1, 1, 65'535);
  EXPECT_EQ(image.at(1, 1), 65'535);
  EXPECT_EQ(image.at(0, 1), 0);
}

TEST(GrayImage, IsAValue) {
  GrayImage image{2, 2};
  const GrayImage copy = image;
  EXPECT_EQ(copy, image);
  image.set(0, 0, 1);
  EXPECT_NE(copy, image);
  EXPECT_NE(GrayImage(1, 4), GrayImage(4, 1));
  EXPECT_NE(GrayImage(2, 1, 8), GrayImage(1, 1, 16));
}

TEST(GrayImageDeathTest, HasNoNegativeSide) { EXPECT_DEATH(GrayImage(-1, 1), "negative"); }

TEST(GrayImageDeathTest, HasPixelsOfOneByteOrTwo) { EXPECT_DEATH(GrayImage(1, 1, 12), "8 or 16 bits"); }

}  // namespace
}  // namespace wafer
