#pragma once
#include <cstdint>
#include <span>
#include <string>

#include <tutti/error.hpp>

#include "apps/wafer_inspection/gray_image.hpp"

namespace wafer {

/// Reads a grayscale PNG of 8 or 16 bits, pixel values as they stand in the file (no gamma applied).
///
/// The size is checked against the header before any memory is taken for pixels. Interlaced files are read like others.
///
/// @errors  InvalidInput, with the file as place: no such file, not a PNG, cut off or damaged, too large, below 8 bits,
///          RGB, a palette, alpha or a transparent gray.
[[nodiscard]] tutti::Expected<GrayImage> read_png(const std::string& path);

/// Writes a grayscale PNG of the picture's depth; the same image gives the same bytes with the same libpng.
/// @errors  InvalidInput: an empty or too large image. As `write_file`.
[[nodiscard]] tutti::Expected<void> write_png(const std::string& path, const GrayImage& image);

/// Writes a PNG of 8-bit colours.
/// @param rgb  [height * width * 3] red, green and blue of each pixel, row after row.
/// @errors  as `write_png`.
/// @pre     the size of `rgb` is a multiple of 3 * width.
[[nodiscard]] tutti::Expected<void> write_rgb_png(const std::string& path, std::span<const std::uint8_t> rgb,
                                                  int width);

}  // namespace wafer
