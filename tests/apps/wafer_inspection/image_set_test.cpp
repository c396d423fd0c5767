#include "apps/wafer_inspection/image_set.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <png.h>

#include "apps/output_file.hpp"
#include "apps/wafer_inspection/png_file.hpp"
#include "tests/apps/temporary_folder.hpp"

namespace wafer {
namespace {

ImageSet images_of(int count) {
  return generate_images({.width = 256, .height = 240, .seed = 5, .defects = 4}, count).value();
}

tutti::Expected<ImageSet> read_folder(const std::string& path, const DieOptions& options = {}) {
  return read_images(std::array{path}, options);
}

/// A folder with wafer000.png, wafer001.png and what is true about them.
class TwoWafers {
 public:
  TwoWafers() { EXPECT_TRUE(write_images(path(), images_of(2)).has_value()); }

  [[nodiscard]] std::string path() const { return folder_.file("w"); }
  [[nodiscard]] std::string file(const std::string& name) const { return path() + "/" + name; }

  void forget_truth() const {
    for (const char* name : {"wafer000.json", "wafer001.json"}) std::filesystem::remove(file(name));
  }

  /// What reading it is refused with; "fine" where it is not.
  [[nodiscard]] std::string error(const DieOptions& options = {}) const {
    const auto images = read_folder(path(), options);
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
  const ImageSet images = images_of(3);
  ASSERT_EQ(images.pictures.size(), 3U);
  for (std::size_t i = 0; i < images.pictures.size(); ++i) {
    const Picture& picture = images.pictures[i];
    EXPECT_EQ(picture.truth->seed, 5 + i);
    EXPECT_EQ(picture.file, "wafer00" + std::to_string(i) + ".png");
    const Wafer drawn = make_wafer({.width = 256, .height = 240, .seed = 5 + i, .defects = 4}, picture.file).value();
    EXPECT_EQ(picture.image, drawn.image);
    EXPECT_EQ(*picture.truth, drawn.truth);
  }
  EXPECT_FALSE(generate_images({.width = 10, .height = 10}, 1).has_value());
}

TEST(ImageSet, ReadsWhatItWrote) {
  const TwoWafers folder;
  ImageSet expected = images_of(2);
  for (Picture& picture : expected.pictures) picture.file = folder.file(picture.file);
  EXPECT_EQ(read_folder(folder.path()).value(), expected);
  EXPECT_TRUE(write_images(folder.path(), images_of(2)).has_value()) << "over what is there";
}

TEST(ImageSet, ReadsFilesInTheGivenOrder) {
  const TwoWafers folder;
  const std::array paths{folder.file("wafer001.png"), folder.file("wafer000.png")};
  const ImageSet images = read_images(paths, {}).value();
  EXPECT_EQ(name_of(images.pictures[0]), "wafer001.png");
  EXPECT_EQ(name_of(images.pictures[1]), "wafer000.png");
}

TEST(ImageSet, FindsTheDiesWhereNoTruthIsKnown) {
  const TwoWafers folder;
  folder.forget_truth();
  const ImageSet images = read_folder(folder.path()).value();
  EXPECT_EQ(images.source, GridSource::Found);
  EXPECT_EQ(images.grid, images_of(1).grid);
  EXPECT_FALSE(images.pictures[0].truth.has_value());
}

// A die of 20 x 30 px from 6,0 in 256 x 240: (256 - 6) / 20 = 12 columns, 240 / 30 = 8 rows.
TEST(ImageSet, TakesTheDiesThatAreGiven) {
  const TwoWafers folder;
  EXPECT_NE(folder.error({.first_die = Box{6, 0, 20, 30}}).find("leave --die out"), std::string::npos);
  folder.forget_truth();
  const ImageSet images = read_folder(folder.path(), {.first_die = Box{6, 0, 20, 30}}).value();
  EXPECT_EQ(images.source, GridSource::Given);
  EXPECT_EQ(images.grid.columns, 12);
  EXPECT_EQ(images.grid.rows, 8);
  EXPECT_EQ(folder.error({.first_die = Box{6, 0, 251, 30}}).rfind(folder.file("wafer000.png"), 0), 0U);
}

TEST(ImageSet, SaysWhereNoDieRepeats) {
  const TwoWafers folder;
  folder.forget_truth();
  ASSERT_TRUE(write_png(folder.file("wafer000.png"), GrayImage(256, 240)).has_value());
  folder.expect_error(folder.file("wafer000.png"), "give the size of a die with --die");
}

// 4095 needs 12 bits, so the threshold is 24 * 2^4; 8-bit pictures keep 24, dark ones too.
TEST(ImageSet, ScalesTheThresholdToTheLevelsThatAreUsed) {
  ImageSet images = images_of(1);
  images.pictures[0].image = GrayImage(4, 4);
  EXPECT_EQ(threshold_for(images), 24);
  images.pictures[0].image = GrayImage(4, 4, 16);
  EXPECT_EQ(threshold_for(images), 24);
  images.pictures[0].image.set(3, 3, 4095);
  EXPECT_EQ(threshold_for(images), 384);
  images.pictures[0].image.set(0, 0, 65'535);
  EXPECT_EQ(threshold_for(images), 6144);
}

TEST(ImageSet, LeavesOtherFilesAlone) {
  const TwoWafers folder;
  std::ofstream(folder.file("notes.txt")) << "not a picture";
  EXPECT_EQ(read_folder(folder.path()).value().pictures.size(), 2U);
}

TEST(ImageSet, RefusesFoldersThatAreNone) {
  const TemporaryFolder folder;
  for (const std::string& path : {folder.file("missing"), folder.file("")}) {
    const auto images = read_folder(path);
    ASSERT_FALSE(images.has_value());
    EXPECT_EQ(images.error().code, tutti::ErrorCode::InvalidInput);
    EXPECT_EQ(images.error().place.file, path);
  }
  std::ofstream(folder.file("file")) << "x";
  EXPECT_FALSE(read_folder(folder.file("file")).has_value());
  const auto written = write_images(folder.file("file") + "/below", images_of(1));
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().code, tutti::ErrorCode::InvalidInput);
}

// The sentence names both files.
TEST(ImageSet, RefusesPicturesOfTwoSizesOrDepths) {
  const TwoWafers folder;
  folder.forget_truth();
  ASSERT_TRUE(write_png(folder.file("wafer001.png"), GrayImage(256, 256)).has_value());
  folder.expect_error(folder.file("wafer001.png"),
                      "has 256 x 256 pixels, and " + folder.file("wafer000.png") + " has 256 x 240");
  ASSERT_TRUE(write_png(folder.file("wafer001.png"), GrayImage(256, 240, 16)).has_value());
  folder.expect_error(folder.file("wafer001.png"),
                      "has 16 bits a pixel, and " + folder.file("wafer000.png") + " has 8");
}

// Results are named after pictures: wafer000.png and wafer000.tif would have one name.
TEST(ImageSet, RefusesTwoPicturesOfOneName) {
  const TwoWafers folder;
  std::filesystem::copy_file(folder.file("wafer000.png"), folder.file("wafer000.TIF"));
  EXPECT_NE(folder.error().find("rename one of them"), std::string::npos) << folder.error();
  const std::array twice{folder.path(), folder.file("wafer001.png")};
  EXPECT_FALSE(read_images(twice, {}).has_value());
}

// The first bytes say what a file is, not its name.
TEST(ImageSet, ReadsAPngOfAnotherName) {
  const TwoWafers folder;
  folder.forget_truth();
  std::filesystem::rename(folder.file("wafer000.png"), folder.file("wafer000.tiff"));
  EXPECT_EQ(read_folder(folder.path()).value().pictures[0].image, images_of(1).pictures[0].image);
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
  for (const auto& [depth, colour] :
       {std::pair(1, PNG_COLOR_TYPE_GRAY), {8, PNG_COLOR_TYPE_RGB}, {8, PNG_COLOR_TYPE_GRAY_ALPHA}}) {
    write_picture(folder.file("wafer000.png"), depth, colour);
    EXPECT_EQ(folder.error().rfind(folder.file("wafer000.png"), 0), 0U) << folder.error();
  }
}

TEST(ImageSet, RefusesDamagedPictures) {
  const TwoWafers folder;
  std::filesystem::resize_file(folder.file("wafer001.png"), 100);
  folder.expect_error(folder.file("wafer001.png"), "; ");
  std::ofstream(folder.file("wafer001.png")) << "GIF89a";
  folder.expect_error(folder.file("wafer001.png"), "neither PNG nor TIFF; ");
  std::ofstream(folder.file("wafer001.png")) << "";
  folder.expect_error(folder.file("wafer001.png"), "is empty; ");
}

TEST(ImageSet, RefusesPicturesWithoutTheirTruth) {
  const TwoWafers folder;
  std::filesystem::remove(folder.file("wafer001.json"));
  folder.expect_error(folder.file("wafer001.png"),
                      "has no truth (.json) beside it, and " + folder.file("wafer000.png"));
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
  const Truth truth = make_wafer({.width = 300, .height = 240}, "wafer000.png").value().truth;
  ASSERT_TRUE(tutti::programs::write_file(folder.file("wafer000.json"), to_json(truth)).has_value());
  folder.expect_error(folder.file("wafer000.json"), "the truth about 300 x 240 pixels; the picture has 256 x 240");
}

TEST(ImageSet, RefusesTwoLayoutsInOneRun) {
  const TwoWafers folder;
  Truth truth = *images_of(2).pictures[1].truth;
  truth.grid.rows -= 1;
  truth.defects.clear();
  ASSERT_TRUE(tutti::programs::write_file(folder.file("wafer001.json"), to_json(truth)).has_value());
  folder.expect_error(folder.file("wafer001.png"), "laid out otherwise than in " + folder.file("wafer000.png"));
}

}  // namespace
}  // namespace wafer
