#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace wafer {

/// The pixels of a report that are not zero, in place of the report: a number of them, in 8 bytes, then a word for each
/// that there was room for, in any order. On GPUs and hosts that count from the lowest byte.
struct PixelList {
  static constexpr std::size_t kWord = sizeof(std::uint64_t);

  /// How many pixels a list of so many bytes holds.
  [[nodiscard]] static constexpr std::size_t room_in(std::size_t bytes) {
    return bytes < kWord ? 0 : bytes / kWord - 1;
  }
  /// The word of a pixel. @param at  its number in the part, below 2^48
  [[nodiscard]] static constexpr std::uint64_t word_of(std::uint64_t at, std::uint16_t level) {
    return at << 16 | level;
  }
  [[nodiscard]] static constexpr std::uint64_t place_in(std::uint64_t word) { return word >> 16; }
  [[nodiscard]] static constexpr std::uint16_t level_in(std::uint64_t word) {
    return static_cast<std::uint16_t>(word & 0xffffU);
  }
};

/// Lists the pixels of a report that are not zero: the second kernel of the inspection.
/// @param report  [n] of a part, as `die_compare` writes it
/// @param list    8 bytes or more, at a multiple of 8
/// @param bits    of a pixel, 8 or 16
void list_pixels(std::span<const std::uint8_t> report, std::span<std::uint8_t> list, int bits);

}  // namespace wafer
