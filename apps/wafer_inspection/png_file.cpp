#include "apps/wafer_inspection/png_file.hpp"

#include <array>
#include <bit>
#include <cerrno>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <png.h>

#include "apps/output_file.hpp"
#include "apps/wafer_inspection/errors.hpp"

namespace wafer {

using tutti::Expected;

namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

/// The error message of libpng before its longjmp; plain bytes, since a jump runs no destructor.
struct Complaint {
  std::array<char, 128> text{};
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto& complaint = *static_cast<Complaint*>(png_get_error_ptr(png));
  std::snprintf(complaint.text.data(), complaint.text.size(), "%s", message);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

/// Owns libpng's pair of structs for reading.
class PngReader {
 public:
  explicit PngReader(Complaint& complaint)
      : png_{png_create_read_struct(PNG_LIBPNG_VER_STRING, &complaint, on_error, on_warning)},
        info_{png_ != nullptr ? png_create_info_struct(png_) : nullptr} {}
  PngReader(const PngReader&) = delete;  // one owner: libpng's structs cannot be copied
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }

  [[nodiscard]] bool ready() const { return info_ != nullptr; }
  [[nodiscard]] png_structp png() const { return png_; }
  [[nodiscard]] png_infop info() const { return info_; }

 private:
  png_structp png_;
  png_infop info_;
};

/// Owns libpng's pair of structs for writing.
class PngWriter {
 public:
  explicit PngWriter(Complaint& complaint)
      : png_{png_create_write_struct(PNG_LIBPNG_VER_STRING, &complaint, on_error, on_warning)},
        info_{png_ != nullptr ? png_create_info_struct(png_) : nullptr} {}
  PngWriter(const PngWriter&) = delete;  // one owner: libpng's structs cannot be copied
  PngWriter& operator=(const PngWriter&) = delete;
  ~PngWriter() { png_destroy_write_struct(&png_, &info_); }

  [[nodiscard]] bool ready() const { return info_ != nullptr; }
  [[nodiscard]] png_structp png() const { return png_; }
  [[nodiscard]] png_infop info() const { return info_; }

 private:
  png_structp png_;
  png_infop info_;
};

// libpng jumps out of the next three functions on an error: they hold no object with a destructor, and no local that
// they changed is read after the jump.

bool read_header(png_structp png, png_infop info, std::FILE* file) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_init_io(png, file);
  png_set_user_limits(png, max_image_side, max_image_side);
  png_set_chunk_malloc_max(png, 1 << 20);  // for text and profiles beside the picture
  png_read_info(png, info);
  return true;
}

bool read_rows(png_structp png, std::uint8_t* pixels, std::size_t row_bytes, int height, int bits) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  if (bits == 16 && std::endian::native == std::endian::little) png_set_swap(png);
  const int passes = png_set_interlace_handling(png);
  png_start_read_image(png);
  for (int pass = 0; pass < passes; ++pass)
    for (int y = 0; y < height; ++y) png_read_row(png, pixels + static_cast<std::size_t>(y) * row_bytes, nullptr);
  png_read_end(png, nullptr);  // also rejects a file that is cut off behind its last pixel
  return true;
}

/// Pixels to write, as libpng wants them described.
struct Raster {
  const std::uint8_t* pixels;
  std::size_t row_bytes;
  int width;
  int height;
  int bits;
  int colour;
};

bool write_rows(png_structp png, png_infop info, std::FILE* file, const Raster& raster) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_init_io(png, file);
  // Noise hardly compresses, so the fastest level without a filter is enough.
  png_set_compression_level(png, 1);
  png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
  png_set_IHDR(png, info, static_cast<png_uint_32>(raster.width), static_cast<png_uint_32>(raster.height), raster.bits,
               raster.colour, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  if (raster.bits == 16 && std::endian::native == std::endian::little) png_set_swap(png);
  for (int y = 0; y < raster.height; ++y)
    png_write_row(png, raster.pixels + static_cast<std::size_t>(y) * raster.row_bytes);
  png_write_end(png, nullptr);
  return true;
}

tl::unexpected<tutti::Error> refused(const std::string& path, std::string message) {
  return invalid_input(std::move(message), {.file = path});
}

std::string_view colour_name(int colour_type) {
  switch (colour_type) {
    case PNG_COLOR_TYPE_GRAY: return "gray";
    case PNG_COLOR_TYPE_GRAY_ALPHA: return "gray with alpha";
    case PNG_COLOR_TYPE_RGB: return "RGB";
    case PNG_COLOR_TYPE_RGB_ALPHA: return "RGB with alpha";
    case PNG_COLOR_TYPE_PALETTE: return "palette";
    default: return "unknown";
  }
}

/// An empty picture of the size and depth that the header declares; the error names what is not read.
Expected<GrayImage> image_of_header(const PngReader& reader, const std::string& path) {
  const auto width = png_get_image_width(reader.png(), reader.info());
  const auto height = png_get_image_height(reader.png(), reader.info());
  const int bits = png_get_bit_depth(reader.png(), reader.info());
  const int colour = png_get_color_type(reader.png(), reader.info());
  if ((bits != 8 && bits != 16) || colour != PNG_COLOR_TYPE_GRAY)
    return refused(path,
                   fmt::format("the picture is {}-bit {}; 8- or 16-bit gray is needed", bits, colour_name(colour)));
  if (png_get_valid(reader.png(), reader.info(), PNG_INFO_tRNS) != 0)
    return refused(path, "the picture declares a transparent gray; gray without transparency is needed");
  if (std::int64_t{width} * height * bits / 8 > max_image_bytes)
    return refused(path, fmt::format("the picture has {} x {} pixels of {} bits; at most {} MiB are read", width,
                                     height, bits, max_image_bytes >> 20));
  return GrayImage{static_cast<int>(width), static_cast<int>(height), bits};
}

Expected<File> open_for_reading(const std::string& path) {
  std::error_code status;
  // Reading a pipe or a device might never end.
  if (!std::filesystem::is_regular_file(path, status))
    return refused(path, "there is no such file; give the path of a grayscale PNG");
  File file{std::fopen(path.c_str(), "rb")};
  if (!file)
    return refused(path, fmt::format("cannot be opened ({}); give a file that may be read", std::strerror(errno)));
  return file;
}

tl::unexpected<tutti::Error> damaged(const std::string& path, const Complaint& complaint) {
  return refused(path,
                 fmt::format("is no PNG, or a cut off or damaged one (libpng: {}); a whole grayscale PNG of at most {} "
                             "pixels a side is needed",
                             complaint.text.data(), max_image_side));
}

Expected<void> write(const std::string& path, const Raster& raster) {
  if (raster.width < 1 || raster.height < 1 || raster.width > max_image_side || raster.height > max_image_side)
    return refused(path, fmt::format("an image of {} x {} pixels is not written; each side is 1 to {}", raster.width,
                                     raster.height, max_image_side));
  return tutti::programs::write_file_silently(path, [&](std::FILE* file) -> Expected<void> {
    Complaint complaint;
    const PngWriter writer{complaint};
    if (!writer.ready()) return machine_error("libpng cannot be started; free some memory");
    if (!write_rows(writer.png(), writer.info(), file, raster))
      return machine_error(fmt::format("{}: the picture cannot be written to its end ({}); make room on the disk", path,
                                       complaint.text.data()));
    return {};
  });
}

}  // namespace

Expected<GrayImage> read_png(const std::string& path) {
  const auto file = open_for_reading(path);
  if (!file) return tl::unexpected(file.error());

  Complaint complaint;
  const PngReader reader{complaint};
  if (!reader.ready()) return machine_error("libpng cannot be started; free some memory");
  if (!read_header(reader.png(), reader.info(), file->get())) return damaged(path, complaint);
  auto image = image_of_header(reader, path);
  if (!image) return image;
  if (!read_rows(reader.png(), image->bytes().data(), image->row_bytes(), image->height(), image->bits()))
    return damaged(path, complaint);
  return image;
}

Expected<void> write_png(const std::string& path, const GrayImage& image) {
  return write(path, {image.bytes().data(), image.row_bytes(), image.width(), image.height(), image.bits(),
                      PNG_COLOR_TYPE_GRAY});
}

Expected<void> write_rgb_png(const std::string& path, std::span<const std::uint8_t> rgb, int width) {
  WAFER_EXPECTS(width >= 1 && rgb.size() % (3 * static_cast<std::size_t>(width)) == 0, "a picture has whole rows");
  const std::size_t row_bytes = 3 * static_cast<std::size_t>(width);
  return write(path, {rgb.data(), row_bytes, width, static_cast<int>(rgb.size() / row_bytes), 8, PNG_COLOR_TYPE_RGB});
}

}  // namespace wafer
