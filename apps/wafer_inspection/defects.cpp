#include "apps/wafer_inspection/defects.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "apps/wafer_inspection/errors.hpp"

namespace wafer {

namespace {

/// Pixels of one row with at most `gap` zeros between them.
struct Run {
  int y = 0;
  int first = 0;
  int last = 0;
  int area = 0;
  std::uint16_t peak = 0;
  int dark_area = 0;
  std::size_t parent = 0;  ///< of the union-find forest; a root is its own parent and the first of its tree
};

bool is_clean(std::span<const std::uint8_t> bytes) {
  std::uint8_t any = 0;
  for (const std::uint8_t byte : bytes) any = static_cast<std::uint8_t>(any | byte);
  return any == 0;
}

/// The first byte from `at` on that is not zero, or the length of the row; eight zeros are passed in one step.
std::size_t next_dirty(std::span<const std::uint8_t> row, std::size_t at) {
  for (std::uint64_t word = 0; at + sizeof word <= row.size(); at += sizeof word) {
    std::memcpy(&word, row.data() + at, sizeof word);
    if (word != 0) break;
  }
  while (at < row.size() && row[at] == 0) ++at;
  return at;
}

/// @pre pixels come from left to right in a row, and rows from the top down
void append(const DirtyPixel& pixel, int gap, std::vector<Run>& runs) {
  const auto& [x, y, level, is_dark] = pixel;
  if (runs.empty() || runs.back().y != y || x - runs.back().last > gap + 1)
    runs.push_back({.y = y, .first = x, .last = x, .area = 0, .peak = 0, .dark_area = 0, .parent = runs.size()});
  Run& run = runs.back();
  run.last = x;
  ++run.area;
  run.peak = std::max(run.peak, level);
  run.dark_area += is_dark ? 1 : 0;
}

void append_runs(const GrayImage& report, int y, int gap, std::vector<Run>& runs) {
  const auto row = report.row(y);
  const auto step = static_cast<std::size_t>(report.bytes_per_pixel());
  for (std::size_t at = next_dirty(row, 0); at < row.size(); at = next_dirty(row, (at / step + 1) * step)) {
    const int x = static_cast<int>(at / step);
    append({x, y, static_cast<std::uint16_t>(report.at(x, y)), false}, gap, runs);
  }
}

std::vector<Run> find_runs(const GrayImage& report, int gap) {
  // Several rows at a time: checking row by row would cost more than reading the bytes.
  constexpr int rows_at_a_time = 16;
  std::vector<Run> runs;
  for (int top = 0; top < report.height(); top += rows_at_a_time) {
    const int bottom = std::min(top + rows_at_a_time, report.height());
    const auto rows = static_cast<std::size_t>(bottom - top);
    if (is_clean({report.row(top).data(), rows * report.row_bytes()})) continue;
    for (int y = top; y < bottom; ++y)
      if (!is_clean(report.row(y))) append_runs(report, y, gap, runs);
  }
  return runs;
}

std::size_t root_of(std::vector<Run>& runs, std::size_t run) {
  while (runs[run].parent != run) {
    runs[run].parent = runs[runs[run].parent].parent;  // halves the path for the next walk
    run = runs[run].parent;
  }
  return run;
}

void join(std::vector<Run>& runs, std::size_t a, std::size_t b) {
  const std::size_t root_a = root_of(runs, a);
  const std::size_t root_b = root_of(runs, b);
  runs[std::max(root_a, root_b)].parent = std::min(root_a, root_b);
}

/// Joins the runs [upper, lower) of one row with those of the row [lower, end) below it.
void join_rows(std::vector<Run>& runs, std::pair<std::size_t, std::size_t> upper,
               std::pair<std::size_t, std::size_t> lower, int gap) {
  auto [a, a_end] = upper;
  auto [b, b_end] = lower;
  while (a < a_end && b < b_end) {
    if (runs[a].first - runs[b].last <= gap + 1 && runs[b].first - runs[a].last <= gap + 1) join(runs, a, b);
    // The run that ends first can touch no run further right.
    runs[a].last < runs[b].last ? ++a : ++b;
  }
}

void join_neighbours(std::vector<Run>& runs, int gap) {
  std::vector<std::pair<std::size_t, std::size_t>> rows;  // [begin, end) of each row that has runs, from the top
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i == 0 || runs[i].y != runs[i - 1].y) rows.emplace_back(i, i);
    rows.back().second = i + 1;
  }
  for (std::size_t lower = 0; lower < rows.size(); ++lower)
    for (std::size_t upper = lower; upper-- > 0;) {
      if (runs[rows[lower].first].y - runs[rows[upper].first].y > gap + 1) break;
      join_rows(runs, rows[upper], rows[lower], gap);
    }
}

Box around(const Box& box, const Run& run) {
  const int left = std::min(box.x, run.first);
  const int right = std::max(box.x + box.width, run.last + 1);
  return {left, box.y, right - left, run.y + 1 - box.y};  // runs come from the top down
}

std::vector<FoundDefect> patches_of(std::vector<Run> runs, int gap) {
  join_neighbours(runs, gap);

  std::vector<FoundDefect> found;
  std::vector<std::size_t> index_of_root(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Run& run = runs[i];
    const std::size_t root = root_of(runs, i);
    if (root == i) {
      index_of_root[i] = found.size();
      found.push_back({.box = {run.first, run.y, run.last - run.first + 1, 1}});
    }
    FoundDefect& defect = found[index_of_root[root]];
    defect.box = around(defect.box, run);
    defect.area += run.area;
    defect.peak = std::max(defect.peak, run.peak);
    defect.dark_area += run.dark_area;
  }
  return found;
}

}  // namespace

std::vector<FoundDefect> find_defects(const GrayImage& report, int gap) {
  WAFER_EXPECTS(gap >= 0, "a gap is no negative number");
  return patches_of(find_runs(report, gap), gap);
}

std::vector<FoundDefect> find_defects(std::vector<DirtyPixel> pixels, int gap) {
  WAFER_EXPECTS(gap >= 0, "a gap is no negative number");
  std::ranges::sort(pixels, {}, [](const DirtyPixel& pixel) { return std::pair(pixel.y, pixel.x); });
  std::vector<Run> runs;
  for (const DirtyPixel& pixel : pixels) append(pixel, gap, runs);
  return patches_of(std::move(runs), gap);
}

bool is_same_defect(const Box& planted, const Box& found) {
  const std::int64_t both = shared_area(planted, found);
  return 2 * both > area(planted) + area(found) - both;
}

Score score(std::span<const Box> planted, std::span<const FoundDefect> found) {
  Score score;
  for (std::size_t i = 0; i < planted.size(); ++i) {
    const bool hit = std::ranges::any_of(found, [&](const auto& find) { return is_same_defect(planted[i], find.box); });
    (hit ? score.hit : score.missed).push_back(i);
  }
  for (std::size_t i = 0; i < found.size(); ++i)
    if (std::ranges::none_of(planted, [&](const Box& box) { return is_same_defect(box, found[i].box); }))
      score.false_alarms.push_back(i);
  return score;
}

}  // namespace wafer
