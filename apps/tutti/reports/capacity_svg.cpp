#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "apps/tutti/reports/capacity_report.hpp"

namespace tutti::internal {
namespace {

constexpr double kWidth = 760, kHeight = 480;
constexpr double kLeft = 70, kRight = 20, kTop = 52, kBottom = 56;
constexpr double kMostLoad = 1.25;  // shares above it are not drawn

constexpr std::array kColours{"#1b6ca8", "#c8553d", "#2e8b57", "#8a5fbf", "#7a7a7a"};

std::string_view colour(std::size_t row) { return kColours[row % kColours.size()]; }

/// A unit in which the axis has few digits, and its size in bytes or ns.
struct AxisUnit {
  std::string_view name;
  double size;
};

AxisUnit axis_unit(TunableKind kind, double most) {
  constexpr std::array kBytes{AxisUnit{"GB", 1e9}, AxisUnit{"MB", 1e6}, AxisUnit{"kB", 1e3}, AxisUnit{"B", 1}};
  constexpr std::array kTimes{AxisUnit{"s", 1e9}, AxisUnit{"ms", 1e6}, AxisUnit{"us", 1e3}, AxisUnit{"ns", 1}};
  for (const AxisUnit& unit : unit_of(kind) == TunableUnit::Nanoseconds ? kTimes : kBytes)
    if (most >= 2 * unit.size || unit.size == 1) return unit;
  return kBytes.back();
}

/// 1, 2 or 5 times a power of ten: the distance of about `count` ticks over a length.
double tick_distance(double length, int count) {
  const double rough = length / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double step : {1.0, 2.0, 5.0})
    if (rough <= step * power) return step * power;
  return 10 * power;
}

class Drawing {
 public:
  explicit Drawing(const CapacityAnswer& answer) : answer_(&answer) {
    low_ = std::numeric_limits<double>::max();
    for (const CapacityRow& row : answer.rows) {
      for (const CapacityPoint& point : row.curve) {
        low_ = std::min(low_, static_cast<double>(point.value));
        high_ = std::max(high_, static_cast<double>(point.value));
      }
    }
    if (high_ <= low_) high_ = low_ + 1;
    unit_ = axis_unit(answer.tunable.kind, high_);
  }

  std::string text() {
    frame();
    axes();
    for (std::size_t row = 0; row < answer_->rows.size(); ++row) curves(row);
    legend();
    return body_ + "</svg>\n";
  }

 private:
  [[nodiscard]] double x(double value) const {
    return kLeft + (value - low_) / (high_ - low_) * (kWidth - kLeft - kRight);
  }
  [[nodiscard]] static double y(double share) {
    return kHeight - kBottom - share / kMostLoad * (kHeight - kTop - kBottom);
  }

  void line(double x1, double y1, double x2, double y2, std::string_view style) {
    body_ += fmt::format("<line x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}' {}/>\n", x1, y1, x2, y2, style);
  }
  void words(double at_x, double at_y, std::string_view anchor, std::string_view text, std::string_view more = "") {
    body_ += fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='{}' {}>{}</text>\n", at_x, at_y, anchor, more, text);
  }

  void frame() {
    body_ = fmt::format(
        "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}' "
        "font-family='sans-serif' font-size='12'>\n<rect width='{0}' height='{1}' fill='white'/>\n",
        kWidth, kHeight);
    words(kLeft, 22, "start",
          fmt::format("How far {}{} can go, {}", answer_->tunable.task.empty() ? "" : "the ",
                      xml(name_of(answer_->tunable)), discipline(answer_->tasks)),
          "font-size='15'");
    line(kLeft, y(0), kWidth - kRight, y(0), "stroke='black'");
    line(kLeft, y(0), kLeft, kTop, "stroke='black'");
  }

  void axes() {
    const double distance = tick_distance((high_ - low_) / unit_.size, 8);
    for (double tick = std::ceil(low_ / unit_.size / distance) * distance; tick * unit_.size <= high_ * 1.0001;
         tick += distance) {
      const double at = x(tick * unit_.size);
      line(at, y(0), at, y(0) + 5, "stroke='black'");
      words(at, y(0) + 19, "middle", fmt::format("{:.6g}", tick));
    }
    for (int percent = 0; percent <= 125; percent += 25) {
      const double at = y(percent / 100.0);
      line(kLeft, at, kWidth - kRight, at,
           percent == 100 ? "stroke='black' stroke-dasharray='2 3'" : "stroke='#e3e3e3'");
      words(kLeft - 8, at + 4, "end", fmt::format("{} %", percent));
    }
    words((kLeft + kWidth - kRight) / 2, kHeight - 14, "middle",
          fmt::format("{} in {}", xml(name_of(answer_->tunable)), unit_.name));
    words(0, 0, "middle", "share of what is possible",
          fmt::format("transform='translate(18 {:.1f}) rotate(-90)'", (kTop + y(0)) / 2));
  }

  /// A line through the points with a share inside the drawing, broken at the others.
  template <class Share>
  void curve(const CapacityRow& row, std::string_view style, Share share) {
    std::string path;
    bool drawn = false;
    for (const CapacityPoint& point : row.curve) {
      const double height = share(point);
      const bool inside = height >= 0 && height <= kMostLoad;
      if (inside)
        path += fmt::format("{}{:.1f} {:.1f} ", drawn ? "L" : "M", x(static_cast<double>(point.value)), y(height));
      drawn = inside;
    }
    if (!path.empty()) body_ += fmt::format("<path d='{}' fill='none' {}/>\n", path, style);
  }

  void curves(std::size_t index) {
    const CapacityRow& row = answer_->rows[index];
    const std::string stroke = fmt::format("stroke='{}' stroke-width='2'", colour(index));
    curve(row, stroke, [](const CapacityPoint& point) {
      if (!point.scaling) return 0.0;
      return *point.scaling == 0 ? -1.0 : static_cast<double>(kScalingOne) / static_cast<double>(*point.scaling);
    });
    curve(row, stroke + " stroke-opacity='0.6' stroke-dasharray='5 4'",
          [](const CapacityPoint& point) { return point.utilization; });
    if (!row.capacity.value) return;
    const double at = x(static_cast<double>(*row.capacity.value));
    line(at, y(0), at, y(1), fmt::format("stroke='{}' stroke-dasharray='1 3'", colour(index)));
    body_ += fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='4' fill='{}'/>\n", at, y(1), colour(index));
  }

  /// The legend, in the corner without curves: they rise with a quantity to maximise, and fall with one to minimise.
  void legend() {
    words(
        kLeft, 40, "start",
        "solid: worst-case times as a share of the longest with which every deadline is met; dashed: utilisation; dot: "
        "the last value that holds",
        "font-size='10' fill='#444'");
    const double at = answer_->wanted == Extreme::Largest ? kLeft + 14 : kWidth - kRight - 230;
    for (std::size_t row = 0; row < answer_->rows.size(); ++row) {
      const double height = kTop + 18 + 17 * static_cast<double>(row);
      line(at, height - 4, at + 20, height - 4, fmt::format("stroke='{}' stroke-width='3'", colour(row)));
      const auto& found = answer_->rows[row].capacity;
      words(at + 26, height, "start",
            fmt::format("{}: {}", answer_->rows[row].planner->name,
                        found.value ? value_text(answer_->tunable.kind, *found.value) : "none"));
    }
  }

  /// Escapes quotes, which would end an attribute. Names hold letters, digits and "_.-" alone.
  static std::string xml(const std::string& text) {
    std::string out;
    for (const char c : text) out += c == '\'' ? std::string("&#39;") : std::string(1, c);
    return out;
  }

  const CapacityAnswer* answer_;
  double low_ = 0;
  double high_ = 0;
  AxisUnit unit_{};
  std::string body_;
};

}  // namespace

std::string capacity_svg(const CapacityAnswer& answer) { return Drawing(answer).text(); }

}  // namespace tutti::internal
