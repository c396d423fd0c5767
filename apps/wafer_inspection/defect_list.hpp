#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/wafer_inspection/defects.hpp"
#include "apps/wafer_inspection/die_grid.hpp"

namespace wafer {

/// One defect as an inspection reports it.
struct Defect {
  Box box = {};           ///< px of the image
  std::int64_t area = 0;  ///< px that differ by more than the threshold
  int contrast = 0;       ///< gray levels at its strongest pixel; below 0 where it is darker than other dies
  std::optional<DiePosition> die = {};  ///< at the centre of its box; none in the frame

  friend bool operator==(const Defect&, const Defect&) = default;
};

/// The result of one picture.
struct InspectedPicture {
  std::string name = {};   ///< of its file
  bool inspected = false;  ///< false where the run ended before it
  std::vector<Defect> defects = {};
};

/// What was found in a report, with the defects that are darker than other dies at their strongest pixel as dark.
/// @param parts  in which the image was compared, its dies where they stand.
[[nodiscard]] std::vector<FoundDefect> with_classes(std::vector<FoundDefect> found, const GrayImage& image,
                                                    const GrayImage& report, const DieGrid& grid,
                                                    std::span<const Part> parts);

/// Adds die and contrast to what was found; a defect is dark where most of its pixels are.
/// @param threshold  of the comparison, gray levels.
[[nodiscard]] std::vector<Defect> describe_defects(std::span<const FoundDefect> found, const DieGrid& grid,
                                                   int threshold);

/// Defects of each die over all pictures, and those in the frame.
struct DieCounts {
  std::vector<std::int64_t> of_die;  ///< [rows * columns] row after row
  std::int64_t in_frame = 0;
};
[[nodiscard]] DieCounts count_by_die(const DieGrid& grid, std::span<const InspectedPicture> pictures);

/// The defect list as CSV (RFC 4180): a header, then a line for each defect.
///
/// Columns: `image`; `defect`, from 1 in each picture; `die_column` and `die_row`, from 0, empty in the frame; `x_px`,
/// `y_px`, `width_px`, `height_px` of the box in the image; `x_in_die_px`, `y_in_die_px` of its corner from that of the
/// die; `area_px`; `contrast_levels`, below 0 for dark.
[[nodiscard]] std::string to_csv(const DieGrid& grid, std::span<const InspectedPicture> pictures);

}  // namespace wafer
