#include "apps/wafer_inspection/wafer_map.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace wafer {

namespace {

constexpr double min_cell = 22;     // a count of three digits fits
constexpr double usual_side = 760;  // of the map, where the cells are not smaller than that
constexpr double left = 56, top = 84, right = 20, bottom = 30;
constexpr int labels_per_side = 20;  // at most

// A dark screen has light text on the page's own ground; paper has black on white. Shades of defects keep their own
// text colour on both.
constexpr const char* style =
    "<style>\n"
    "svg { font-family: sans-serif; font-size: 12px; }\n"
    ".page { fill: #ffffff; } text { fill: #1a1a1a; }\n"
    ".grid { stroke: #9a9a9a; fill: none; }\n"
    ".few { fill: #fdd49e; } .some { fill: #fc8d59; } .many { fill: #b30000; }\n"
    ".count { text-anchor: middle; fill: #1a1a1a; } .count.light { fill: #ffffff; }\n"
    "@media screen and (prefers-color-scheme: dark) {\n"
    "  .page { fill: #1b1b1b; } text { fill: #e8e8e8; } .grid { stroke: #6a6a6a; }\n"
    "}\n"
    "</style>\n"
    "<rect class='page' width='100%' height='100%'/>\n";

/// A grid of dies on the page.
struct Layout {
  explicit Layout(const DieGrid& grid) {
    const double die_width = grid.die_width;
    const double die_height = grid.die_height;
    const double fitting = usual_side / std::max(grid.columns * die_width, grid.rows * die_height);
    const double scale = std::max(fitting, min_cell / std::min(die_width, die_height));
    cell_width = die_width * scale;
    cell_height = die_height * scale;
    width = std::max(left + grid.columns * cell_width + right, 480.0);
    height = top + grid.rows * cell_height + bottom;
  }

  double cell_width = 0;
  double cell_height = 0;
  double width = 0;
  double height = 0;
};

std::string_view shade(std::int64_t count, std::int64_t most) {
  if (count == 1) return "few";
  return count > 2 && 3 * count > 2 * most ? "many" : "some";
}

std::string heading(const DieGrid& grid, std::span<const InspectedPicture> pictures, const DieCounts& counts) {
  const auto inspected = std::ranges::count_if(pictures, &InspectedPicture::inspected);
  std::int64_t defects = counts.in_frame;
  for (const std::int64_t count : counts.of_die) defects += count;
  const auto affected = std::ranges::count_if(counts.of_die, [](std::int64_t count) { return count > 0; });
  std::string text = fmt::format(
      "<text x='{0}' y='24' font-size='16px'>Wafer map: {1} defect{2} in {3} picture{4}</text>\n"
      "<text x='{0}' y='44'>{5} of {6} dies affected, {7} defect{8} in the frame; dies of {9} x {10} px, counted from "
      "the upper left</text>\n",
      left, defects, defects == 1 ? "" : "s", inspected, inspected == 1 ? "" : "s", affected,
      std::int64_t{grid.columns} * grid.rows, counts.in_frame, counts.in_frame == 1 ? "" : "s", grid.die_width,
      grid.die_height);
  return text;
}

std::string cells(const DieGrid& grid, const Layout& layout, const DieCounts& counts) {
  const std::int64_t most = *std::ranges::max_element(counts.of_die);
  std::string text;
  for (int row = 0; row < grid.rows; ++row)
    for (int column = 0; column < grid.columns; ++column) {
      const std::size_t die =
          static_cast<std::size_t>(row) * static_cast<std::size_t>(grid.columns) + static_cast<std::size_t>(column);
      const std::int64_t count = counts.of_die[die];
      if (count == 0) continue;
      const double x = left + column * layout.cell_width;
      const double y = top + row * layout.cell_height;
      const std::string_view colour = shade(count, most);
      text += fmt::format(
          "<g><title>die column {}, row {}: {} defect{}</title><rect class='{}' x='{:.1f}' y='{:.1f}' width='{:.1f}' "
          "height='{:.1f}'/><text class='count{}' x='{:.1f}' y='{:.1f}'>{}</text></g>\n",
          column, row, count, count == 1 ? "" : "s", colour, x, y, layout.cell_width, layout.cell_height,
          colour == "many" ? " light" : "", x + layout.cell_width / 2, y + layout.cell_height / 2 + 4, count);
    }
  return text;
}

std::string grid_lines(const DieGrid& grid, const Layout& layout) {
  std::string path;
  for (int column = 0; column <= grid.columns; ++column)
    path +=
        fmt::format("M{:.1f} {:.1f}v{:.1f}", left + column * layout.cell_width, top, grid.rows * layout.cell_height);
  for (int row = 0; row <= grid.rows; ++row)
    path +=
        fmt::format("M{:.1f} {:.1f}h{:.1f}", left, top + row * layout.cell_height, grid.columns * layout.cell_width);
  return fmt::format("<path class='grid' d='{}'/>\n", path);
}

std::string labels(const DieGrid& grid, const Layout& layout) {
  const auto step = [](int dies) { return (dies + labels_per_side - 1) / labels_per_side; };
  std::string text;
  for (int column = 0; column < grid.columns; column += step(grid.columns))
    text += fmt::format("<text x='{:.1f}' y='{}' text-anchor='middle'>{}</text>\n",
                        left + (column + 0.5) * layout.cell_width, top - 8, column);
  for (int row = 0; row < grid.rows; row += step(grid.rows))
    text += fmt::format("<text x='{}' y='{:.1f}' text-anchor='end'>{}</text>\n", left - 8,
                        top + (row + 0.5) * layout.cell_height + 4, row);
  return text;
}

}  // namespace

std::string wafer_map_svg(const DieGrid& grid, std::span<const InspectedPicture> pictures) {
  const Layout layout(grid);
  const DieCounts counts = count_by_die(grid, pictures);
  return fmt::format(
             "<svg xmlns='http://www.w3.org/2000/svg' width='{0:.0f}' height='{1:.0f}' viewBox='0 0 {0:.0f} "
             "{1:.0f}'>\n",
             std::ceil(layout.width), std::ceil(layout.height)) +
         style + heading(grid, pictures, counts) + cells(grid, layout, counts) + grid_lines(grid, layout) +
         labels(grid, layout) + "</svg>\n";
}

}  // namespace wafer
