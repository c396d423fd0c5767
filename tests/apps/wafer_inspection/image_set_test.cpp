#include "apps/wafer_inspection/image_set.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <png.h>

#include "apps/wafer_inspection/png_file.hpp"
#include "tests/apps/temporary_folder.hpp"

namespace wafer {
namespace {

ImageSet wafers(int count) {
  return generate_images({.width = 256, .height = 240, .seed = 5, .defects = 4}, count).value();
}

/// A folder with wafer000.png, wafer001.png and what is true about them.
class TwoWafers {
 public:
  TwoWafers() { EXPECT_TRUE(write_images(path(), wafers(2)).has_value()); }

  [[nodiscard]] std::string path() const { return folder_.file("w"); }
  [[nodiscard]] std::string file(const std::string& name) const { return path() + "/" + name; }

  /// What reading it is refused with; "fine" where it is not.
  [[nodiscard]] std::string error(int width = 256, int height = 240) const {
    const auto images = read_images(path(), width, height);
    if (images) return "fine";
    EXPECT_EQ(images.error().code, tutti::ErrorCode::InvalidInput);
    return images.error().text();
  }

  void expect_error(const std::string& place, const std::string& words) const {
    EXPECT_EQ(error().rfind(place, 0), 0U) << error();
    EXPECT_NE(error().find(words), std::string::npos) << error();
  }

 private:
  TemporaryFolder folder_;
};

TEST(ImageSet, DrawsEachWaferFromASeedOfItsOwn) {
  const ImageSet images = wafers(3);
  ASSERT_EQ(images.size(), 3U);
  for (std::size_t i = 0; i < images.size(); ++i) {
    EXPECT_EQ(images[i].truth.seed, 5 + i);
    EXPECT_EQ(images[i].truth.image, "wafer00" + std::to_string(i) + ".png");
    EXPECT_EQ(images[i],
              make_wafer({.width = 256, .height = 240, .seed = 5 + i, .defects = 4}, images[i].truth.image).value());
  }
  EXPECT_TRUE(wafers(0).empty());
  EXPECT_FALSE(generate_images({.width = 10, .height = 10}, 1).has_value());
}

TEST(ImageSet, ReadsWhatItWrote) {
  const TwoWafers folder;
  EXPECT_EQ(read_images(folder.path(), 256, 240).value(), wafers(2));
  EXPECT_TRUE(write_images(folder.path(), wafers(2)).has_value()) << "over what is there";
}

TEST(ImageSet, LeavesOtherFilesAlone) {
  const TwoWafers folder;
  std::ofstream(folder.file("notes.txt")) << "not a picture";
  EXPECT_EQ(read_images(folder.path(), 256, 240).value().size(), 2U);
}

TEST(ImageSet, RefusesFoldersThatAreNone) {
  const TemporaryFolder folder;
  for (const std::string& path : {folder.file("missing"), folder.file("")}) {
    const auto images = read_images(path, 256, 240);
    ASSERT_FALSE(images.has_value());
    EXPECT_EQ(images.error().code, tutti::ErrorCode::InvalidInput);
    EXPECT_EQ(images.error().place.file, path);
  }
  std::ofstream(folder.file("file")) << "x";
  EXPECT_FALSE(read_images(folder.file("file"), 256, 240).has_value());
  const auto written = write_images(folder.file("file") + "/below", wafers(1));
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().code, tutti::ErrorCode::InvalidInput);
}

TEST(ImageSet, RefusesPicturesOfAnotherSize) {
  const TwoWafers folder;
  EXPECT_NE(folder.error(240, 256), "fine");
  EXPECT_NE(folder.error(512, 240).find("wafer000.png"), std::string::npos);
  ASSERT_TRUE(write_png(folder.file("wafer001.png"), GrayImage(256, 256)).has_value());
  folder.expect_error(folder.file("wafer001.png"), "256 x 256");
}

/// A picture of the declared size in another format.
void write_picture(const std::string& path, int depth, int colour) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop header = png_create_info_struct(png);
  png_init_io(png, file);
  png_set_IHDR(png, header, 256, 240, depth, colour, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, header);
  const std::vector<png_byte> row(256 * 8);
  for (int y = 0; y < 240; ++y) png_write_row(png, row.data());
  png_write_end(png, header);
  png_destroy_write_struct(&png, &header);
  std::fclose(file);
}

TEST(ImageSet, RefusesPicturesOfAnotherDepth) {
  const TwoWafers folder;
  for (const auto& [depth, colour] : {std::pair(16, PNG_COLOR_TYPE_GRAY),
                                      {1, PNG_COLOR_TYPE_GRAY},
                                      {8, PNG_COLOR_TYPE_RGB},
                                      {8, PNG_COLOR_TYPE_GRAY_ALPHA}}) {
    write_picture(folder.file("wafer000.png"), depth, colour);
    EXPECT_EQ(folder.error().rfind(folder.file("wafer000.png"), 0), 0U) << folder.error();
  }
}

TEST(ImageSet, RefusesDamagedPictures) {
  const TwoWafers folder;
  std::filesystem::resize_file(folder.file("wafer001.png"), 100);
  folder.expect_error(folder.file("wafer001.png"), "; ");
  std::ofstream(folder.file("wafer001.png")) << "GIF89a";
  folder.expect_error(folder.file("wafer001.png"), "; ");
}

TEST(ImageSet, RefusesPicturesWithoutTheirTruth) {
  const TwoWafers folder;
  std::filesystem::remove(folder.file("wafer001.json"));
  folder.expect_error(folder.file("wafer001.json"), "; ");
  std::ofstream(folder.file("wafer001.json")) << "{}";
  folder.expect_error(folder.file("wafer001.json"), "; ");
}

// With the defects of another wafer, a run would count misses and false alarms where there are none.
TEST(ImageSet, RefusesTheTruthAboutAnotherPicture) {
  const TwoWafers folder;
  std::filesystem::copy_file(folder.file("wafer000.json"), folder.file("wafer001.json"),
                             std::filesystem::copy_options::overwrite_existing);
  folder.expect_error(folder.file("wafer001.json"), "the truth about 'wafer000.png', not about 'wafer001.png'");
}

TEST(ImageSet, RefusesTheTruthAboutAnotherSize) {
  const TwoWafers folder;
  ASSERT_TRUE(
      write_truth(folder.file("wafer000.json"), make_wafer({.width = 300, .height = 240}, "wafer000.png").value().truth)
          .has_value());
  folder.expect_error(folder.file("wafer000.json"), "the truth about 300 x 240 pixels; the picture has 256 x 240");
}

TEST(ImageSet, RefusesTwoLayoutsInOneRun) {
  const TwoWafers folder;
  Truth truth = wafers(2)[1].truth;
  truth.grid.rows -= 1;
  truth.defects.clear();
  ASSERT_TRUE(write_truth(folder.file("wafer001.json"), truth).has_value());
  folder.expect_error(folder.file("wafer001.json"), "laid out otherwise than in the first picture");
}

}  // namespace
}  // namespace wafer
