#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/base/expects.hpp"

namespace wafer {

/// An 8-bit grayscale picture. Its rows are contiguous, without gaps: whole rows are a range of its bytes.
class GrayImage {
 public:
  GrayImage() = default;

  /// @pre  width and height >= 0.
  GrayImage(int width, int height, std::uint8_t fill = 0) : width_{width}, height_{height} {
    TUTTI_EXPECTS(width >= 0 && height >= 0, "an image has no negative side");
    pixels_.assign(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), fill);
  }

  [[nodiscard]] int width() const { return width_; }
  [[nodiscard]] int height() const { return height_; }

  /// @return  [width * height] row after row, from the top left.
  [[nodiscard]] std::span<const std::uint8_t> pixels() const { return pixels_; }
  [[nodiscard]] std::span<std::uint8_t> pixels() { return pixels_; }

  /// @return  [width] from the left.
  /// @pre     0 <= y < height.
  [[nodiscard]] std::span<const std::uint8_t> row(int y) const { return pixels().subspan(index(0, y), row_bytes()); }
  [[nodiscard]] std::span<std::uint8_t> row(int y) { return pixels().subspan(index(0, y), row_bytes()); }

  /// @pre  0 <= x < width, 0 <= y < height.
  [[nodiscard]] std::uint8_t at(int x, int y) const { return pixels_[index(x, y)]; }
  [[nodiscard]] std::uint8_t& at(int x, int y) { return pixels_[index(x, y)]; }

  friend bool operator==(const GrayImage&, const GrayImage&) = default;

 private:
  [[nodiscard]] std::size_t row_bytes() const { return static_cast<std::size_t>(width_); }
  [[nodiscard]] std::size_t index(int x, int y) const {
    return static_cast<std::size_t>(y) * row_bytes() + static_cast<std::size_t>(x);
  }

  int width_ = 0;
  int height_ = 0;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace wafer
