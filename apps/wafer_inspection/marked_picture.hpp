#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "apps/wafer_inspection/defect_list.hpp"
#include "apps/wafer_inspection/gray_image.hpp"

namespace wafer {

/// A picture in colours, with a red frame around each defect.
///
/// The frame leaves the defect and a rim around it visible, and grows with the picture, so that a large one shows its
/// defects when it is seen as a whole. Levels above 8 bits are shown by their highest 8 that the set uses.
///
/// @param used_bits  of the levels, 8 to 16.
/// @return  [height * width * 3] red, green and blue, row after row.
[[nodiscard]] std::vector<std::uint8_t> marked_picture(const GrayImage& image, int used_bits,
                                                       std::span<const Defect> defects);

}  // namespace wafer
