#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "apps/lab/reports/transfers_report.hpp"
#include "apps/tutti/formats/svg.hpp"

namespace tutti::internal {
namespace {

constexpr double kWide = 380, kHigh = 190;               // of one drawing, axes left out
constexpr double kAtLeft = 70, kBetween = 44;            // beside the drawings
constexpr double kAtTop = 84, kAbove = 26, kBelow = 44;  // above the first row; above and below each
constexpr std::size_t kNamedSizes = 8;                   // of a drawing, at most

/// "4", "64 Ki", "1 Mi"
std::string short_size(Bytes size) {
  std::string text = to_string(size);
  text.resize(text.size() - 1);
  if (text.back() == ' ') text.pop_back();
  return text;
}

/// "100 ns", "10 us", "1 ms"
std::string short_time(double us) {
  if (us < 1) return fmt::format("{:.0f} ns", us * 1e3);
  if (us < 1e3) return fmt::format("{:.0f} us", us);
  return us < 1e6 ? fmt::format("{:.0f} ms", us / 1e3) : fmt::format("{:.0f} s", us / 1e6);
}

class TransfersDrawing {
 public:
  explicit TransfersDrawing(const TransfersRecord& record) : record_(&record) {
    double low = std::numeric_limits<double>::max(), high = 0;
    for (const CopyTimesUnder& under : record.conditions) {
      for (const auto& lines : under.cells) {
        for (const SampleSummary& times : lines) {
          if (times.count == 0) continue;
          low = std::min(low, times.average);
          high = std::max(high, times.worst);
        }
      }
    }
    low_ = high > 0 ? static_cast<int>(std::floor(std::log10(low))) : 0;
    high_ = high > 0 ? std::max(low_ + 1, static_cast<int>(std::ceil(std::log10(high)))) : 1;
    for (const CopyLine& line : record.lines) methods_.emplace(line.method->name, methods_.size());
  }

  std::string text() {
    svg_.text(kAtLeft, 24,
              fmt::format("Copies on {}: {}, {} clock", record_->machine, record_->backend, record_->clock),
              "font-size='15'");
    svg_.text(kAtLeft, 42, "time over size of a copy; solid: average; dashed: worst", "font-size='10' class='muted'");
    legend();
    for (std::size_t row = 0; row < record_->conditions.size(); ++row)
      for (const CopyDirection direction : kCopyDirections) drawing(row, direction);
    return svg_.file(kAtLeft + 2 * kWide + kBetween + 20,
                     kAtTop + static_cast<double>(record_->conditions.size()) * (kAbove + kHigh + kBelow));
  }

 private:
  [[nodiscard]] static double left(CopyDirection direction) {
    return kAtLeft + (direction == CopyDirection::Up ? 0 : kWide + kBetween);
  }
  [[nodiscard]] static double bottom(std::size_t row) {
    return kAtTop + static_cast<double>(row) * (kAbove + kHigh + kBelow) + kAbove + kHigh;
  }
  [[nodiscard]] double x(CopyDirection direction, std::size_t size) const {
    const double steps = std::max<double>(1, static_cast<double>(record_->sizes.size()) - 1);
    return left(direction) + static_cast<double>(size) / steps * kWide;
  }
  [[nodiscard]] double y(std::size_t row, double us) const {
    return bottom(row) - (std::log10(us) - low_) / (high_ - low_) * kHigh;
  }

  void legend() {
    double at = kAtLeft;
    for (const CopyLine& line : record_->lines) {
      if (line.direction != CopyDirection::Up) continue;
      svg_.line(at, 62, at + 20, 62, fmt::format("stroke='{}' stroke-width='3'", colour(line)));
      svg_.text(at + 26, 66, line.method->name);
      at += 46 + text_width(line.method->name, 12);
    }
  }

  void drawing(std::size_t row, CopyDirection direction) {
    axes(row, direction);
    for (std::size_t line = 0; line < record_->lines.size(); ++line) {
      if (record_->lines[line].direction != direction) continue;
      const std::string stroke = fmt::format("fill='none' stroke='{}' stroke-width='2'", colour(record_->lines[line]));
      curve(row, line, &SampleSummary::worst, stroke + " stroke-opacity='0.8' stroke-dasharray='4 4'");
      curve(row, line, &SampleSummary::average, stroke);
    }
  }

  void axes(std::size_t row, CopyDirection direction) {
    svg_.text(left(direction), bottom(row) - kHigh - 8,
              fmt::format("{}: {}", to_string(direction), record_->conditions[row].condition.name()));
    for (int power = low_; power <= high_; ++power) {
      const double us = std::pow(10, power), at = y(row, us);
      svg_.line(left(direction), at, left(direction) + kWide, at, "class='grid'");
      if (direction == CopyDirection::Up) svg_.text(left(direction) - 8, at + 4, short_time(us), "text-anchor='end'");
    }
    const std::size_t every = (record_->sizes.size() + kNamedSizes - 1) / kNamedSizes;
    for (std::size_t size = 0; size < record_->sizes.size(); size += every) {
      const double at = x(direction, size);
      svg_.line(at, bottom(row), at, bottom(row) + 5, "class='axis'");
      svg_.text(at, bottom(row) + 19, short_size(record_->sizes[size]), "text-anchor='middle'");
    }
    svg_.line(left(direction), bottom(row), left(direction) + kWide, bottom(row), "class='axis'");
    svg_.line(left(direction), bottom(row), left(direction), bottom(row) - kHigh, "class='axis'");
    if (row + 1 == record_->conditions.size())
      svg_.text(left(direction) + kWide / 2, bottom(row) + 36, "size in bytes", "text-anchor='middle'");
  }

  /// A line through the sizes that were measured, a dot where there is but one.
  void curve(std::size_t row, std::size_t line, double SampleSummary::*of, const std::string& style) {
    std::string path;
    bool drawn = false;
    for (std::size_t size = 0; size < record_->sizes.size(); ++size) {
      const SampleSummary& times = record_->conditions[row].cells[size][line];
      const bool there = times.count > 0 && times.*of > 0;
      if (there)
        path += fmt::format("{}{:.1f} {:.1f} ", drawn ? "L" : "M", x(record_->lines[line].direction, size),
                            y(row, times.*of));
      drawn = there;
    }
    if (!path.empty()) svg_.path(path, style);
  }

  [[nodiscard]] std::string_view colour(const CopyLine& line) const {
    return series_colour(methods_.at(line.method->name)).fill;
  }

  const TransfersRecord* record_;
  int low_ = 0, high_ = 1;  // powers of ten of the time axis, us
  std::map<std::string_view, std::size_t> methods_;
  Svg svg_;
};

}  // namespace

std::string transfers_svg(const TransfersRecord& record) { return TransfersDrawing(record).text(); }

}  // namespace tutti::internal
