#include "apps/wafer_inspection/defect_list.hpp"

#include <array>
#include <vector>

#include <gtest/gtest.h>

namespace wafer {
namespace {

// Three rows of two dies of 10 x 4 px from 3,2 in 25 x 16 px.
const DieGrid kGrid{
    .width = 25, .height = 16, .left = 3, .top = 2, .die_width = 10, .die_height = 4, .columns = 2, .rows = 3};
const std::array kOnePart{Part{0, 3, 50, 300}};

// A dark and a bright defect in a picture of 100s, with a threshold of 24. 20 is 80 below 100, so the report has
// 80 - 24 = 56 there; 190 is 90 above, and the report has 66.
TEST(DescribeDefects, SaysInWhichDieAndHowStrong) {
  GrayImage image{25, 16};
  GrayImage report{25, 16};
  for (int y = 0; y < 16; ++y)
    for (int x = 0; x < 25; ++x) image.set(x, y, 100);
  image.set(5, 3, 20);
  report.set(5, 3, 56);
  image.set(14, 11, 190);
  report.set(14, 11, 66);
  image.set(24, 7, 20);
  report.set(24, 7, 56);
  const std::vector<Defect> expected{{{5, 3, 1, 1}, 1, -80, DiePosition{0, 0}},
                                     {{24, 7, 1, 1}, 1, -80, std::nullopt},
                                     {{14, 11, 1, 1}, 1, 90, DiePosition{1, 2}}};
  EXPECT_EQ(describe_defects(with_classes(find_defects(report), image, report, kGrid, kOnePart), kGrid, 24), expected);
}

// The first defect is 5 - 3 = 2 px right of its die's corner and 3 - 2 = 1 below it; a name with a comma is quoted.
TEST(DefectCsv, HasALineForEachDefect) {
  const std::vector<InspectedPicture> pictures{
      {"a.png", true, {{{5, 3, 2, 1}, 2, -80, DiePosition{0, 0}}, {{24, 7, 1, 1}, 1, 90, std::nullopt}}},
      {"clean.png", true, {}},
      {"b, \"cut\".tif", true, {{{14, 11, 1, 2}, 2, 4000, DiePosition{1, 2}}}}};
  EXPECT_EQ(to_csv(kGrid, pictures),
            "image,defect,die_column,die_row,x_px,y_px,width_px,height_px,x_in_die_px,y_in_die_px,area_px,"
            "contrast_levels\n"
            "a.png,1,0,0,5,3,2,1,2,1,2,-80\n"
            "a.png,2,,,24,7,1,1,,,1,90\n"
            "\"b, \"\"cut\"\".tif\",1,1,2,14,11,1,2,1,1,2,4000\n");
}

TEST(DieCounts, AddUpOverAllPictures) {
  const Defect in_die{{14, 11, 1, 2}, 2, 40, DiePosition{1, 2}};
  const Defect in_frame{{24, 7, 1, 1}, 1, 90, std::nullopt};
  const std::vector<InspectedPicture> pictures{{"a.png", true, {in_die, in_frame}}, {"b.png", true, {in_die}}};
  const DieCounts counts = count_by_die(kGrid, pictures);
  EXPECT_EQ(counts.of_die, (std::vector<std::int64_t>{0, 0, 0, 0, 0, 2}));
  EXPECT_EQ(counts.in_frame, 1);
}

}  // namespace
}  // namespace wafer
