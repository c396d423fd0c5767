#include "apps/wafer_inspection/marked_picture.hpp"

#include <algorithm>
#include <cstddef>

namespace wafer {

namespace {

constexpr int rim = 3;                  // px between a defect and its frame
constexpr int pixels_per_stroke = 500;  // of the picture's longer side, for each pixel of the frame's width

}  // namespace

std::vector<std::uint8_t> marked_picture(const GrayImage& image, int used_bits, std::span<const Defect> defects) {
  std::vector<std::uint8_t> rgb;
  rgb.reserve(3 * static_cast<std::size_t>(image.width()) * static_cast<std::size_t>(image.height()));
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x)
      rgb.insert(rgb.end(), 3, static_cast<std::uint8_t>(image.at(x, y) >> (used_bits - 8)));

  const auto mark = [&](int x, int y) {
    if (x < 0 || y < 0 || x >= image.width() || y >= image.height()) return;
    const std::size_t at =
        3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(image.width()) + static_cast<std::size_t>(x));
    rgb[at] = 255;
    rgb[at + 1] = rgb[at + 2] = 0;
  };
  const int stroke = 1 + std::max(image.width(), image.height()) / pixels_per_stroke;
  for (const Defect& defect : defects)
    for (int step = 0; step < stroke; ++step) {
      const Box frame = with_rim(defect.box, rim + 1 + step);
      for (int x = frame.x; x < frame.x + frame.width; ++x) mark(x, frame.y), mark(x, frame.y + frame.height - 1);
      for (int y = frame.y; y < frame.y + frame.height; ++y) mark(frame.x, y), mark(frame.x + frame.width - 1, y);
    }
  return rgb;
}

}  // namespace wafer
