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

struct Line {
  Point from, to;
  double width = 0;
};

/// A point of a cubic Bezier curve.
Point point_of(const std::vector<Point>& curve, double t) {
  const auto at = [&](double Point::*axis) {
    const double s = 1 - t;
    return s * s * s * curve[0].*axis + 3 * s * s * t * curve[1].*axis + 3 * s * t * t * curve[2].*axis +
           t * t * t * curve[3].*axis;
  };
  return {at(&Point::x), at(&Point::y)};
}

/// The straight parts of all lines, and curves as 50 such parts.
std::vector<Line> lines_of(const std::string& picture) {
  std::vector<Line> lines;
  for (const SvgElement& path : elements_of(picture, "path")) {
    std::string steps = path.attribute("d");
    const bool is_curve = steps.find('C') != std::string::npos;
    std::ranges::replace_if(
        steps, [](char c) { return c == 'M' || c == 'L' || c == 'C'; }, ' ');
    std::istringstream numbers(steps);
    std::vector<Point> points;
    for (Point point; numbers >> point.x >> point.y;) points.push_back(point);
    if (is_curve) {
      const std::vector<Point> curve = points;
      points.clear();
      for (int i = 0; i <= 50; ++i) points.push_back(point_of(curve, i / 50.0));
    }
    for (std::size_t i = 1; i < points.size(); ++i)
      lines.push_back({points[i - 1], points[i], path.number("stroke-width")});
  }
  for (const SvgElement& line : elements_of(picture, "line"))
    lines.push_back(
        {{line.number("x1"), line.number("y1")}, {line.number("x2"), line.number("y2")}, line.number("stroke-width")});
  return lines;
}

/// Whether a line meets a box: some point of it, of very many, lies inside or less than half a width beside it.
bool crosses(const Line& line, const Box& box) {
  constexpr int kPoints = 2000;
  const double half = line.width / 2;
  for (int i = 0; i <= kPoints; ++i) {
    const double share = static_cast<double>(i) / kPoints;
    const double x = line.from.x + share * (line.to.x - line.from.x);
    const double y = line.from.y + share * (line.to.y - line.from.y);
    if (x > box.left - half && x < box.right + half && y > box.top - half && y < box.bottom + half) return true;
  }
  return false;
}

std::string machine_file(const std::string& name) { return test::source_path("configs/machines/" + name + ".yaml"); }

// Labels hold " / " between the bandwidths of both directions; a letter of 11 px is at most 11 px high.
TEST(TopologySvg, NoLineCrossesALabel) {
  for (const char* name :
       {"h200x4", "two-sockets", "inspection-camera", "inspection-example", "nehalem-c2050", "gb200-nvl4"}) {
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
