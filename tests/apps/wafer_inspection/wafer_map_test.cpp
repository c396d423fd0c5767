#include "apps/wafer_inspection/wafer_map.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace wafer {
namespace {

const DieGrid kMapGrid{
    .width = 50, .height = 16, .left = 3, .top = 2, .die_width = 10, .die_height = 4, .columns = 4, .rows = 3};

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::vector<InspectedPicture> pictures_with(int in_first, int in_last, int in_frame) {
  InspectedPicture picture{"a.png", true, {}};
  picture.defects.insert(picture.defects.end(), static_cast<std::size_t>(in_first), {{}, 1, 9, DiePosition{0, 0}});
  picture.defects.insert(picture.defects.end(), static_cast<std::size_t>(in_last), {{}, 1, 9, DiePosition{3, 2}});
  picture.defects.insert(picture.defects.end(), static_cast<std::size_t>(in_frame), {{}, 1, 9, std::nullopt});
  return {picture, {"not reached.png", false, {}}};
}

// 1 + 7 + 2 = 10 defects in the one picture that was inspected; two of twelve dies have one.
TEST(WaferMap, WritesTheCountIntoEachDie) {
  const std::string svg = wafer_map_svg(kMapGrid, pictures_with(1, 7, 2));
  EXPECT_NE(svg.find(">Wafer map: 10 defects in 1 picture<"), std::string::npos) << svg;
  EXPECT_NE(svg.find("2 of 12 dies affected, 2 defects in the frame; dies of 10 x 4 px"), std::string::npos);
  EXPECT_NE(svg.find("<title>die column 0, row 0: 1 defect</title>"), std::string::npos);
  EXPECT_NE(svg.find("<title>die column 3, row 2: 7 defects</title>"), std::string::npos);
  EXPECT_EQ(count_of(svg, "<title>"), 2U);
  EXPECT_EQ(count_of(svg, "class='few'"), 1U);
  EXPECT_EQ(count_of(svg, "class='many'"), 1U);
}

// Labels of 4 columns and 3 rows, and two lines of heading.
TEST(WaferMap, OfACleanWaferIsTheGridAlone) {
  const std::string svg = wafer_map_svg(kMapGrid, pictures_with(0, 0, 0));
  EXPECT_NE(svg.find(">Wafer map: 0 defects in 1 picture<"), std::string::npos);
  EXPECT_EQ(count_of(svg, "<text "), 2U + 4 + 3);
  EXPECT_EQ(count_of(svg, "<rect "), 1U) << "the page";
}

// A million dies: lines and labels alone, not a rectangle each.
TEST(WaferMap, StaysSmallForManyDies) {
  const DieGrid grid{.width = 8000, .height = 8000, .die_width = 8, .die_height = 8, .columns = 1000, .rows = 1000};
  EXPECT_LT(wafer_map_svg(grid, pictures_with(1, 1, 0)).size(), 100'000U);
}

}  // namespace
}  // namespace wafer
