#include "apps/wafer_inspection/image_set.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "apps/output_file.hpp"
#include "apps/wafer_inspection/die_compare.hpp"
#include "apps/wafer_inspection/die_pitch.hpp"
#include "apps/wafer_inspection/errors.hpp"
#include "apps/wafer_inspection/png_file.hpp"
#include "apps/wafer_inspection/tiff_file.hpp"

namespace wafer {

namespace fs = std::filesystem;
using tutti::Expected;

namespace {

tl::unexpected<tutti::Error> not_inspected(const std::string& file, std::string message) {
  return invalid_input(std::move(message), {.file = file});
}

bool has_picture_ending(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending == ".png" || ending == ".tif" || ending == ".tiff";
}

Expected<std::vector<std::string>> pictures_in(const std::string& folder) {
  std::error_code status;
  std::vector<std::string> pictures;
  for (fs::directory_iterator entry(folder, status), end; !status && entry != end; entry.increment(status))
    if (has_picture_ending(entry->path())) pictures.push_back(entry->path().string());
  if (status) return not_inspected(folder, "the folder cannot be read; name one with pictures");
  if (pictures.empty())
    return not_inspected(folder,
                         "there is no .png, .tif or .tiff in this folder; 'wafer_inspection generate' makes some");
  std::ranges::sort(pictures);
  return pictures;
}

/// Every picture that the paths name, in their order.
Expected<std::vector<std::string>> pictures_of(std::span<const std::string> paths) {
  std::vector<std::string> pictures;
  for (const std::string& path : paths) {
    std::error_code status;
    if (!fs::is_directory(path, status)) {
      pictures.push_back(path);
      continue;
    }
    const auto inside = pictures_in(path);
    if (!inside) return inside;
    pictures.insert(pictures.end(), inside->begin(), inside->end());
  }
  return pictures;
}

/// Results are named after the pictures.
Expected<void> check_names(std::span<const std::string> files) {
  std::map<std::string, std::string> file_of;
  for (const std::string& file : files) {
    const auto [other, is_new] = file_of.emplace(fs::path(file).stem().string(), file);
    if (!is_new)
      return not_inspected(file, fmt::format("has the name of {}, and results are named after pictures; rename one of "
                                             "them, or inspect them in two runs",
                                             other->second));
  }
  return {};
}

Expected<GrayImage> read_picture(const std::string& file) {
  std::error_code status;
  if (!fs::is_regular_file(file, status))
    return not_inspected(file, fs::exists(file, status)
                                   ? "is no ordinary file; name pictures, or folders with pictures"
                                   : "there is no such file or folder; name pictures, or folders with pictures");
  std::array<char, 4> start{};
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return not_inspected(file, "cannot be opened; give a file that may be read");
  stream.read(start.data(), start.size());
  const std::string_view first(start.data(), static_cast<std::size_t>(stream.gcount()));
  if (first.ends_with("PNG")) return read_png(file);
  if (first.starts_with("II") || first.starts_with("MM")) return read_tiff(file);
  return not_inspected(file, first.empty() ? "the file is empty; a grayscale PNG or TIFF is needed"
                                           : "is neither PNG nor TIFF; a grayscale picture in one of them is needed");
}

/// The truth beside a picture; none where there is no such file.
Expected<std::optional<Truth>> read_truth_beside(const std::string& file, const GrayImage& image) {
  const std::string path = fs::path(file).replace_extension(".json").string();
  std::error_code status;
  if (!fs::exists(path, status)) return std::nullopt;
  auto truth = read_truth(path);
  if (!truth) return tl::unexpected(std::move(truth.error()));
  const std::string name = fs::path(file).filename().string();
  if (truth->image != name)
    return not_inspected(path, fmt::format("this is the truth about '{:.80}', not about '{}'; put each picture's own "
                                           "beside it",
                                           truth->image, name));
  if (truth->grid.width != image.width() || truth->grid.height != image.height())
    return not_inspected(path, fmt::format("this is the truth about {} x {} pixels; the picture has {} x {}",
                                           truth->grid.width, truth->grid.height, image.width(), image.height()));
  return *std::move(truth);
}

/// Whether a picture can be inspected in a run with the first one.
Expected<void> check_alike(const Picture& first, const Picture& picture) {
  const GrayImage& a = first.image;
  const GrayImage& b = picture.image;
  if (a.width() != b.width() || a.height() != b.height())
    return not_inspected(picture.file, fmt::format("has {} x {} pixels, and {} has {} x {}; inspect one size a run",
                                                   b.width(), b.height(), first.file, a.width(), a.height()));
  if (a.bits() != b.bits())
    return not_inspected(picture.file, fmt::format("has {} bits a pixel, and {} has {}; inspect one depth a run",
                                                   b.bits(), first.file, a.bits()));
  if (first.truth.has_value() != picture.truth.has_value())
    return not_inspected(
        (first.truth ? picture : first).file,
        fmt::format("has no truth (.json) beside it, and {} has one; put one beside every picture, or beside none",
                    (first.truth ? first : picture).file));
  if (first.truth && first.truth->grid != picture.truth->grid)
    return not_inspected(picture.file, fmt::format("the dies are laid out otherwise than in {}; inspect one layout a "
                                                   "run",
                                                   first.file));
  return {};
}

/// The grid of a set whose pictures are read.
Expected<DieGrid> grid_of(const ImageSet& images, const DieOptions& options) {
  const Picture& first = images.pictures.front();
  if (first.truth && options.first_die)
    return not_inspected(first.file, "the truth beside this picture says where its dies are; leave --die out");
  if (first.truth) return first.truth->grid;
  auto grid = options.first_die ? grid_of_whole_dies(first.image.width(), first.image.height(), *options.first_die)
                                : find_die_grid(first.image, options.threshold.value_or(threshold_for(images)));
  if (!grid) grid.error().place.file = first.file;
  return grid;
}

Expected<ImageSet> with_grid(ImageSet images, const DieOptions& options) {
  auto grid = grid_of(images, options);
  if (!grid) return tl::unexpected(std::move(grid.error()));
  images.grid = *grid;
  if (!images.pictures.front().truth) images.source = options.first_die ? GridSource::Given : GridSource::Found;
  return images;
}

}  // namespace

std::string_view to_string(GridSource source) {
  switch (source) {
    case GridSource::Truth: return "truth";
    case GridSource::Given: return "given";
    case GridSource::Found: return "found";
  }
  return "";
}

int used_bits(const ImageSet& images) {
  unsigned all = 0xff;
  for (const Picture& picture : images.pictures) {
    if (picture.image.bits() == 8) continue;
    for (int y = 0; y < picture.image.height(); ++y)
      for (int x = 0; x < picture.image.width(); ++x) all |= static_cast<unsigned>(picture.image.at(x, y));
  }
  return std::bit_width(all);
}

std::uint16_t threshold_for(const ImageSet& images) {
  return static_cast<std::uint16_t>(default_threshold << (used_bits(images) - 8));
}

std::string name_of(const Picture& picture) { return fs::path(picture.file).filename().string(); }

Expected<ImageSet> generate_images(const WaferSpec& first, int count) {
  WAFER_EXPECTS(count >= 1, "a set has a picture");
  ImageSet images;
  for (int i = 0; i < count; ++i) {
    WaferSpec spec = first;
    spec.seed += static_cast<std::uint64_t>(i);
    auto wafer = make_wafer(spec, fmt::format("wafer{:03}.png", i));
    if (!wafer) return tl::unexpected(std::move(wafer.error()));
    images.grid = wafer->truth.grid;
    images.pictures.push_back({wafer->truth.image, std::move(wafer->image), std::move(wafer->truth)});
  }
  return images;
}

Expected<void> write_images(const std::string& folder, const ImageSet& images) {
  if (auto made = tutti::programs::make_folder(folder); !made) return made;
  for (const Picture& picture : images.pictures) {
    const fs::path path = fs::path(folder) / name_of(picture);
    if (auto ok = write_png(path.string(), picture.image); !ok) return ok;
    if (!picture.truth) continue;
    const std::string beside = fs::path(path).replace_extension(".json").string();
    if (auto ok = tutti::programs::write_file_silently(beside, to_json(*picture.truth)); !ok) return ok;
  }
  return {};
}

Expected<ImageSet> read_images(std::span<const std::string> paths, const DieOptions& options) {
  const auto files = pictures_of(paths);
  if (!files) return tl::unexpected(files.error());
  if (auto fine = check_names(*files); !fine) return tl::unexpected(std::move(fine.error()));
  ImageSet images;
  for (const std::string& file : *files) {
    auto image = read_picture(file);
    if (!image) return tl::unexpected(std::move(image.error()));
    auto truth = read_truth_beside(file, *image);
    if (!truth) return tl::unexpected(std::move(truth.error()));
    images.pictures.push_back({file, *std::move(image), *std::move(truth)});
    if (auto fine = check_alike(images.pictures.front(), images.pictures.back()); !fine)
      return tl::unexpected(std::move(fine.error()));
  }
  WAFER_EXPECTS(!images.pictures.empty(), "paths of pictures are given");
  return with_grid(std::move(images), options);
}

Expected<ImageSet> set_of(Picture picture, const DieOptions& options) {
  ImageSet images;
  images.pictures.push_back(std::move(picture));
  return with_grid(std::move(images), options);
}

}  // namespace wafer
