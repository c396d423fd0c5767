#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <tutti/error.hpp>
#include <tutti/quantities.hpp>

#include "apps/wafer_inspection/box.hpp"

namespace wafer {

/// Which die of an image: both count from 0, from the left and from the top.
struct DiePosition {
  int column = 0;
  int row = 0;

  friend bool operator==(const DiePosition&, const DiePosition&) = default;
};

/// The positions of the dies in an image: `rows` x `columns` equal dies, in a frame of bare wafer a few pixels wide.
///
/// The frame belongs to no die. Above and below the dies it is neither sent nor inspected; this lets whole die rows
/// hold declared shares exactly.
struct DieGrid {
  int width = 0;   ///< of the image, px
  int height = 0;  ///< of the image, px
  int left = 0;    ///< of the first die, px
  int top = 0;     ///< of the first die, px
  int die_width = 0;
  int die_height = 0;
  int columns = 0;
  int rows = 0;

  /// One die row over the whole width of the image, frame included: the unit in which images are split.
  [[nodiscard]] std::int64_t die_row_pixels() const { return std::int64_t{die_height} * width; }

  friend bool operator==(const DieGrid&, const DieGrid&) = default;
};

/// Whether sides and counts are > 0 and all dies are inside the image.
[[nodiscard]] bool is_consistent(const DieGrid& grid);

/// The die that a pixel belongs to; none in the frame.
[[nodiscard]] std::optional<DiePosition> die_at(const DieGrid& grid, int x, int y);

/// The grid of as many whole dies as stand in an image from a first one on.
/// @param first  the first die of the grid.
/// @errors  InvalidInput: a die without pixels, or one that is not inside the image.
[[nodiscard]] tutti::Expected<DieGrid> grid_of_whole_dies(int width, int height, const Box& first);

/// The least number of die rows of a part: a die is compared with two others of its part.
inline constexpr int min_die_rows_per_part = 3;

/// The grid of the generated wafers: 30 die rows and 20 columns, the frame evenly around them.
///
/// The number is 30, since 10 % of an image must be three whole die rows. Then 12/3/3/12 rows never take more than
/// 40/10/10/40 % of the image's bytes at any height: a die row is a thirtieth of the image or, due to the frame, less.
///
/// @errors  InvalidInput: a side under 240 or over 32767 px.
[[nodiscard]] tutti::Expected<DieGrid> default_die_grid(int width, int height);

/// Whole die rows per part, as near to the shares as they allow.
///
/// The nearest in the sense of least squares, found exactly: every part starts with its minimum, and each further row
/// goes where it costs least; ties go to the earlier part.
///
/// @param shares   [n] relative weights, each > 0.
/// @param at_most  [n] upper bounds in die rows, or empty: none.
/// @return  [n] each >= `min_die_rows_per_part` and within its bound; the sum is `die_rows`.
/// @pre     n >= 1; the sum of the shares is at most 2^40.
/// @errors  InvalidInput: too few die rows for the parts, or more than the bounds hold.
[[nodiscard]] tutti::Expected<std::vector<int>> split_at_die_rows(int die_rows, std::span<const std::int64_t> shares,
                                                                  std::span<const std::int64_t> at_most = {});

/// The part of an image that one GPU inspects: whole die rows, and so a contiguous range of the image's bytes.
struct Part {
  int first_die_row = 0;
  int die_rows = 0;
  std::int64_t offset = 0;  ///< from the image's first pixel, in bytes
  std::int64_t bytes = 0;

  friend bool operator==(const Part&, const Part&) = default;
};

/// Splits an image in proportion to the declared sizes of the streams that carry it, none of which is exceeded.
///
/// The parts cover all die rows, without overlap and in order. A schedule is proved for the declared sizes, so they are
/// upper bounds; `bytes` is what is really sent.
///
/// @param declared         [n] size of each stream, > 0; for instance 40, 10, 10 and 40 % of the image.
/// @param bytes_per_pixel  1 or 2.
/// @errors  InvalidInput: as `split_at_die_rows`; a declared size of 0.
/// @pre     n >= 1, `grid` is consistent.
[[nodiscard]] tutti::Expected<std::vector<Part>> split_image(const DieGrid& grid,
                                                             std::span<const tutti::Bytes> declared,
                                                             int bytes_per_pixel = 1);

/// The size to declare for an image whose parts have fixed shares of it, so that all die rows find a place: its own
/// size, or more where a share would hold no whole number of die rows, or fewer than a part needs.
///
/// @param declared  [n] sizes of the parts where the image's own size is declared, each > 0.
/// @pre     n >= 1, `grid` is consistent.
[[nodiscard]] tutti::Bytes size_to_declare(const DieGrid& grid, std::span<const tutti::Bytes> declared,
                                           int bytes_per_pixel);

}  // namespace wafer
