#include "apps/wafer_inspection/tiff_file.hpp"

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <tiffio.h>

#include "apps/wafer_inspection/random.hpp"
#include "tests/apps/temporary_folder.hpp"

namespace wafer {
namespace {

GrayImage noise(int width, int height, int bits) {
  GrayImage image{width, height, bits};
  Random random{7};
  for (auto& byte : image.bytes()) byte = static_cast<std::uint8_t>(random.next());
  return image;
}

/// How a TIFF is written: libtiff's own words for everything.
struct Layout {
  const char* mode = "w";  // "wl" low byte first, "wb" high byte first, "w8" BigTIFF
  int compression = COMPRESSION_NONE;
  int rows_per_strip = 5;
  int tile = 0;  // side of a tile; 0: strips
};

void set_format(TIFF* tiff, const GrayImage& image) {
  TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, image.width());
  TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, image.height());
  TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, image.bits());
  TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 1);
  TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
}

void write_tiles(TIFF* tiff, const GrayImage& image, int side) {
  const auto tile_row = static_cast<std::size_t>(side * image.bytes_per_pixel());
  std::vector<std::uint8_t> tile(tile_row * static_cast<std::size_t>(side));
  for (int top = 0; top < image.height(); top += side)
    for (int left = 0; left < image.width(); left += side) {
      for (int y = top; y < std::min(top + side, image.height()); ++y) {
        const auto row = image.row(y).subspan(static_cast<std::size_t>(left * image.bytes_per_pixel()));
        std::copy_n(row.begin(), std::min(row.size(), tile_row),
                    tile.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(y - top) * tile_row));
      }
      TIFFWriteTile(tiff, tile.data(), static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(top), 0, 0);
    }
}

/// Writes a picture; `change` may set other fields before its pixels.
void write_tiff(const std::string& path, const GrayImage& image, const Layout& layout,
                const std::function<void(TIFF*)>& change = {}) {
  TIFF* tiff = TIFFOpen(path.c_str(), layout.mode);
  ASSERT_NE(tiff, nullptr);
  set_format(tiff, image);
  TIFFSetField(tiff, TIFFTAG_COMPRESSION, layout.compression);
  if (change) change(tiff);
  if (layout.tile > 0) {
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, layout.tile);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, layout.tile);
    write_tiles(tiff, image, layout.tile);
  } else {
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, layout.rows_per_strip);
    std::vector<std::uint8_t> row(static_cast<std::size_t>(TIFFScanlineSize(tiff)));
    for (int y = 0; y < image.height(); ++y) {
      std::copy_n(image.row(y).begin(), std::min(row.size(), image.row_bytes()), row.begin());
      TIFFWriteScanline(tiff, row.data(), static_cast<std::uint32_t>(y));
    }
  }
  TIFFClose(tiff);
}

std::string bytes_of_file(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

void write_file(const std::string& path, const std::string& bytes) { std::ofstream{path, std::ios::binary} << bytes; }

void expect_not_read(const std::string& path, const std::string& because) {
  const auto image = read_tiff(path);
  ASSERT_FALSE(image) << because;
  EXPECT_EQ(image.error().code, tutti::ErrorCode::InvalidInput);
  EXPECT_EQ(image.error().place.file, path);
  EXPECT_NE(image.error().text().find(because), std::string::npos) << image.error().text();
  EXPECT_NE(image.error().message.find("; "), std::string::npos) << "no remedy: " << image.error().message;
}

TEST(TiffFile, ReadsStripsAndTilesOfBothDepths) {
  const TemporaryFolder folder;
  const auto path = folder.file("picture.tif");
  for (const int bits : {8, 16})
    for (const char* mode : {"wl", "wb", "w8"})
      for (const int compression : {COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_PACKBITS, COMPRESSION_ADOBE_DEFLATE})
        for (const int tile : {0, 16, 64})
          for (const auto& [width, height] : {std::pair{37, 23}, {16, 32}, {1, 70}, {70, 1}}) {
            const GrayImage image = noise(width, height, bits);
            write_tiff(path, image, {.mode = mode, .compression = compression, .tile = tile});
            const auto read = read_tiff(path);
            ASSERT_TRUE(read) << read.error().text();
            ASSERT_EQ(*read, image) << bits << " bits, " << mode << ", compression " << compression << ", tile "
                                    << tile;
          }
}

TEST(TiffFile, ReadsAnyNumberOfRowsAStrip) {
  const TemporaryFolder folder;
  const auto path = folder.file("picture.tif");
  const GrayImage image = noise(20, 30, 16);
  for (const int rows : {1, 7, 30, 1000}) {
    write_tiff(path, image, {.rows_per_strip = rows});
    EXPECT_EQ(read_tiff(path).value(), image) << rows;
  }
}

TEST(TiffFile, SaysWhatItDoesNotRead) {
  const TemporaryFolder folder;
  const auto path = folder.file("other.tif");
  const GrayImage image = noise(8, 8, 8);
  const auto expect = [&](const std::string& because, const std::function<void(TIFF*)>& change) {
    write_tiff(path, image, {}, change);
    expect_not_read(path, because);
  };
  expect("1-bit gray", [](TIFF* tiff) { TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 1); });
  expect("32-bit gray", [](TIFF* tiff) { TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 32); });
  expect("12-bit gray", [](TIFF* tiff) { TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 12); });
  expect("3 samples a pixel", [](TIFF* tiff) {
    TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 3);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
  });
  expect("2 samples a pixel", [](TIFF* tiff) { TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 2); });
  expect("0 for white", [](TIFF* tiff) { TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISWHITE); });
  expect("a palette", [](TIFF* tiff) {
    static std::uint16_t colours[256] = {};
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_PALETTE);
    TIFFSetField(tiff, TIFFTAG_COLORMAP, colours, colours, colours);
  });
  expect("signed or floating-point", [](TIFF* tiff) { TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_INT); });
  expect("turned or mirrored", [](TIFF* tiff) { TIFFSetField(tiff, TIFFTAG_ORIENTATION, ORIENTATION_BOTLEFT); });

  write_tiff(path, image, {});
  write_tiff(path, image, {.mode = "a"});
  expect_not_read(path, "several pages");
}

// A header alone can claim any size.
TEST(TiffFile, DoesNotBelieveAHeaderThatClaimsMoreThanTheFileHas) {
  const TemporaryFolder folder;
  const auto path = folder.file("claim.tif");
  const auto claim = [&](int width, int height) {
    write_tiff(path, noise(4, 4, 8), {}, [&](TIFF* tiff) {
      TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, width);
      TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, height);
    });
  };
  claim(65'536, 4);
  expect_not_read(path, "1 to 65535 a side");
  claim(65'535, 65'535);
  expect_not_read(path, "at most 1024 MiB");
}

TEST(TiffFile, RefusesWhatIsNoTiff) {
  const TemporaryFolder folder;
  const auto path = folder.file("text.tif");
  expect_not_read(path, "no such file");
  expect_not_read(folder.file(""), "no such file");
  for (const std::string& bytes : {std::string{}, std::string{"II"}, std::string{"II*\0", 4}, std::string(1000, 'x')}) {
    write_file(path, bytes);
    expect_not_read(path, "is no TIFF");
  }
}

TEST(TiffFile, RefusesAFileThatIsCutOffAnywhere) {
  const TemporaryFolder folder;
  const auto path = folder.file("cut.tif");
  for (const int tile : {0, 16}) {
    write_tiff(path, noise(40, 30, 16), {.tile = tile});
    const std::string whole = bytes_of_file(path);
    for (std::size_t length = 0; length < whole.size(); length += 13) {
      write_file(path, whole.substr(0, length));
      expect_not_read(path, "");
    }
  }
}

// Damage anywhere gives a picture or a sentence, and nothing else: pixels without compression have no checksum.
TEST(TiffFile, SurvivesAnyDamage) {
  const TemporaryFolder folder;
  const auto path = folder.file("damaged.tif");
  Random random{2024};
  int refused = 0;
  for (const Layout& layout : {Layout{}, Layout{.mode = "wb", .compression = COMPRESSION_LZW},
                               Layout{.mode = "w8", .compression = COMPRESSION_ADOBE_DEFLATE, .tile = 16},
                               Layout{.compression = COMPRESSION_PACKBITS, .tile = 32}}) {
    write_tiff(path, noise(40, 30, 16), layout);
    const std::string whole = bytes_of_file(path);
    for (int round = 0; round < 500; ++round) {
      std::string damaged = whole;
      for (int flips = random.between(1, 6); flips > 0; --flips) {
        // The directory is behind the pixels: every second flip goes there or into the header.
        const int size = static_cast<int>(damaged.size());
        const int at = random.one_in(2) ? random.between(0, size - 1) : (random.between(0, 215) + size - 200) % size;
        damaged[static_cast<std::size_t>(at)] = static_cast<char>(random.next());
      }
      if (random.one_in(4)) damaged.resize(static_cast<std::size_t>(random.between(0, static_cast<int>(whole.size()))));
      write_file(path, damaged);
      const auto image = read_tiff(path);
      if (image) continue;
      ++refused;
      EXPECT_EQ(image.error().place.file, path);
      EXPECT_EQ(image.error().code, tutti::ErrorCode::InvalidInput);
    }
  }
  EXPECT_GT(refused, 500) << "the damage reaches what the reader checks";
}

}  // namespace
}  // namespace wafer
