#include "apps/wafer_inspection/die_pitch.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "apps/wafer_inspection/die_compare.hpp"
#include "apps/wafer_inspection/generator.hpp"
#include "apps/wafer_inspection/random.hpp"

namespace wafer {
namespace {

/// A profile that repeats `pattern` `times` times.
std::vector<double> repeated(const std::vector<double>& pattern, int times) {
  std::vector<double> profile;
  for (int i = 0; i < times; ++i) profile.insert(profile.end(), pattern.begin(), pattern.end());
  return profile;
}

const std::vector<double> kPattern{70, 70, 100, 150, 100, 120, 180, 100, 90, 150, 60};  // 11 px

TEST(FindPitch, IsTheDistanceAfterWhichAProfileRepeats) {
  EXPECT_EQ(find_pitch(repeated(kPattern, 3)), 11);
  EXPECT_EQ(find_pitch(repeated(kPattern, 40)), 11);
}

// Light that falls off by 100 levels over the picture changes no slope by more than 100 / 440.
TEST(FindPitch, DoesNotMindUnevenLight) {
  auto profile = repeated(kPattern, 40);
  for (std::size_t i = 0; i < profile.size(); ++i) profile[i] -= 100.0 * static_cast<double>(i * i) / (440.0 * 440.0);
  EXPECT_EQ(find_pitch(profile), 11);
}

// A die of four equal cells of 10 px and a street of 5: the slopes of a cell repeat after 10 px, those of a die
// after 45.
TEST(FindPitch, TakesTheDieAndNotACellInside) {
  std::vector<double> die(5, 70);
  for (int cell = 0; cell < 4; ++cell) die.insert(die.end(), {100, 150, 100, 120, 180, 100, 90, 150, 60, 80});
  EXPECT_EQ(find_pitch(repeated(die, 12)), 45);
}

TEST(FindPitch, IsNoneWhereNothingRepeatsThreeTimes) {
  EXPECT_FALSE(find_pitch(std::vector<double>{}));
  EXPECT_FALSE(find_pitch(std::vector<double>(300, 70.0))) << "bare wafer";
  auto twice = repeated(kPattern, 2);
  twice.resize(32, 70);
  EXPECT_FALSE(find_pitch(twice));
  Random random{3};
  std::vector<double> noise(300);
  for (double& level : noise) level = random.between(0, 255);
  EXPECT_FALSE(find_pitch(noise));
}

/// Whether the found dies are those of the truth, but for where inside the street a die begins: at most 2 px off.
void expect_found(const GrayImage& image, const DieGrid& truth) {
  const auto found = find_die_grid(image, default_threshold);
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_TRUE(is_consistent(*found));
  EXPECT_EQ(found->die_width, truth.die_width);
  EXPECT_EQ(found->die_height, truth.die_height);
  EXPECT_EQ(found->columns, truth.columns);
  EXPECT_EQ(found->rows, truth.rows);
  EXPECT_LE(std::abs(found->left - truth.left), 2);
  EXPECT_LE(std::abs(found->top - truth.top), 2);
}

// Generated wafers of many sizes, under the strongest noise and with defects: the truth is known.
TEST(FindDieGrid, FindsTheDiesOfGeneratedWafers) {
  Random random{4};
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const WaferSpec spec{.width = random.between(240, 900),
                         .height = random.between(240, 900),
                         .seed = seed,
                         .noise = max_noise,
                         .defects = 20};
    SCOPED_TRACE(testing::Message() << spec.width << " x " << spec.height << ", seed " << seed);
    const Wafer wafer = make_wafer(spec, "wafer.png").value();
    expect_found(wafer.image, wafer.truth.grid);
  }
}

// A picture that cuts through dies on all sides: 300 x 200 px from 31,17 of a wafer with dies of 40 x 26 px. From the
// first whole street on, 40 * 6 <= 300 - 40 and 26 * 6 <= 200 - 26: at least six columns and rows are whole.
TEST(FindDieGrid, TakesWholeDiesOfAPictureThatCutsThroughThem) {
  const Wafer wafer = make_wafer({.width = 800, .height = 800, .seed = 6}, "wafer.png").value();
  GrayImage cut{300, 200};
  for (int y = 0; y < 200; ++y)
    for (int x = 0; x < 300; ++x) cut.set(x, y, wafer.image.at(x + 71, y + 117));
  const auto grid = find_die_grid(cut, default_threshold);
  ASSERT_TRUE(grid) << grid.error().text();
  EXPECT_EQ(grid->die_width, 40);
  EXPECT_EQ(grid->die_height, 26);
  EXPECT_EQ(grid->columns, 7);
  EXPECT_EQ(grid->rows, 7);
}

TEST(FindDieGrid, SaysInWhichDirectionNothingRepeats) {
  GrayImage stripes{120, 120};
  for (int y = 0; y < 120; ++y)
    for (int x = 0; x < 120; ++x) stripes.set(x, y, x % 20 < 10 ? 60 : 180);
  const auto across = find_die_grid(GrayImage{120, 120}, default_threshold);
  ASSERT_FALSE(across);
  EXPECT_NE(across.error().message.find("repeats 3 times across"), std::string::npos) << across.error().message;
  const auto down = find_die_grid(stripes, default_threshold);
  ASSERT_FALSE(down);
  EXPECT_NE(down.error().message.find("repeats 3 times down"), std::string::npos) << down.error().message;
  EXPECT_NE(down.error().message.find("--die WIDTHxHEIGHT"), std::string::npos);
}

}  // namespace
}  // namespace wafer
