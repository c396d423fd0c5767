#pragma once
#include <span>
#include <string>

#include "apps/wafer_inspection/defect_list.hpp"

namespace wafer {

/// The wafer map as SVG: the grid of dies, each with the number of its defects over all pictures.
///
/// Its text can be selected, each count has a title with its die, and its colours follow a dark screen.
[[nodiscard]] std::string wafer_map_svg(const DieGrid& grid, std::span<const InspectedPicture> pictures);

}  // namespace wafer
