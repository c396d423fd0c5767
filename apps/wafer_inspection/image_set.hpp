#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/wafer_inspection/generator.hpp"

namespace wafer {

/// A picture to inspect.
struct Picture {
  std::string file;  ///< path; a name alone where it was generated
  GrayImage image;
  std::optional<Truth> truth;  ///< where it is known

  friend bool operator==(const Picture&, const Picture&) = default;
};

/// How the place of the dies is known.
enum class GridSource : std::uint8_t { Truth, Given, Found };

/// "truth", "given", "found".
[[nodiscard]] std::string_view to_string(GridSource source);

/// Pictures of one size, depth and grid, one or more; the truth is known about all of them or about none.
struct ImageSet {
  DieGrid grid;
  GridSource source = GridSource::Truth;
  std::vector<Picture> pictures;

  /// The first picture, which has the size and depth of all.
  [[nodiscard]] const GrayImage& first() const { return pictures.front().image; }
  [[nodiscard]] std::int64_t image_bytes() const { return static_cast<std::int64_t>(first().bytes().size()); }

  friend bool operator==(const ImageSet&, const ImageSet&) = default;
};

/// Bits that the levels of a set need, 8 or more: a camera of 12 bits leaves 4 of 16 unused.
[[nodiscard]] int used_bits(const ImageSet& images);

/// `default_threshold`, scaled to the bits that the levels need.
[[nodiscard]] std::uint16_t threshold_for(const ImageSet& images);

/// The file name of a picture, without its folders.
[[nodiscard]] std::string name_of(const Picture& picture);

/// Draws `count` wafers; the i-th from seed + i.
/// @errors as `make_wafer`.
/// @pre    count >= 1.
[[nodiscard]] tutti::Expected<ImageSet> generate_images(const WaferSpec& first, int count);

/// Writes each picture as NAME.png with its truth as NAME.json beside it; makes the folder.
/// @errors InvalidInput: a path that cannot be written.
[[nodiscard]] tutti::Expected<void> write_images(const std::string& folder, const ImageSet& images);

/// Where the dies of pictures without a truth are.
struct DieOptions {
  std::optional<Box> first_die = {};            ///< none: they are found in the first picture
  std::optional<std::uint16_t> threshold = {};  ///< none: `threshold_for` the set
};

/// The set of one picture without a truth.
/// @errors InvalidInput: no die that repeats.
[[nodiscard]] tutti::Expected<ImageSet> set_of(Picture picture, const DieOptions& options);

/// Reads pictures, PNG or TIFF by their first bytes, with the truth of a picture X.png or X.tif in X.json where that
/// stands beside it.
///
/// @param paths  of pictures, and of folders: of these every .png, .tif and .tiff, by name.
/// @errors InvalidInput: no picture, one that cannot be read, two of different sizes or depths, two of one name but for
/// the ending, a truth about some pictures or about another one, two layouts, no die that repeats.
[[nodiscard]] tutti::Expected<ImageSet> read_images(std::span<const std::string> paths, const DieOptions& options);

}  // namespace wafer
