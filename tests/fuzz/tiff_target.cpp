// A TIFF: read.
#include <cstdint>

#include <tiffio.h>

#include "apps/wafer_inspection/tiff_file.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "tests/fuzz/picture.hpp"
#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {
namespace {

/// Whether the picture's header declares more than is read here.
bool is_large(const std::string& path) {
  TIFFSetErrorHandler(nullptr);
  TIFFSetWarningHandler(nullptr);
  TIFF* const tiff = TIFFOpen(path.c_str(), "rm");
  if (tiff == nullptr) return false;
  std::uint32_t width = 0, height = 0;
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
  TIFFClose(tiff);
  return std::uint64_t{width} * height > kMostPixels;
}

}  // namespace

bool takes_tiff(std::string_view bytes) {
  const MemoryFile file(bytes);
  if (is_large(file.path())) return false;
  return look_at(wafer::read_tiff(file.path()), file.path());
}

}  // namespace tutti::internal::fuzz
