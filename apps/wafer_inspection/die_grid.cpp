#include "apps/wafer_inspection/die_grid.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "apps/wafer_inspection/png_file.hpp"
#include "model/base/expects.hpp"

namespace wafer {

using tutti::Bytes;
using tutti::Expected;
using tutti::internal::invalid_input;

namespace {

constexpr int default_rows = 30;
constexpr int default_columns = 20;
constexpr int min_side = 240;  // dies of 12 x 8 pixels: below that a circuit and a defect are indistinguishable

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

Expected<DieGrid> default_die_grid(int width, int height) {
  if (std::min(width, height) < min_side || std::max(width, height) > max_image_side)
    return invalid_input(fmt::format("an image of {} x {} pixels holds no {} rows of dies; each side is {} to {}",
                                     width, height, default_rows, min_side, max_image_side));
  DieGrid grid{.width = width, .height = height, .columns = default_columns, .rows = default_rows};
  grid.die_width = width / default_columns;
  grid.die_height = height / default_rows;
  grid.left = (width - default_columns * grid.die_width) / 2;
  grid.top = (height - default_rows * grid.die_height) / 2;
  return grid;
}

Expected<std::vector<int>> split_at_die_rows(int die_rows, std::span<const std::int64_t> shares,
                                             std::span<const std::int64_t> at_most) {
  TUTTI_EXPECTS(!shares.empty(), "an image is split into one part at least");
  TUTTI_EXPECTS(at_most.empty() || at_most.size() == shares.size(), "one bound for each part, or none");
  TUTTI_EXPECTS(std::ranges::all_of(shares, [](std::int64_t share) { return share > 0; }), "shares are above zero");
  const std::int64_t all_shares = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  TUTTI_EXPECTS(all_shares <= std::int64_t{1} << 40, "shares that could overflow");

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

Expected<std::vector<Part>> split_image(const DieGrid& grid, std::span<const Bytes> declared) {
  TUTTI_EXPECTS(is_consistent(grid), "the dies stand inside the image");
  // No part is larger than the image, and so no sum of sensible sizes overflows.
  const Bytes image{std::int64_t{grid.width} * grid.height};
  std::vector<std::int64_t> shares;
  std::vector<std::int64_t> at_most;
  for (const Bytes size : declared) {
    if (size.count <= 0) return invalid_input("a declared size of a part is 0; declare what its die rows take");
    shares.push_back(std::min(size, image).count);
    at_most.push_back(shares.back() / grid.die_row_bytes());
  }
  const auto rows = split_at_die_rows(grid.rows, shares, at_most);
  if (!rows) return tl::unexpected(rows.error());

  std::vector<Part> parts;
  int first = 0;
  for (const int count : *rows) {
    const std::int64_t top = grid.top + std::int64_t{first} * grid.die_height;
    parts.push_back({first, count, top * grid.width, count * grid.die_row_bytes()});
    first += count;
  }
  return parts;
}

}  // namespace wafer
