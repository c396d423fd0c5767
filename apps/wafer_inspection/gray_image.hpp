#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "apps/wafer_inspection/errors.hpp"

namespace wafer {

/// The longest side of a picture that is read or written, px.
inline constexpr int max_image_side = 65'535;

/// The largest picture that is read or written: it bounds the memory that a file's header can request.
inline constexpr std::int64_t max_image_bytes = std::int64_t{1} << 30;

/// A grayscale picture of 8 or 16 bits a pixel. Its rows are contiguous, without gaps: whole rows are a range of its
/// bytes. Pixels of 16 bits have the byte order of this machine.
class GrayImage {
 public:
  GrayImage() = default;

  /// A black picture.
  /// @pre  width and height >= 0; bits is 8 or 16.
  GrayImage(int width, int height, int bits = 8) : width_{width}, height_{height}, bits_{bits} {
    WAFER_EXPECTS(width >= 0 && height >= 0, "an image has no negative side");
    WAFER_EXPECTS(bits == 8 || bits == 16, "a pixel has 8 or 16 bits");
    bytes_.resize(row_bytes() * static_cast<std::size_t>(height));
  }

  [[nodiscard]] int width() const { return width_; }
  [[nodiscard]] int height() const { return height_; }
  [[nodiscard]] int bits() const { return bits_; }
  [[nodiscard]] int bytes_per_pixel() const { return bits_ / 8; }
  [[nodiscard]] std::size_t row_bytes() const { return static_cast<std::size_t>(width_) * step(); }

  /// @return  [height * row_bytes()] row after row, from the top left.
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return bytes_; }
  [[nodiscard]] std::span<std::uint8_t> bytes() { return bytes_; }

  /// @return  [row_bytes()] from the left.
  /// @pre     0 <= y < height.
  [[nodiscard]] std::span<const std::uint8_t> row(int y) const { return bytes().subspan(offset(0, y), row_bytes()); }
  [[nodiscard]] std::span<std::uint8_t> row(int y) { return bytes().subspan(offset(0, y), row_bytes()); }

  /// The gray level of a pixel, 0 to 2^bits - 1.
  /// @pre  0 <= x < width, 0 <= y < height.
  [[nodiscard]] int at(int x, int y) const {
    const std::uint8_t* pixel = bytes_.data() + offset(x, y);
    if (bits_ == 8) return *pixel;
    std::uint16_t level = 0;
    std::memcpy(&level, pixel, sizeof level);
    return level;
  }

  /// @pre  0 <= x < width, 0 <= y < height, 0 <= level < 2^bits.
  void set(int x, int y, int level) {
    std::uint8_t* pixel = bytes_.data() + offset(x, y);
    const auto wide = static_cast<std::uint16_t>(level);
    if (bits_ == 8) {
      *pixel = static_cast<std::uint8_t>(level);
    } else {
      std::memcpy(pixel, &wide, sizeof wide);
    }
  }

  friend bool operator==(const GrayImage&, const GrayImage&) = default;

 private:
  [[nodiscard]] std::size_t step() const { return static_cast<std::size_t>(bytes_per_pixel()); }
  [[nodiscard]] std::size_t offset(int x, int y) const {
    return static_cast<std::size_t>(y) * row_bytes() + static_cast<std::size_t>(x) * step();
  }

  int width_ = 0;
  int height_ = 0;
  int bits_ = 8;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace wafer
