#include "apps/wafer_inspection/defects.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "apps/wafer_inspection/gray_image.hpp"
#include "apps/wafer_inspection/random.hpp"

namespace wafer {
namespace {

/// A report drawn with digits: '.' is fine, a digit is that many gray levels.
GrayImage drawn(std::initializer_list<std::string_view> rows) {
  GrayImage report{static_cast<int>(rows.begin()->size()), static_cast<int>(rows.size())};
  int y = 0;
  for (const auto row : rows) {
    std::ranges::transform(row, report.row(y).begin(),
                           [](char c) { return static_cast<std::uint8_t>(c == '.' ? 0 : c - '0'); });
    ++y;
  }
  return report;
}

/// In the report, and in the pixels of it that are not zero, the last ones first.
std::vector<FoundDefect> found_in(const GrayImage& report, int gap) {
  std::vector<DirtyPixel> pixels;
  for (int y = report.height(); y-- > 0;)
    for (int x = report.width(); x-- > 0;)
      if (report.at(x, y) != 0) pixels.push_back({x, y, static_cast<std::uint16_t>(report.at(x, y))});
  const std::vector<FoundDefect> found = find_defects(report, gap);
  EXPECT_EQ(find_defects(pixels, gap), found);
  return found;
}

TEST(FindDefects, FindsNothingInACleanReport) {
  EXPECT_TRUE(found_in(GrayImage{256, 256}, 1).empty());
  EXPECT_TRUE(find_defects(GrayImage{}).empty());
}

TEST(FindDefects, MeasuresBoxAreaAndPeak) {
  const auto report = drawn({"......",  //
                             "..12..",  //
                             "...9..",  //
                             "......"});
  EXPECT_EQ(found_in(report, 0), (std::vector<FoundDefect>{{.box = {2, 1, 2, 2}, .area = 3, .peak = 9}}));
}

TEST(FindDefects, ConnectsDiagonally) {
  const auto report = drawn({"1....",  //
                             ".1...",  //
                             "..1..",  //
                             ".1..."});
  EXPECT_EQ(found_in(report, 0), (std::vector<FoundDefect>{{.box = {0, 0, 3, 4}, .area = 4, .peak = 1}}));
}

// Both patches belong to one only through the lowest row, which is read last.
TEST(FindDefects, JoinsArmsThatMeetFurtherDown) {
  const auto report = drawn({"1...1...7",  //
                             "1...1....",  //
                             ".111....."});
  EXPECT_EQ(found_in(report, 0), (std::vector<FoundDefect>{{.box = {0, 0, 5, 3}, .area = 7, .peak = 1},
                                                           {.box = {8, 0, 1, 1}, .area = 1, .peak = 7}}));
}

// Levels of 256 and 1 have a byte of 0 each; both are one pixel, and 300 is the peak.
TEST(FindDefects, TakesBothBytesOfAPixel) {
  GrayImage report{5, 1, 16};
  report.set(1, 0, 256);
  report.set(2, 0, 300);
  report.set(3, 0, 1);
  EXPECT_EQ(found_in(report, 0), (std::vector<FoundDefect>{{.box = {1, 0, 3, 1}, .area = 3, .peak = 300}}));
}

// One pixel between the upper pair, two between either of them and the lower one.
TEST(FindDefects, ClosesGapsUpToTheTolerance) {
  const auto report = drawn({"1.1",  //
                             "...",  //
                             "...",  //
                             "1.."});
  EXPECT_EQ(found_in(report, 0).size(), 3U);
  EXPECT_EQ(found_in(report, 1).size(), 2U);
  EXPECT_EQ(found_in(report, 2).size(), 1U);
}

// A gap at the end of one row and the start of the next is no gap.
TEST(FindDefects, DoesNotConnectAroundTheEdge) {
  const auto report = drawn({"....1",  //
                             "1...."});
  EXPECT_EQ(found_in(report, 2).size(), 2U);
}

/// Grows each patch pixel by pixel: the definition, in quadratic time.
std::vector<FoundDefect> slowly_found_in(const GrayImage& report, int gap) {
  GrayImage left = report;
  std::vector<FoundDefect> found;
  for (int y = 0; y < report.height(); ++y)
    for (int x = 0; x < report.width(); ++x) {
      if (left.at(x, y) == 0) continue;
      std::vector<std::array<int, 2>> patch{{x, y}};
      int peak = left.at(x, y);
      left.set(x, y, 0);
      int right = x;
      int leftmost = x;
      int bottom = y;
      for (std::size_t i = 0; i < patch.size(); ++i) {
        const auto [px, py] = patch[i];
        for (int ny = std::max(py - gap - 1, 0); ny <= std::min(py + gap + 1, report.height() - 1); ++ny)
          for (int nx = std::max(px - gap - 1, 0); nx <= std::min(px + gap + 1, report.width() - 1); ++nx) {
            if (left.at(nx, ny) == 0) continue;
            peak = std::max(peak, left.at(nx, ny));
            left.set(nx, ny, 0);
            patch.push_back({nx, ny});
            right = std::max(right, nx);
            leftmost = std::min(leftmost, nx);
            bottom = std::max(bottom, ny);
          }
      }
      found.push_back({.box = {leftmost, y, right - leftmost + 1, bottom - y + 1},
                       .area = static_cast<std::int64_t>(patch.size()),
                       .peak = static_cast<std::uint16_t>(peak)});
    }
  return found;
}

TEST(FindDefects, AgreesWithGrowingPatchesPixelByPixel) {
  Random random{5};
  for (int round = 0; round < 400; ++round) {
    GrayImage report{random.between(1, 60), random.between(1, 60), random.one_in(2) ? 8 : 16};
    const int one_in = random.between(2, 60);
    const int most = report.bits() == 8 ? 255 : 65'535;
    for (int y = 0; y < report.height(); ++y)
      for (int x = 0; x < report.width(); ++x)
        if (random.one_in(one_in)) report.set(x, y, random.between(1, most));
    const int gap = random.between(0, 3);
    ASSERT_EQ(found_in(report, gap), slowly_found_in(report, gap)) << "round " << round;
  }
}

TEST(FindDefects, TakesAReportThatIsAllDefect) {
  GrayImage report{512, 512};
  std::ranges::fill(report.bytes(), 255);
  EXPECT_EQ(found_in(report, 1), (std::vector<FoundDefect>{{.box = {0, 0, 512, 512}, .area = 512 * 512, .peak = 255}}));
}

// Squares of 4 x 4: moved by one column they share 12 of 20 pixels, by two columns 8 of 24.
TEST(IsSameDefect, AsksForMoreThanHalf) {
  EXPECT_TRUE(is_same_defect({0, 0, 4, 4}, {0, 0, 4, 4}));
  EXPECT_TRUE(is_same_defect({0, 0, 4, 4}, {1, 0, 4, 4}));
  EXPECT_FALSE(is_same_defect({0, 0, 4, 4}, {2, 0, 4, 4}));
  EXPECT_FALSE(is_same_defect({0, 0, 4, 4}, {0, 0, 40, 40}));
  EXPECT_FALSE(is_same_defect({0, 0, 4, 4}, {8, 8, 4, 4}));
}

TEST(Score, NamesHitsMissesAndFalseAlarms) {
  const std::array planted{Box{0, 0, 4, 4}, Box{20, 0, 4, 4}, Box{40, 0, 4, 4}};
  const std::vector<FoundDefect> found{{.box = {60, 0, 4, 4}}, {.box = {40, 0, 4, 5}}, {.box = {0, 0, 4, 4}}};
  EXPECT_EQ(score(planted, found), (Score{.hit = {0, 2}, .missed = {1}, .false_alarms = {0}}));
}

// A patch over everything is no answer to where the defects are.
TEST(Score, DoesNotCountOnePatchForTwoDefects) {
  const std::array planted{Box{0, 0, 4, 4}, Box{4, 0, 4, 4}};
  const std::vector<FoundDefect> found{{.box = {0, 0, 8, 4}}};
  EXPECT_EQ(score(planted, found), (Score{.hit = {}, .missed = {0, 1}, .false_alarms = {0}}));
}

}  // namespace
}  // namespace wafer
