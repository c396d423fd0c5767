#include "apps/wafer_inspection/die_grid.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "apps/wafer_inspection/errors.hpp"
#include "apps/wafer_inspection/gray_image.hpp"

namespace wafer {

using tutti::Bytes;
using tutti::Expected;

namespace {

constexpr int default_rows = 30;
constexpr int default_columns = 20;
constexpr int min_side = 240;  // dies of 12 x 8 pixels: below that a circuit and a defect are indistinguishable
constexpr int max_side = 32'767;
constexpr int most_growth = 64;  // of a declared size over the image's own

/// The part that takes one more row at the least cost, or none where all are full.
std::optional<std::size_t> next_taker(std::span<const int> rows, int die_rows, std::span<const std::int64_t> shares,
                                      std::span<const std::int64_t> at_most, std::int64_t all_shares) {
  std::optional<std::size_t> best;
  std::int64_t least = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!at_most.empty() && rows[i] >= at_most[i]) continue;
    // (r + 1 - t)^2 - (r - t)^2 = 2r + 1 - 2t with the target t = die_rows * share / all, kept whole by the factor all.
    const std::int64_t cost = (2 * std::int64_t{rows[i]} + 1) * all_shares - 2 * std::int64_t{die_rows} * shares[i];
    if (best && cost >= least) continue;
    best = i;
    least = cost;
  }
  return best;
}

}  // namespace

bool is_consistent(const DieGrid& grid) {
  const auto side = [](int length) { return length > 0 && length <= max_image_side; };
  if (!side(grid.width) || !side(grid.height) || !side(grid.die_width) || !side(grid.die_height)) return false;
  if (!side(grid.columns) || !side(grid.rows) || grid.left < 0 || grid.top < 0) return false;
  return grid.left + std::int64_t{grid.columns} * grid.die_width <= grid.width &&
         grid.top + std::int64_t{grid.rows} * grid.die_height <= grid.height;
}

std::optional<DiePosition> die_at(const DieGrid& grid, int x, int y) {
  if (x < grid.left || y < grid.top) return std::nullopt;
  const DiePosition die{(x - grid.left) / grid.die_width, (y - grid.top) / grid.die_height};
  if (die.column >= grid.columns || die.row >= grid.rows) return std::nullopt;
  return die;
}

Expected<DieGrid> grid_of_whole_dies(int width, int height, const Box& first) {
  const bool inside = first.width > 0 && first.height > 0 && first.x >= 0 && first.y >= 0 &&
                      std::int64_t{first.x} + first.width <= width && std::int64_t{first.y} + first.height <= height;
  if (!inside)
    return invalid_input(
        fmt::format("a die of {} x {} pixels at {},{} does not stand inside pictures of {} x {}; give "
                    "one that does",
                    first.width, first.height, first.x, first.y, width, height));
  return DieGrid{.width = width,
                 .height = height,
                 .left = first.x,
                 .top = first.y,
                 .die_width = first.width,
                 .die_height = first.height,
                 .columns = (width - first.x) / first.width,
                 .rows = (height - first.y) / first.height};
}

Expected<DieGrid> default_die_grid(int width, int height) {
  if (std::min(width, height) < min_side || std::max(width, height) > max_side)
    return invalid_input(
        fmt::format("an image of {} x {} pixels is not generated with {} rows of dies; each side is "
                    "{} to {}",
                    width, height, default_rows, min_side, max_side));
  DieGrid grid{.width = width, .height = height, .columns = default_columns, .rows = default_rows};
  grid.die_width = width / default_columns;
  grid.die_height = height / default_rows;
  grid.left = (width - default_columns * grid.die_width) / 2;
  grid.top = (height - default_rows * grid.die_height) / 2;
  return grid;
}

Expected<std::vector<int>> split_at_die_rows(int die_rows, std::span<const std::int64_t> shares,
                                             std::span<const std::int64_t> at_most) {
  WAFER_EXPECTS(!shares.empty(), "an image is split into one part at least");
  WAFER_EXPECTS(at_most.empty() || at_most.size() == shares.size(), "one bound for each part, or none");
  WAFER_EXPECTS(std::ranges::all_of(shares, [](std::int64_t share) { return share > 0; }), "shares are above zero");
  const std::int64_t all_shares = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  WAFER_EXPECTS(all_shares <= std::int64_t{1} << 40, "shares that could overflow");

  const std::int64_t least = std::int64_t{min_die_rows_per_part} * static_cast<std::int64_t>(shares.size());
  if (die_rows < least || die_rows > max_image_side)
    return invalid_input(fmt::format("{} die rows cannot be split into {} parts of {} or more; {} to {} are needed",
                                     die_rows, shares.size(), min_die_rows_per_part, least, max_image_side));
  for (std::size_t i = 0; i < at_most.size(); ++i)
    if (at_most[i] < min_die_rows_per_part)
      return invalid_input(fmt::format("the declared size of part {} holds {} die rows; declare at least {}", i,
                                       at_most[i], min_die_rows_per_part));

  std::vector<int> rows(shares.size(), min_die_rows_per_part);
  for (std::int64_t placed = least; placed < die_rows; ++placed) {
    const auto taker = next_taker(rows, die_rows, shares, at_most, all_shares);
    if (!taker)
      return invalid_input(
          fmt::format("the declared sizes hold {} whole die rows of {}; declare larger ones", placed, die_rows));
    ++rows[*taker];
  }
  return rows;
}

Expected<std::vector<Part>> split_image(const DieGrid& grid, std::span<const Bytes> declared, int bytes_per_pixel) {
  WAFER_EXPECTS(is_consistent(grid), "the dies stand inside the image");
  // No part is larger than the image, and so no sum of sensible sizes overflows.
  const Bytes image{std::int64_t{grid.width} * grid.height * bytes_per_pixel};
  const std::int64_t die_row_bytes = grid.die_row_pixels() * bytes_per_pixel;
  std::vector<std::int64_t> shares;
  std::vector<std::int64_t> at_most;
  for (const Bytes size : declared) {
    if (size.count <= 0) return invalid_input("a declared size of a part is 0; declare what its die rows take");
    shares.push_back(std::min(size, image).count);
    at_most.push_back(shares.back() / die_row_bytes);
  }
  const auto rows = split_at_die_rows(grid.rows, shares, at_most);
  if (!rows) return tl::unexpected(rows.error());

  std::vector<Part> parts;
  int first = 0;
  for (const int count : *rows) {
    const std::int64_t top = grid.top + std::int64_t{first} * grid.die_height;
    parts.push_back({first, count, top * grid.width * bytes_per_pixel, count * die_row_bytes});
    first += count;
  }
  return parts;
}

Bytes size_to_declare(const DieGrid& grid, std::span<const Bytes> declared, int bytes_per_pixel) {
  const std::int64_t image = std::int64_t{grid.width} * grid.height * bytes_per_pixel;
  const std::int64_t die_row = grid.die_row_pixels() * bytes_per_pixel;
  // Whether the parts hold all die rows where the declared size is that of so many.
  const auto holds_all = [&](std::int64_t rows) {
    std::int64_t held = 0;
    for (const Bytes part : declared) {
      const std::int64_t share = std::min(part.count, image);
      const std::int64_t of_part = rows * die_row <= image ? share / die_row : share * rows / image;
      if (of_part < min_die_rows_per_part) return false;
      held += of_part;
    }
    return held >= grid.rows;
  };
  // Sizes that no share of the image explains do not grow with it: the split then reports them.
  const std::int64_t most = std::int64_t{grid.rows} * most_growth;
  std::int64_t rows = grid.rows;
  while (rows < most && !holds_all(rows)) ++rows;
  return {rows < most ? std::max(image, rows * die_row) : image};
}

}  // namespace wafer
