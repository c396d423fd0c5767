#include "apps/wafer_inspection/die_texture.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <gtest/gtest.h>

namespace wafer {
namespace {

TEST(DieTexture, IsTheSameForTheSameNumbers) {
  Random one{9};
  Random same{9};
  Random other{10};
  const DieTexture texture = make_die_texture(51, 34, one);
  EXPECT_EQ(texture, make_die_texture(51, 34, same));
  EXPECT_NE(texture, make_die_texture(51, 34, other));
}

// 68 / 24 = 2 px of street above and to the left; the streets below and to the right belong to the next dies.
TEST(DieTexture, HasAStreetAtItsUpperAndLeftEdge) {
  Random random{1};
  const DieTexture texture = make_die_texture(102, 68, random);
  for (int y = 0; y < texture.height; ++y)
    for (int x = 0; x < texture.width; ++x) EXPECT_EQ(texture.at(x, y) == Layer::Street, x < 2 || y < 2);
}

TEST(DieTexture, IsNeverPlain) {
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    for (const auto& [width, height] : {std::pair{8, 8}, {12, 8}, {25, 17}, {51, 34}, {204, 136}}) {
      Random random{seed};
      const DieTexture texture = make_die_texture(width, height, random);
      ASSERT_TRUE(std::ranges::count(texture.layers, Layer::Substrate) > 0);
      ASSERT_TRUE(std::ranges::any_of(texture.layers,
                                      [](Layer layer) { return layer != Layer::Street && layer != Layer::Substrate; }))
          << width << " x " << height << ", seed " << seed;
    }
}

TEST(DieTextureDeathTest, NeedsRoom) {
  Random random{1};
  EXPECT_DEATH((void)make_die_texture(7, 8, random), "room");
}

}  // namespace
}  // namespace wafer
