#include "apps/wafer_inspection/png_file.hpp"

#include <array>
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

namespace wafer {

using tutti::Expected;
using tutti::internal::invalid_input;

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

bool read_rows(png_structp png, std::uint8_t* pixels, int width, int height) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  const int passes = png_set_interlace_handling(png);
  png_start_read_image(png);
  for (int pass = 0; pass < passes; ++pass)
    for (std::ptrdiff_t y = 0; y < height; ++y) png_read_row(png, pixels + y * width, nullptr);
  png_read_end(png, nullptr);  // also rejects a file that is cut off behind its last pixel
  return true;
}

bool write_rows(png_structp png, png_infop info, std::FILE* file, const std::uint8_t* pixels, int width, int height) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_init_io(png, file);
  // Noise hardly compresses, so the fastest level without a filter is enough.
  png_set_compression_level(png, 1);
  png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height), 8, PNG_COLOR_TYPE_GRAY,
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  for (std::ptrdiff_t y = 0; y < height; ++y) png_write_row(png, pixels + y * width);
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

/// Checks the header against the declared size and format; the error names the difference.
Expected<void> check_header(const PngReader& reader, const std::string& path, int width, int height) {
  const auto has_width = png_get_image_width(reader.png(), reader.info());
  const auto has_height = png_get_image_height(reader.png(), reader.info());
  const int depth = png_get_bit_depth(reader.png(), reader.info());
  const int colour = png_get_color_type(reader.png(), reader.info());
  if (depth != 8 || colour != PNG_COLOR_TYPE_GRAY)
    return refused(path, fmt::format("the picture is {}-bit {}; 8-bit gray is needed", depth, colour_name(colour)));
  if (png_get_valid(reader.png(), reader.info(), PNG_INFO_tRNS) != 0)
    return refused(path, "the picture declares a transparent gray; 8-bit gray without transparency is needed");
  if (std::cmp_not_equal(has_width, width) || std::cmp_not_equal(has_height, height))
    return refused(path, fmt::format("the picture has {} x {} pixels; {} x {} are declared", has_width, has_height,
                                     width, height));
  return {};
}

Expected<File> open_for_reading(const std::string& path) {
  std::error_code status;
  // Reading a pipe or a device might never end.
  if (!std::filesystem::is_regular_file(path, status))
    return refused(path, "there is no such file; give the path of an 8-bit grayscale PNG");
  File file{std::fopen(path.c_str(), "rb")};
  if (!file)
    return refused(path, fmt::format("cannot be opened ({}); give a file that may be read", std::strerror(errno)));
  return file;
}

tl::unexpected<tutti::Error> damaged(const std::string& path, const Complaint& complaint) {
  return refused(path,
                 fmt::format("is no PNG, or a cut off or damaged one (libpng: {}); a whole 8-bit grayscale PNG of "
                             "at most {} x {} pixels is needed",
                             complaint.text.data(), max_image_side, max_image_side));
}

}  // namespace

Expected<GrayImage> read_png(const std::string& path, int width, int height) {
  if (width < 1 || height < 1 || width > max_image_side || height > max_image_side)
    return refused(path,
                   fmt::format("declared as {} x {} pixels; each side is 1 to {}", width, height, max_image_side));
  const auto file = open_for_reading(path);
  if (!file) return tl::unexpected(file.error());

  Complaint complaint;
  const PngReader reader{complaint};
  if (!reader.ready()) return tutti::internal::machine_error("libpng cannot be started; free some memory");
  if (!read_header(reader.png(), reader.info(), file->get())) return damaged(path, complaint);
  if (const auto fine = check_header(reader, path, width, height); !fine) return tl::unexpected(fine.error());

  GrayImage image{width, height};
  if (!read_rows(reader.png(), image.pixels().data(), width, height)) return damaged(path, complaint);
  return image;
}

Expected<void> write_png(const std::string& path, const GrayImage& image) {
  if (image.width() < 1 || image.height() < 1 || image.width() > max_image_side || image.height() > max_image_side)
    return refused(path, fmt::format("an image of {} x {} pixels is not written; each side is 1 to {}", image.width(),
                                     image.height(), max_image_side));
  File file{std::fopen(path.c_str(), "wb")};
  if (!file) return refused(path, fmt::format("cannot be written ({}); give a path that may be", std::strerror(errno)));

  Complaint complaint;
  const PngWriter writer{complaint};
  if (!writer.ready()) return tutti::internal::machine_error("libpng cannot be started; free some memory");
  const bool written =
      write_rows(writer.png(), writer.info(), file.get(), image.pixels().data(), image.width(), image.height());
  // fclose writes the last bytes, so a full disk may show only there.
  const bool closed = std::fclose(file.release()) == 0;
  if (!written || !closed)
    return tutti::internal::machine_error(
        fmt::format("{}: the picture cannot be written to its end ({}); make room on the disk", path,
                    written ? "write error" : complaint.text.data()));
  return {};
}

}  // namespace wafer
