#pragma once
#include <string>
#include <vector>

#include "apps/wafer_inspection/generator.hpp"

namespace wafer {

/// Wafers with their ground truth, all of one size and grid.
using ImageSet = std::vector<Wafer>;

/// Draws `count` wafers; the i-th from seed + i.
/// @errors as `make_wafer`.
[[nodiscard]] tutti::Expected<ImageSet> generate_images(const WaferSpec& first, int count);

/// Writes each wafer as NAME.png with NAME.json beside it; makes the folder.
/// @errors InvalidInput: a path that cannot be written.
[[nodiscard]] tutti::Expected<void> write_images(const std::string& folder, const ImageSet& images);

/// Reads every *.png of a folder, by name, with the truth beside it.
/// @errors InvalidInput: no folder, no picture in it, another size or depth than declared, a truth missing or not its
/// own.
[[nodiscard]] tutti::Expected<ImageSet> read_images(const std::string& folder, int width, int height);

}  // namespace wafer
