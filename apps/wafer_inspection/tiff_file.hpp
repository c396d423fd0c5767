#pragma once
#include <string>

#include <tutti/error.hpp>

#include "apps/wafer_inspection/gray_image.hpp"

namespace wafer {

/// Reads a grayscale TIFF of 8 or 16 bits, in strips or tiles, in either byte order and with any compression that
/// libtiff has: pixel values as they stand in the file.
///
/// The size is checked against the header before any memory is taken for pixels.
///
/// @errors  InvalidInput, with the file as place: no such file, not a TIFF, cut off or damaged, too large, another
///          depth, signed or floating-point samples, colours, a palette, 0 for white, several pages, a turned picture.
[[nodiscard]] tutti::Expected<GrayImage> read_tiff(const std::string& path);

}  // namespace wafer
