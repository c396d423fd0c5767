#include "apps/wafer_inspection/tiff_file.hpp"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <tiffio.h>

#include "apps/wafer_inspection/errors.hpp"

namespace wafer {

using tutti::Expected;

namespace {

/// The first error message of libtiff about one file.
struct TiffComplaint {
  std::array<char, 128> text{};
};

int keep_error(TIFF*, void* user, const char*, const char* format, va_list values) {
  auto& complaint = *static_cast<TiffComplaint*>(user);
  if (complaint.text[0] != '\0') return 1;
  std::vsnprintf(complaint.text.data(), complaint.text.size(), format, values);
  std::ranges::replace(complaint.text, '\n', ' ');  // of several lines one sentence
  return 1;                                         // nothing is printed
}

int drop_warning(TIFF*, void*, const char*, const char*, va_list) { return 1; }

struct CloseTiff {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};
using Tiff = std::unique_ptr<TIFF, CloseTiff>;

Tiff open_tiff(const std::string& path, TiffComplaint& complaint) {
  const std::unique_ptr<TIFFOpenOptions, decltype(&TIFFOpenOptionsFree)> options{TIFFOpenOptionsAlloc(),
                                                                                 &TIFFOpenOptionsFree};
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), keep_error, &complaint);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), drop_warning, nullptr);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), max_image_bytes);
  // "m": not mapped into memory, where a file that shrinks while it is read would end the program.
  return Tiff{TIFFOpenExt(path.c_str(), "rm", options.get())};
}

tl::unexpected<tutti::Error> not_read(const std::string& path, std::string message) {
  return invalid_input(std::move(message), {.file = path});
}

tl::unexpected<tutti::Error> damaged_tiff(const std::string& path, const TiffComplaint& complaint) {
  return not_read(path,
                  fmt::format("is no TIFF, or a cut off or damaged one (libtiff: {}); a whole grayscale TIFF of "
                              "at most {} pixels a side is needed",
                              complaint.text[0] != '\0' ? complaint.text.data() : "no such data", max_image_side));
}

template <class Value>
Value field(TIFF* tiff, std::uint32_t tag, Value absent) {
  Value value = absent;
  return TIFFGetFieldDefaulted(tiff, tag, &value) == 1 ? value : absent;
}

/// What about the header's format is not read, or nothing.
std::optional<std::string> unread_format(TIFF* tiff) {
  const auto bits = field<std::uint16_t>(tiff, TIFFTAG_BITSPERSAMPLE, 1);
  const auto samples = field<std::uint16_t>(tiff, TIFFTAG_SAMPLESPERPIXEL, 1);
  const auto photometric = field<std::uint16_t>(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
  const auto compression = field<std::uint16_t>(tiff, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
  if (photometric == PHOTOMETRIC_PALETTE) return "the picture has a palette; 8- or 16-bit gray is needed";
  if (photometric == PHOTOMETRIC_MINISWHITE) return "the picture has 0 for white; gray with 0 for black is needed";
  if (photometric != PHOTOMETRIC_MINISBLACK || samples != 1)
    return fmt::format("the picture has {} samples a pixel; one, of gray, is needed", samples);
  if (bits != 8 && bits != 16) return fmt::format("the picture is {}-bit gray; 8- or 16-bit gray is needed", bits);
  if (field<std::uint16_t>(tiff, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT) != SAMPLEFORMAT_UINT)
    return "the picture has signed or floating-point samples; whole numbers from 0 are needed";
  if (field<std::uint16_t>(tiff, TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT) != ORIENTATION_TOPLEFT)
    return "the picture is stored turned or mirrored; its rows are needed from the top, each from the left";
  if (TIFFIsCODECConfigured(compression) == 0)
    return fmt::format("the compression {} is not one that libtiff has here; write the picture without", compression);
  if (TIFFLastDirectory(tiff) == 0) return "the file has several pages; one picture a file is needed";
  return std::nullopt;
}

/// An empty picture of the size and depth that the header declares; the error names what is not read.
Expected<GrayImage> image_of_header(TIFF* tiff, const std::string& path) {
  if (const auto unread = unread_format(tiff)) return not_read(path, *unread);
  const auto width = field<std::uint32_t>(tiff, TIFFTAG_IMAGEWIDTH, 0);
  const auto height = field<std::uint32_t>(tiff, TIFFTAG_IMAGELENGTH, 0);
  const int bits = field<std::uint16_t>(tiff, TIFFTAG_BITSPERSAMPLE, 8);
  const auto is_side = [](std::uint32_t side) { return side >= 1 && std::cmp_less_equal(side, max_image_side); };
  if (!is_side(width) || !is_side(height) || std::int64_t{width} * height * bits / 8 > max_image_bytes)
    return not_read(path,
                    fmt::format("the picture has {} x {} pixels of {} bits; 1 to {} a side and at most {} MiB are "
                                "read",
                                width, height, bits, max_image_side, max_image_bytes >> 20));
  return GrayImage{static_cast<int>(width), static_cast<int>(height), bits};
}

bool read_strips(TIFF* tiff, GrayImage& image) {
  const auto rows_per_strip = field<std::uint32_t>(tiff, TIFFTAG_ROWSPERSTRIP, 0);
  if (rows_per_strip == 0 || std::cmp_not_equal(TIFFScanlineSize(tiff), image.row_bytes())) return false;
  const auto rows = static_cast<int>(std::min(rows_per_strip, static_cast<std::uint32_t>(image.height())));
  std::uint32_t strip = 0;
  for (int y = 0; y < image.height(); y += rows, ++strip) {
    const auto bytes = static_cast<tmsize_t>(image.row_bytes()) * std::min(rows, image.height() - y);
    if (TIFFReadEncodedStrip(tiff, strip, image.row(y).data(), bytes) != bytes) return false;
  }
  return true;
}

bool read_tiles(TIFF* tiff, GrayImage& image) {
  const auto width = field<std::uint32_t>(tiff, TIFFTAG_TILEWIDTH, 0);
  const auto height = field<std::uint32_t>(tiff, TIFFTAG_TILELENGTH, 0);
  const tmsize_t bytes = TIFFTileSize(tiff);
  if (width == 0 || height == 0 || bytes <= 0 || bytes > max_image_bytes) return false;
  if (std::cmp_greater(std::max(width, height), max_image_side)) return false;
  const std::size_t row_bytes = std::size_t{width} * static_cast<std::size_t>(image.bytes_per_pixel());
  if (std::cmp_not_equal(bytes, row_bytes * height)) return false;

  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(bytes));
  const auto tile_rows = static_cast<int>(height);
  std::uint32_t tile = 0;
  for (int top = 0; top < image.height(); top += tile_rows)
    for (std::size_t left = 0; left < image.row_bytes(); left += row_bytes, ++tile) {
      if (TIFFReadEncodedTile(tiff, tile, pixels.data(), bytes) != bytes) return false;
      const std::size_t inside = std::min(row_bytes, image.row_bytes() - left);
      for (int y = 0; y < std::min(tile_rows, image.height() - top); ++y)
        std::copy_n(pixels.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(y) * row_bytes), inside,
                    image.row(top + y).begin() + static_cast<std::ptrdiff_t>(left));
    }
  return true;
}

}  // namespace

Expected<GrayImage> read_tiff(const std::string& path) {
  std::error_code status;
  // Reading a pipe or a device might never end.
  if (!std::filesystem::is_regular_file(path, status))
    return not_read(path, "there is no such file; give the path of a grayscale TIFF");
  TiffComplaint complaint;
  const Tiff tiff = open_tiff(path, complaint);
  if (!tiff) return damaged_tiff(path, complaint);
  auto image = image_of_header(tiff.get(), path);
  if (!image) return image;
  const bool read = TIFFIsTiled(tiff.get()) != 0 ? read_tiles(tiff.get(), *image) : read_strips(tiff.get(), *image);
  if (!read) return damaged_tiff(path, complaint);
  return image;
}

}  // namespace wafer
