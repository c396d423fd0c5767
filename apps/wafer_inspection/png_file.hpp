#pragma once
#include <string>

#include "apps/wafer_inspection/gray_image.hpp"
#include "model/base/error.hpp"

namespace wafer {

/// The longest side of a picture that is read or written: it bounds the memory that a file's header can request.
inline constexpr int max_image_side = 16384;

/// Reads an 8-bit grayscale PNG of the declared size, pixel values as they stand in the file (no gamma applied).
///
/// The size is checked against the header before any memory is taken for pixels. Interlaced files are read like others.
///
/// @param width, height  px, as declared: the file must have them.
/// @errors  InvalidInput, with the file as place: no such file, not a PNG, cut off or damaged, another size, 16-bit or
///          below 8, RGB, a palette, alpha or a transparent gray.
[[nodiscard]] tutti::Expected<GrayImage> read_png(const std::string& path, int width, int height);

/// Writes an 8-bit grayscale PNG; the same image gives the same bytes with the same libpng.
/// @errors  InvalidInput: an empty or too large image, a path that cannot be opened. Machine: the disk is full.
[[nodiscard]] tutti::Expected<void> write_png(const std::string& path, const GrayImage& image);

}  // namespace wafer
