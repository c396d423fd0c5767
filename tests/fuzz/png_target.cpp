// A PNG: read as it stands, and with the checksums of its chunks set right, which no fuzzer guesses.
#include <cstdint>

#include <zlib.h>

#include "apps/wafer_inspection/png_file.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "tests/fuzz/picture.hpp"
#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {
namespace {

constexpr std::size_t kSignature = 8;
constexpr std::size_t kBesideData = 12;  // of a chunk: length, type, checksum

/// A number as PNG writes it.
std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
  return number;
}

std::string with_checksums(std::string bytes) {
  for (std::size_t at = kSignature; bytes.size() >= at + kBesideData;) {
    const std::size_t length = number_at(bytes, at);
    if (length > bytes.size() - at - kBesideData) break;
    const auto* checked = reinterpret_cast<const Bytef*>(bytes.data() + at + 4);
    const auto crc = static_cast<std::uint32_t>(crc32(0, checked, static_cast<uInt>(length + 4)));
    for (std::size_t i = 0; i < 4; ++i) bytes[at + length + 8 + i] = static_cast<char>(crc >> (24 - 8 * i));
    at += length + kBesideData;
  }
  return bytes;
}

bool has_large_header(std::string_view bytes) {
  constexpr std::size_t kWidthAt = 16, kHeightAt = 20;  // in the header, which is the first chunk
  return bytes.size() >= kHeightAt + 4 &&
         std::uint64_t{number_at(bytes, kWidthAt)} * number_at(bytes, kHeightAt) > kMostPixels;
}

bool read(std::string_view bytes) {
  const MemoryFile file(bytes);
  return look_at(wafer::read_png(file.path()), file.path());
}

}  // namespace

bool takes_png(std::string_view bytes) {
  if (has_large_header(bytes)) return false;
  const bool is_picture = read(bytes);
  if (!is_picture) read(with_checksums(std::string(bytes)));
  return is_picture;
}

}  // namespace tutti::internal::fuzz
