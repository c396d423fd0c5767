#include "apps/wafer_inspection/png_file.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <png.h>

#include "apps/wafer_inspection/random.hpp"
#include "tests/apps/temporary_folder.hpp"

namespace wafer {
namespace {

GrayImage random_image(int width, int height, int bits = 8) {
  GrayImage image{width, height, bits};
  Random random{42};
  for (auto& pixel : image.bytes()) pixel = static_cast<std::uint8_t>(random.between(0, 255));
  return image;
}

std::string read_bytes(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

void write_bytes(const std::string& path, const std::string& bytes) { std::ofstream{path, std::ios::binary} << bytes; }

struct Format {
  int depth = 8;
  int colour = PNG_COLOR_TYPE_GRAY;
  int interlace = PNG_INTERLACE_NONE;
  bool transparent_gray = false;
  double gamma = 0;
};

/// A PNG of any format, all bytes of row y being y; libpng's own error handling ends the test program.
void write_format(const std::string& path, int width, int height, const Format& format) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_init_io(png, file);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), format.depth,
               format.colour, format.interlace, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  const std::vector<png_color> palette(256, png_color{1, 2, 3});
  if (format.colour == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, palette.data(), 1 << format.depth);
  const png_color_16 gray{.index = 0, .red = 0, .green = 0, .blue = 0, .gray = 5};
  if (format.transparent_gray) png_set_tRNS(png, info, nullptr, 0, &gray);
  if (format.gamma > 0) png_set_gAMA(png, info, format.gamma);
  png_write_info(png, info);
  const int passes = png_set_interlace_handling(png);
  for (int pass = 0; pass < passes; ++pass)
    for (int y = 0; y < height; ++y) {
      const std::vector<png_byte> row(png_get_rowbytes(png, info), static_cast<png_byte>(y));
      png_write_row(png, row.data());
    }
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  std::fclose(file);
}

/// The first row of a PNG as libpng reads it, byte for byte.
std::vector<png_byte> first_row(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_init_io(png, file);
  png_read_info(png, info);
  std::vector<png_byte> row(png_get_rowbytes(png, info));
  png_read_row(png, row.data(), nullptr);
  png_destroy_read_struct(&png, &info, nullptr);
  std::fclose(file);
  return row;
}

/// The checksum at the end of every chunk. @source PNG specification, annex D.
std::uint32_t crc(const std::string& bytes) {
  std::uint32_t remainder = 0xffffffff;
  for (const char byte : bytes) {
    remainder ^= static_cast<std::uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? 0xedb88320U : 0U);
  }
  return ~remainder;
}

std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>((number >> shift) & 0xff);
  return bytes;
}

/// The same file with another size in a header whose checksum is right. The header's chunk has its name at byte 12,
/// width and height at 16 and 20, its checksum at 29.
std::string with_size(std::string bytes, std::uint32_t width, std::uint32_t height) {
  bytes.replace(16, 8, big_endian(width) + big_endian(height));
  bytes.replace(29, 4, big_endian(crc(bytes.substr(12, 17))));
  return bytes;
}

void expect_png_refused(const std::string& path, const std::string& because) {
  const auto image = read_png(path);
  ASSERT_FALSE(image) << because;
  EXPECT_EQ(image.error().code, tutti::ErrorCode::InvalidInput);
  EXPECT_EQ(image.error().place.file, path);
  EXPECT_NE(image.error().text().find(because), std::string::npos) << image.error().text();
}

TEST(PngFile, ReadsBackWhatItWrote) {
  const TemporaryFolder folder;
  const auto path = folder.file("picture.png");
  for (const auto& [width, height] : {std::pair{1, 1}, {1, 300}, {300, 1}, {65, 47}, {256, 256}}) {
    for (const int bits : {8, 16}) {
      const GrayImage image = random_image(width, height, bits);
      ASSERT_TRUE(write_png(path, image));
      const auto read = read_png(path);
      ASSERT_TRUE(read) << read.error().text();
      EXPECT_EQ(*read, image);
    }
  }
}

// All bytes of row 3 are 3: the level is 3 * 256 + 3 = 771.
TEST(PngFile, ReadsSixteenBits) {
  const TemporaryFolder folder;
  const auto path = folder.file("deep.png");
  write_format(path, 5, 7, {.depth = 16});
  const auto image = read_png(path);
  ASSERT_TRUE(image) << image.error().text();
  EXPECT_EQ(image->bits(), 16);
  EXPECT_EQ(image->at(4, 3), 771);
}

// A PNG stores the high byte first: the levels 1 and 256 are the bytes 0, 1 and 1, 0.
TEST(PngFile, WritesTheHighByteFirst) {
  const TemporaryFolder folder;
  const auto path = folder.file("order.png");
  GrayImage order{2, 1, 16};
  order.set(0, 0, 1);
  order.set(1, 0, 256);
  ASSERT_TRUE(write_png(path, order));
  EXPECT_EQ(first_row(path), (std::vector<png_byte>{0, 1, 1, 0}));
}

TEST(PngFile, WritesTheSameBytesForTheSameImage) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_png(folder.file("a.png"), random_image(40, 30)));
  ASSERT_TRUE(write_png(folder.file("b.png"), random_image(40, 30)));
  EXPECT_EQ(read_bytes(folder.file("a.png")), read_bytes(folder.file("b.png")));
}

TEST(PngFile, ReadsInterlacedPictures) {
  const TemporaryFolder folder;
  const auto path = folder.file("interlaced.png");
  write_format(path, 11, 13, {.interlace = PNG_INTERLACE_ADAM7});
  const auto image = read_png(path);
  ASSERT_TRUE(image) << image.error().text();
  for (int y = 0; y < 13; ++y)
    for (int x = 0; x < 11; ++x) ASSERT_EQ(image->at(x, y), y);
}

// A file may say how its numbers become light; an inspection compares the numbers.
TEST(PngFile, LeavesPixelsAsTheyAreWhateverTheGamma) {
  const TemporaryFolder folder;
  const auto path = folder.file("gamma.png");
  write_format(path, 4, 200, {.gamma = 1.0});
  const auto image = read_png(path);
  ASSERT_TRUE(image) << image.error().text();
  for (int y = 0; y < 200; ++y) ASSERT_EQ(image->at(3, y), y);
}

TEST(PngFile, RefusesEveryOtherPixelFormat) {
  const TemporaryFolder folder;
  const auto path = folder.file("other.png");
  const auto expect = [&](const Format& format, const std::string& because) {
    write_format(path, 8, 8, format);
    expect_png_refused(path, because);
  };
  expect({.depth = 2}, "2-bit gray");
  expect({.depth = 1}, "1-bit gray");
  expect({.depth = 4}, "4-bit gray");
  expect({.colour = PNG_COLOR_TYPE_RGB}, "8-bit RGB;");
  expect({.colour = PNG_COLOR_TYPE_RGB_ALPHA}, "RGB with alpha");
  expect({.colour = PNG_COLOR_TYPE_GRAY_ALPHA}, "gray with alpha");
  expect({.colour = PNG_COLOR_TYPE_PALETTE}, "palette");
  expect({.transparent_gray = true}, "transparent");
}

TEST(PngFile, RefusesAFileThatIsCutOffAnywhere) {
  const TemporaryFolder folder;
  const auto path = folder.file("cut.png");
  ASSERT_TRUE(write_png(path, random_image(64, 48)));
  const std::string whole = read_bytes(path);
  for (std::size_t length = 0; length < whole.size(); length += 50) {
    write_bytes(path, whole.substr(0, length));
    expect_png_refused(path, "is no PNG, or a cut off or damaged one");
  }
  write_bytes(path, whole.substr(0, whole.size() - 1));
  expect_png_refused(path, "is no PNG, or a cut off or damaged one");
}

// Header, pixels and end are each guarded by a checksum, so one wrong byte anywhere is noticed.
TEST(PngFile, RefusesAFileWithAWrongByteAnywhere) {
  const TemporaryFolder folder;
  const auto path = folder.file("damaged.png");
  ASSERT_TRUE(write_png(path, random_image(64, 48)));
  const std::string whole = read_bytes(path);
  for (std::size_t at = 0; at < whole.size(); at += at < 100 ? 1 : 23) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x21);
    write_bytes(path, damaged);
    EXPECT_FALSE(read_png(path)) << "byte " << at;
  }
}

TEST(PngFile, DoesNotBelieveAHeaderThatClaimsMoreThanTheFileHas) {
  const TemporaryFolder folder;
  const auto path = folder.file("claim.png");
  ASSERT_TRUE(write_png(path, random_image(4, 4)));
  const std::string small = read_bytes(path);
  write_bytes(path, with_size(small, 4, 4));
  ASSERT_TRUE(read_png(path)) << "with_size keeps a file readable";

  write_bytes(path, with_size(small, 2'000'000'000, 2'000'000'000));
  expect_png_refused(path, "at most 65535 pixels a side");
  write_bytes(path, with_size(small, 65'535, 65'535));
  expect_png_refused(path, "65535 x 65535 pixels of 8 bits; at most 1024 MiB");
  write_bytes(path, with_size(small, 4, 1000));
  expect_png_refused(path, "damaged");
  write_bytes(path, with_size(small, 0, 4));
  expect_png_refused(path, "damaged");
}

TEST(PngFile, RefusesWhatIsNoPicture) {
  const TemporaryFolder folder;
  const auto path = folder.file("text.png");
  expect_png_refused(path, "no such file");
  write_bytes(path, "");
  expect_png_refused(path, "is no PNG");
  write_bytes(path, std::string(100'000, 'x'));
  expect_png_refused(path, "is no PNG");
  expect_png_refused(std::filesystem::path{path}.parent_path().string(), "no such file");
}

TEST(PngFile, SaysWhyItCannotWrite) {
  const TemporaryFolder folder;
  const auto nowhere = write_png(folder.file("no/such/folder.png"), random_image(4, 4));
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, tutti::ErrorCode::InvalidInput);
  EXPECT_FALSE(write_png(folder.file("empty.png"), GrayImage{}));
  EXPECT_FALSE(write_rgb_png(folder.file("empty.png"), {}, 4));
}

// /dev/full takes no byte: what a full disk does, small pictures fail only when the file is closed.
TEST(PngFile, NoticesAFullDisk) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "skipped: no /dev/full";
  for (const int side : {4, 256}) {
    const auto written = write_png("/dev/full", random_image(side, side));
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, tutti::ErrorCode::Machine);
  }
}

}  // namespace
}  // namespace wafer
