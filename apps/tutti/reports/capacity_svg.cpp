#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "apps/tutti/formats/svg.hpp"
#include "apps/tutti/reports/capacity_report.hpp"

namespace tutti::internal {
namespace {

constexpr double kWidth = 760, kHeight = 480;
constexpr double kLeft = 70, kRight = 20, kTop = 52, kBottom = 56;
constexpr double kMostLoad = 1.25;  // shares above it are not drawn

AxisUnit axis_unit(TunableKind kind, double most) {
  return unit_of(kind) == TunableUnit::Nanoseconds ? time_unit(most) : byte_unit(most);
}

std::string_view colour(std::size_t row) { return series_colour(row).fill; }

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
    return svg_.file(kWidth, kHeight);
  }

 private:
  [[nodiscard]] double x(double value) const {
    return kLeft + (value - low_) / (high_ - low_) * (kWidth - kLeft - kRight);
  }
  [[nodiscard]] static double y(double share) {
    return kHeight - kBottom - share / kMostLoad * (kHeight - kTop - kBottom);
  }

  void frame() {
    svg_.text(kLeft, 22,
              fmt::format("How far {}{} can go, {}", answer_->tunable.task.empty() ? "" : "the ",
                          name_of(answer_->tunable), discipline(answer_->tasks)),
              "font-size='15'");
    svg_.line(kLeft, y(0), kWidth - kRight, y(0), "class='axis'");
    svg_.line(kLeft, y(0), kLeft, kTop, "class='axis'");
  }

  void axes() {
    for (const double tick : ticks(low_ / unit_.size, high_ / unit_.size, 8)) {
      const double at = x(tick * unit_.size);
      svg_.line(at, y(0), at, y(0) + 5, "class='axis'");
      svg_.text(at, y(0) + 19, fmt::format("{:.6g}", tick), "text-anchor='middle'");
    }
    for (int percent = 0; percent <= 125; percent += 25) {
      const double at = y(percent / 100.0);
      svg_.line(kLeft, at, kWidth - kRight, at,
                percent == 100 ? "class='axis' stroke-dasharray='2 3'" : "class='grid'");
      svg_.text(kLeft - 8, at + 4, fmt::format("{} %", percent), "text-anchor='end'");
    }
    svg_.text((kLeft + kWidth - kRight) / 2, kHeight - 14,
              fmt::format("{} in {}", name_of(answer_->tunable), unit_.name), "text-anchor='middle'");
    svg_.text(0, 0, "share of what is possible",
              fmt::format("text-anchor='middle' transform='translate(18 {:.1f}) rotate(-90)'", (kTop + y(0)) / 2));
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
    if (!path.empty()) svg_.path(path, fmt::format("fill='none' {}", style));
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
    svg_.line(at, y(0), at, y(1), fmt::format("stroke='{}' stroke-dasharray='1 3'", colour(index)));
    svg_.rect(at - 4, y(1) - 4, 8, 8, fmt::format("rx='4' fill='{}'", colour(index)));
  }

  /// The legend, in the corner without curves: they rise with a quantity to maximise, and fall with one to minimise.
  void legend() {
    svg_.text(
        kLeft, 40,
        "solid: worst-case times as a share of the longest with which every deadline is met; dashed: utilisation; dot: "
        "the last value that holds",
        "font-size='10' class='muted'");
    const double at = answer_->wanted == Extreme::Largest ? kLeft + 14 : kWidth - kRight - 230;
    for (std::size_t row = 0; row < answer_->rows.size(); ++row) {
      const double height = kTop + 18 + 17 * static_cast<double>(row);
      svg_.line(at, height - 4, at + 20, height - 4, fmt::format("stroke='{}' stroke-width='3'", colour(row)));
      const auto& found = answer_->rows[row].capacity;
      svg_.text(at + 26, height,
                fmt::format("{}: {}", answer_->rows[row].name(),
                            found.value ? value_text(answer_->tunable, *found.value) : "none"));
    }
  }

  const CapacityAnswer* answer_;
  double low_ = 0;
  double high_ = 0;
  AxisUnit unit_;
  Svg svg_;
};

}  // namespace

std::string capacity_svg(const CapacityAnswer& answer) { return Drawing(answer).text(); }

}  // namespace tutti::internal
