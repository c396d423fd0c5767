#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "apps/wafer_inspection/box.hpp"
#include "apps/wafer_inspection/gray_image.hpp"

namespace wafer {

/// One connected patch of a report.
struct FoundDefect {
  Box box = {};
  std::int64_t area = 0;       ///< px that are not zero
  std::uint16_t peak = 0;      ///< the strongest of them, gray levels above the threshold
  std::int64_t dark_area = 0;  ///< px of them that are known to be darker than other dies

  friend bool operator==(const FoundDefect&, const FoundDefect&) = default;
};

/// Patches with at most this many pixels between them are one: noise may tear a thin scratch.
inline constexpr int default_gap = 1;

/// The connected patches of a report, in the order of their first pixels.
///
/// Two pixels belong together where at most `gap` others stand between them, diagonals included (0: 8-connected).
/// A report is nearly always clean, so clean stretches are skipped at memory speed, without allocation.
///
/// @pre  gap >= 0.
[[nodiscard]] std::vector<FoundDefect> find_defects(const GrayImage& report, int gap = default_gap);

/// A pixel of a report that is not zero.
struct DirtyPixel {
  int x = 0, y = 0;
  std::uint16_t level = 0;  ///< above the threshold
  bool is_dark = false;     ///< darker than other dies

  friend bool operator==(const DirtyPixel&, const DirtyPixel&) = default;
};

/// The patches of a report of which only these pixels are known, each once and in any order.
[[nodiscard]] std::vector<FoundDefect> find_defects(std::vector<DirtyPixel> pixels, int gap = default_gap);

/// The score of an inspection, as indices into the compared lists of planted and found defects.
struct Score {
  std::vector<std::size_t> hit = {};           ///< of the planted ones
  std::vector<std::size_t> missed = {};        ///< of the planted ones
  std::vector<std::size_t> false_alarms = {};  ///< of the found ones

  friend bool operator==(const Score&, const Score&) = default;
};

/// Whether a planted and a found box are the same defect: they share more than half of the area that they cover
/// together.
///
/// With this limit, one find matches at most one of several planted boxes that do not overlap, and one planted box at
/// most one of several finds.
[[nodiscard]] bool is_same_defect(const Box& planted, const Box& found);

/// Matches found with planted defects.
[[nodiscard]] Score score(std::span<const Box> planted, std::span<const FoundDefect> found);

}  // namespace wafer
