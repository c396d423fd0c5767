#include "apps/wafer_inspection/image_set.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "apps/wafer_inspection/png_file.hpp"

namespace wafer {

namespace fs = std::filesystem;
using tutti::Expected;

Expected<ImageSet> generate_images(const WaferSpec& first, int count) {
  ImageSet images;
  for (int i = 0; i < count; ++i) {
    WaferSpec spec = first;
    spec.seed += static_cast<std::uint64_t>(i);
    auto wafer = make_wafer(spec, fmt::format("wafer{:03}.png", i));
    if (!wafer) return tl::unexpected(std::move(wafer.error()));
    images.push_back(*std::move(wafer));
  }
  return images;
}

Expected<void> write_images(const std::string& folder, const ImageSet& images) {
  std::error_code status;
  fs::create_directories(folder, status);
  if (status)
    return tutti::internal::invalid_input(
        fmt::format("the folder cannot be made ({}); name one that can", status.message()), {folder, 0, 0});
  for (const Wafer& wafer : images) {
    const fs::path picture = fs::path(folder) / wafer.truth.image;
    if (auto ok = write_png(picture.string(), wafer.image); !ok) return ok;
    if (auto ok = write_truth(fs::path(picture).replace_extension(".json").string(), wafer.truth); !ok) return ok;
  }
  return {};
}

Expected<ImageSet> read_images(const std::string& folder, int width, int height) {
  std::error_code status;
  std::vector<fs::path> pictures;
  for (fs::directory_iterator entry(folder, status), end; !status && entry != end; entry.increment(status)) {
    if (entry->path().extension() == ".png") pictures.push_back(entry->path());
  }
  if (status)
    return tutti::internal::invalid_input("the folder cannot be read; name one with pictures", {folder, 0, 0});
  if (pictures.empty())
    return tutti::internal::invalid_input("there is no .png in this folder; 'wafer_inspection generate' makes some",
                                          {folder, 0, 0});
  std::sort(pictures.begin(), pictures.end());
  ImageSet images;
  for (const fs::path& picture : pictures) {
    auto image = read_png(picture.string(), width, height);
    if (!image) return tl::unexpected(std::move(image.error()));
    const std::string truth_path = fs::path(picture).replace_extension(".json").string();
    auto truth = read_truth(truth_path);
    if (!truth) return tl::unexpected(std::move(truth.error()));
    if (truth->image != picture.filename().string()) {
      return tutti::internal::invalid_input(
          fmt::format("this is the truth about '{:.80}', not about '{}'; put each picture's own beside it",
                      truth->image, picture.filename().string()),
          {truth_path, 0, 0});
    }
    if (truth->grid.width != width || truth->grid.height != height) {
      return tutti::internal::invalid_input(
          fmt::format("this is the truth about {} x {} pixels; the picture has {} x {}", truth->grid.width,
                      truth->grid.height, width, height),
          {truth_path, 0, 0});
    }
    if (!images.empty() && !(truth->grid == images.front().truth.grid)) {
      return tutti::internal::invalid_input(
          "the dies are laid out otherwise than in the first picture; inspect one layout a run", {truth_path, 0, 0});
    }
    images.push_back({*std::move(image), *std::move(truth)});
  }
  return images;
}

}  // namespace wafer
