#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "apps/wafer_inspection/die_compare.hpp"

namespace wafer {

/// What a pixel that differs shows beside the dies that it is compared with.
enum class PixelClass : std::uint8_t { Bright, Dark };

/// The pixels of a report that are not zero, with their classes, in place of the report: a number of them, in 8 bytes,
/// then a word for each that there was room for, in any order. On GPUs and hosts that count from the lowest byte.
struct PixelList {
  static constexpr std::size_t kWord = sizeof(std::uint64_t);

  /// How many pixels a list of so many bytes holds.
  [[nodiscard]] static constexpr std::size_t room_in(std::size_t bytes) {
    return bytes < kWord ? 0 : bytes / kWord - 1;
  }
  /// The word of a pixel. @param at  its number in the part, below 2^44
  [[nodiscard]] static constexpr std::uint64_t word_of(std::uint64_t at, std::uint16_t level, PixelClass shown) {
    return at << 20 | static_cast<std::uint64_t>(shown) << 16 | level;
  }
  [[nodiscard]] static constexpr std::uint64_t place_in(std::uint64_t word) { return word >> 20; }
  [[nodiscard]] static constexpr PixelClass class_in(std::uint64_t word) {
    return static_cast<PixelClass>(word >> 16 & 0xfU);
  }
  [[nodiscard]] static constexpr std::uint16_t level_in(std::uint64_t word) {
    return static_cast<std::uint16_t>(word & 0xffffU);
  }
};

/// The class of a pixel that differs: it lies above both of its counterparts, or below both.
/// @param pixels  of the part
/// @param shifts  as of `counterparts_at`
template <class Pixel>
[[nodiscard]] constexpr PixelClass class_of(const Pixel* pixels, std::size_t at, int die_rows,
                                            const DieComparison& dies, const Shift* shifts) {
  const Pixel* const pixel = pixels + at;
  return *pixel < pixel[counterparts_at(at, die_rows, dies, shifts).one] ? PixelClass::Dark : PixelClass::Bright;
}

/// Lists the pixels of a report that are not zero, with their classes: the last kernel of the inspection.
/// @param report  [n] of a part, as `die_compare` writes it
/// @param part    [n] of which it is
/// @param shifts  with which it was compared; empty: none
/// @param list    8 bytes or more, at a multiple of 8
/// @pre `is_comparable(n, comparison)`
void classify(std::span<const std::uint8_t> report, std::span<const std::uint8_t> part, std::span<const Shift> shifts,
              std::span<std::uint8_t> list, const DieComparison& comparison);

}  // namespace wafer
