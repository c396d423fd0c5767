#include "apps/tutti/reports/topology_svg.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include <gtest/gtest.h>

#include "apps/tutti/formats/svg.hpp"
#include "model/batch/batch_yaml.hpp"
#include "model/sharing/compile_machine.hpp"
#include "tests/apps/tutti/reports/svg_elements.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

struct Point {
  double x = 0, y = 0;
};
struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
};

/// The straight parts of all lines.
std::vector<std::pair<Point, Point>> lines_of(const std::string& picture) {
  std::vector<std::pair<Point, Point>> lines;
  for (const SvgElement& path : elements_of(picture, "path")) {
    std::string steps = path.attribute("d");
    std::ranges::replace_if(
        steps, [](char c) { return c == 'M' || c == 'L'; }, ' ');
    std::istringstream numbers(steps);
    std::vector<Point> points;
    for (Point point; numbers >> point.x >> point.y;) points.push_back(point);
    for (std::size_t i = 1; i < points.size(); ++i) lines.emplace_back(points[i - 1], points[i]);
  }
  for (const SvgElement& line : elements_of(picture, "line"))
    lines.push_back({{line.number("x1"), line.number("y1")}, {line.number("x2"), line.number("y2")}});
  return lines;
}

/// Whether a line meets a box: some point of it, of very many, lies inside.
bool crosses(const std::pair<Point, Point>& line, const Box& box) {
  constexpr int kPoints = 2000;
  for (int i = 0; i <= kPoints; ++i) {
    const double share = static_cast<double>(i) / kPoints;
    const double x = line.first.x + share * (line.second.x - line.first.x);
    const double y = line.first.y + share * (line.second.y - line.first.y);
    if (x > box.left && x < box.right && y > box.top && y < box.bottom) return true;
  }
  return false;
}

std::string machine_file(const std::string& name) { return test::source_path("configs/machines/" + name + ".yaml"); }

// Labels hold " / " between the bandwidths of both directions; a letter of 11 px is at most 11 px high.
TEST(TopologySvg, NoLineCrossesALabel) {
  for (const char* name : {"h200x4", "two-sockets", "inspection-camera", "inspection-example", "nehalem-c2050"}) {
    const auto machine = load_machine(machine_file(name));
    ASSERT_TRUE(machine) << machine.error().message;
    const std::string picture = topology_svg(*machine, {});
    std::size_t labels = 0;
    for (const SvgElement& text : elements_of(picture, "text")) {
      if (text.text.find(" / ") == std::string::npos || text.text.find("effective") != std::string::npos) continue;
      ++labels;
      const double half = text_width(text.text, 11) / 2, x = text.number("x"), y = text.number("y");
      for (const auto& line : lines_of(picture))
        EXPECT_FALSE(crosses(line, {x - half, y - 9, x + half, y + 2})) << name << ": " << text.text;
    }
    EXPECT_GT(labels, 2) << name;
  }
}

TEST(TopologySvg, ALegendSaysWhatWidthsAndColoursMean) {
  const auto machine = load_machine(machine_file("inspection-example"));
  ASSERT_TRUE(machine);
  const std::string alone = topology_svg(*machine, {});
  EXPECT_NE(alone.find(">width:<"), std::string::npos);
  EXPECT_NE(alone.find(">100 GB/s<"), std::string::npos);
  EXPECT_EQ(alone.find("used by the batch"), std::string::npos);
  const auto batch = load_batch(test::source_path("configs/batches/inspection-example.yaml"));
  ASSERT_TRUE(batch);
  const std::string used = topology_svg(*machine, *batch);
  for (const char* words : {">used by the batch:<", ">30 % and more<", ">90 % and more<", "#D55E00"})
    EXPECT_NE(used.find(words), std::string::npos) << words;
}

}  // namespace
}  // namespace tutti::internal
