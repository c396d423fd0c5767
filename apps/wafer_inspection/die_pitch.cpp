#include "apps/wafer_inspection/die_pitch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "apps/wafer_inspection/errors.hpp"

namespace wafer {

using tutti::Expected;

namespace {

constexpr int min_pitch = 8;               // px: below that a circuit and a defect are indistinguishable
constexpr int min_repeats = 3;             // a die is compared with two others
constexpr double least_correlation = 0.5;  // of a pitch
constexpr double nearly = 0.95;            // of the best correlation
constexpr int most_outside_percent = 25;   // of a row's pixels, where the row still repeats

/// What a picture shows along one axis.
struct Axis {
  std::vector<double> levels;         ///< [n] mean gray level
  std::vector<double> detail;         ///< [n] mean step to the next pixel along the line
  std::vector<std::int64_t> outside;  ///< [n] pixels that differ from those one pitch further on; set once it is known
  int across = 0;                     ///< pixels of a line
};

/// One picture, seen from both sides: its columns and its rows.
struct Axes {
  Axis columns;
  Axis rows;
};

Axes project(const GrayImage& image) {
  const auto width = static_cast<std::size_t>(image.width());
  const auto height = static_cast<std::size_t>(image.height());
  Axes axes{
      {std::vector<double>(width), std::vector<double>(width), std::vector<std::int64_t>(width), image.height()},
      {std::vector<double>(height), std::vector<double>(height), std::vector<std::int64_t>(height), image.width()}};
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x) {
      const auto column = static_cast<std::size_t>(x);
      const auto row = static_cast<std::size_t>(y);
      const int level = image.at(x, y);
      axes.columns.levels[column] += static_cast<double>(level) / image.height();
      axes.rows.levels[row] += static_cast<double>(level) / image.width();
      if (y > 0) axes.columns.detail[column] += std::abs(level - image.at(x, y - 1));
      if (x > 0) axes.rows.detail[row] += std::abs(level - image.at(x - 1, y));
    }
  return axes;
}

void compare_at_pitch(const GrayImage& image, int pitch_x, int pitch_y, int threshold, Axes& axes) {
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x) {
      const int level = image.at(x, y);
      if (x + pitch_x < image.width() && std::abs(level - image.at(x + pitch_x, y)) > threshold)
        ++axes.columns.outside[static_cast<std::size_t>(x)];
      if (y + pitch_y < image.height() && std::abs(level - image.at(x, y + pitch_y)) > threshold)
        ++axes.rows.outside[static_cast<std::size_t>(y)];
    }
}

double correlation(std::span<const double> slopes, std::size_t lag) {
  double both = 0, here = 0, there = 0;
  for (std::size_t i = 0; i + lag < slopes.size(); ++i) {
    both += slopes[i] * slopes[i + lag];
    here += slopes[i] * slopes[i];
    there += slopes[i + lag] * slopes[i + lag];
  }
  return here > 0 && there > 0 ? both / std::sqrt(here * there) : 0;
}

/// Dies along one axis.
struct Repeats {
  int first = 0;  ///< px
  int count = 0;
};

/// The longest stretch in which every line repeats one pitch further on, as whole dies.
Repeats repeats_along(const Axis& axis, int pitch) {
  const auto lines = static_cast<int>(axis.levels.size());
  const std::int64_t most_outside = std::int64_t{axis.across} * most_outside_percent / 100;
  int begin = 0, longest = 0, longest_begin = 0;
  for (int i = 0; i + pitch < lines; ++i) {
    if (axis.outside[static_cast<std::size_t>(i)] > most_outside) begin = i + 1;
    if (i + 1 - begin <= longest) continue;
    longest = i + 1 - begin;
    longest_begin = begin;
  }
  const int count = longest / pitch + 1;
  const int spare = longest % pitch;
  double least = std::numeric_limits<double>::max();
  Repeats repeats{longest_begin, count};
  for (int first = longest_begin; first <= longest_begin + spare; ++first) {
    double detail = 0;
    for (int die = 0; die < count; ++die) detail += axis.detail[static_cast<std::size_t>(first + die * pitch)];
    if (detail >= least) continue;
    least = detail;
    repeats.first = first;
  }
  return repeats;
}

}  // namespace

std::optional<int> find_pitch(std::span<const double> profile) {
  std::vector<double> slopes;
  for (std::size_t i = 1; i < profile.size(); ++i) slopes.push_back(profile[i] - profile[i - 1]);
  std::vector<double> at_lag;  // from `min_pitch` on
  for (std::size_t lag = min_pitch; lag * min_repeats <= profile.size(); ++lag)
    at_lag.push_back(correlation(slopes, lag));
  if (at_lag.empty()) return std::nullopt;
  const double best = *std::ranges::max_element(at_lag);
  if (best < least_correlation) return std::nullopt;
  const auto pitch = std::ranges::find_if(at_lag, [&](double value) { return value >= nearly * best; });
  return min_pitch + static_cast<int>(pitch - at_lag.begin());
}

Expected<DieGrid> find_die_grid(const GrayImage& image, int threshold) {
  Axes axes = project(image);
  const auto pitch_x = find_pitch(axes.columns.levels);
  const auto pitch_y = find_pitch(axes.rows.levels);
  const auto none = [](const char* direction) {
    return invalid_input(fmt::format(
        "no pattern of dies repeats {} times {} this picture; give the size of a die with --die WIDTHxHEIGHT, and the "
        "place of the first one with --origin X,Y",
        min_repeats, direction));
  };
  if (!pitch_x) return none("across");
  if (!pitch_y) return none("down");
  compare_at_pitch(image, *pitch_x, *pitch_y, threshold, axes);
  const Repeats columns = repeats_along(axes.columns, *pitch_x);
  const Repeats rows = repeats_along(axes.rows, *pitch_y);
  if (columns.count < min_repeats) return none("across");
  if (rows.count < min_repeats) return none("down");
  return DieGrid{.width = image.width(),
                 .height = image.height(),
                 .left = columns.first,
                 .top = rows.first,
                 .die_width = *pitch_x,
                 .die_height = *pitch_y,
                 .columns = columns.count,
                 .rows = rows.count};
}

}  // namespace wafer
