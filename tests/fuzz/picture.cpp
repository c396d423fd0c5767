#include "tests/fuzz/picture.hpp"

#include <algorithm>

#include "apps/wafer_inspection/die_pitch.hpp"
#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {

bool look_at(const Expected<wafer::GrayImage>& image, const std::string& path) {
  if (!image) {
    const Error& error = image.error();
    require(error.code == ErrorCode::InvalidInput && error.place.file == path,
            "an error names its file: " + error.text());
    require(!error.message.empty() && error.message.find('\n') == std::string::npos, "an error is a sentence");
    return false;
  }
  require(image->bytes().size() == image->row_bytes() * static_cast<std::size_t>(image->height()),
          "a picture has all its rows");
  // Looking for dies takes time with the square of a side.
  constexpr int kLongestSide = 512;
  if (std::max(image->width(), image->height()) > kLongestSide) return true;
  constexpr int kThreshold = 16;
  const auto grid = wafer::find_die_grid(*image, kThreshold);
  require(!grid || (wafer::is_consistent(*grid) && grid->width == image->width() && grid->height == image->height()),
          "dies that are found stand inside their picture");
  return true;
}

}  // namespace tutti::internal::fuzz
