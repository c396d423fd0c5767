#include "apps/wafer_inspection/defect_list.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "apps/wafer_inspection/errors.hpp"

namespace wafer {

namespace {

/// Whether a defect is darker than other dies at its strongest pixel.
bool is_dark(const FoundDefect& found, const GrayImage& image, const GrayImage& report, const DieGrid& grid,
             std::span<const Part> parts) {
  const Box& box = found.box;
  for (int y = box.y; y < box.y + box.height; ++y)
    for (int x = box.x; x < box.x + box.width; ++x) {
      if (report.at(x, y) != found.peak) continue;
      // The pixel lies outside the span of its two counterparts, so one of them decides the sign.
      const int die_row = (y - grid.top) / grid.die_height;
      const bool opens_part =
          std::ranges::any_of(parts, [&](const Part& part) { return part.first_die_row == die_row; });
      return image.at(x, y) < image.at(x, opens_part ? y + grid.die_height : y - grid.die_height);
    }
  WAFER_EXPECTS(false, "a defect has its strongest pixel inside its box");
}

/// A field of a CSV line, in quotes where it needs them.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? std::string("\"\"") : std::string(1, c);
  return field + '"';
}

}  // namespace

std::vector<FoundDefect> with_classes(std::vector<FoundDefect> found, const GrayImage& image, const GrayImage& report,
                                      const DieGrid& grid, std::span<const Part> parts) {
  for (FoundDefect& defect : found) defect.dark_area = is_dark(defect, image, report, grid, parts) ? defect.area : 0;
  return found;
}

std::vector<Defect> describe_defects(std::span<const FoundDefect> found, const DieGrid& grid, int threshold) {
  std::vector<Defect> defects;
  for (const auto& [box, area, peak, dark_area] : found)
    defects.push_back({box, area, (2 * dark_area > area ? -1 : 1) * (peak + threshold),
                       die_at(grid, box.x + box.width / 2, box.y + box.height / 2)});
  return defects;
}

DieCounts count_by_die(const DieGrid& grid, std::span<const InspectedPicture> pictures) {
  const auto columns = static_cast<std::size_t>(grid.columns);
  DieCounts counts{std::vector<std::int64_t>(columns * static_cast<std::size_t>(grid.rows)), 0};
  for (const InspectedPicture& picture : pictures)
    for (const Defect& defect : picture.defects)
      ++(defect.die ? counts.of_die[static_cast<std::size_t>(defect.die->row) * columns +
                                    static_cast<std::size_t>(defect.die->column)]
                    : counts.in_frame);
  return counts;
}

std::string to_csv(const DieGrid& grid, std::span<const InspectedPicture> pictures) {
  std::string text =
      "image,defect,die_column,die_row,x_px,y_px,width_px,height_px,x_in_die_px,y_in_die_px,area_px,contrast_levels\n";
  for (const InspectedPicture& picture : pictures)
    for (std::size_t i = 0; i < picture.defects.size(); ++i) {
      const auto& [box, area, contrast, die] = picture.defects[i];
      text += fmt::format("{},{},", quoted(picture.name), i + 1);
      text += die ? fmt::format("{},{},", die->column, die->row) : ",,";
      text += fmt::format("{},{},{},{},", box.x, box.y, box.width, box.height);
      text += die ? fmt::format("{},{},", box.x - grid.left - die->column * grid.die_width,
                                box.y - grid.top - die->row * grid.die_height)
                  : ",,";
      text += fmt::format("{},{}\n", area, contrast);
    }
  return text;
}

}  // namespace wafer
