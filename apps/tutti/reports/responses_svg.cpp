#include "apps/tutti/reports/responses_svg.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "apps/tutti/formats/svg.hpp"
#include "model/base/units.hpp"

namespace tutti::internal {
namespace {

constexpr double kResponsesWidth = 860, kResponsesEdge = 20, kPanel = 190, kBars = 96, kLowestBar = 1.5;
constexpr std::size_t kBins = 120;
constexpr std::int64_t kFarDeadline = 3;  // times the longest response: the axis ends before it

class ResponsesPicture {
 public:
  std::string file(std::span<const MeasuredTask> tasks, std::span<const JobSummary> summaries) {
    svg_.text(kResponsesEdge, kResponsesEdge + 14, "response times", "font-size='15' font-weight='bold'");
    svg_.text(kResponsesEdge + 150, kResponsesEdge + 14, "rounded up, by at most 1.6 %",
              "class='muted' font-size='11'");
    for (std::size_t t = 0; t < tasks.size(); ++t)
      draw(tasks[t], summaries[t], series_colour(t), kResponsesEdge + 44 + kPanel * static_cast<double>(t));
    return svg_.file(kResponsesWidth, 2 * kResponsesEdge + 30 + kPanel * static_cast<double>(tasks.size()));
  }

 private:
  [[nodiscard]] double x(double ns) const {
    return kResponsesEdge + (kResponsesWidth - 2 * kResponsesEdge) * ns / end_;
  }

  void draw(const MeasuredTask& task, const JobSummary& jobs, const SeriesColour& colour, double top) {
    const DurationHistogram& responses = jobs.responses();
    const Duration longest = std::max({responses.largest(), task.bound.value_or(Duration{1}), Duration{1}});
    const bool reaches_deadline = task.deadline <= kFarDeadline * longest;
    end_ = 1.04 * static_cast<double>((reaches_deadline ? std::max(longest, task.deadline) : 5 * longest / 4).count());
    // The bound is the end of a bin: what kept it stands on its left.
    const auto limit = static_cast<double>(task.bound.value_or(task.deadline).count());
    bin_ = limit / std::ceil(static_cast<double>(kBins) * limit / end_);
    svg_.text(kResponsesEdge, top, title(task, jobs), "font-size='12'");
    draw_bars(responses, colour, top + 36 + kBars);
    if (task.bound) draw_limit(*task.bound, "bound", "", top);
    if (reaches_deadline) draw_limit(task.deadline, "deadline", "stroke-dasharray='5 4'", top + 12);
    if (!reaches_deadline)
      svg_.text(kResponsesWidth - kResponsesEdge, top + 31, "the deadline is beyond the axis",
                "class='muted' font-size='11' text-anchor='end'");
    draw_axis(top + 36 + kBars);
  }

  [[nodiscard]] static std::string title(const MeasuredTask& task, const JobSummary& jobs) {
    std::string text = fmt::format("{}: {} responses", task.name, jobs.responses().count());
    if (jobs.responses().count() > 0) text += fmt::format(", worst {:.3f} ms", to_ms(jobs.responses().largest()));
    if (task.bound) text += fmt::format(", bound {:.3f} ms", to_ms(*task.bound));
    text += fmt::format(", deadline {:.3f} ms", to_ms(task.deadline));
    if (jobs.without_deadline_met() > 0) text += fmt::format("; {} met none", jobs.without_deadline_met());
    return text;
  }

  void draw_bars(const DurationHistogram& responses, const SeriesColour& colour, double floor) {
    std::vector<std::uint64_t> counts;
    std::uint64_t before = 0;
    for (std::size_t bin = 1; bin <= kBins + 1; ++bin) {
      const std::uint64_t until = responses.at_most(bin_end(bin));
      counts.push_back(until - before);
      before = until;
    }
    const std::uint64_t most = *std::ranges::max_element(counts);
    for (std::size_t bin = 0; bin < counts.size(); ++bin) {
      if (counts[bin] == 0) continue;
      const double height = std::max(kLowestBar, kBars * static_cast<double>(counts[bin]) / static_cast<double>(most));
      const double left = x(static_cast<double>(bin_end(bin).count()));
      const double right = x(static_cast<double>(bin_end(bin + 1).count()));
      svg_.rect(left, floor - height, std::max(right - left - 0.5, 0.75), height, fmt::format("fill='{}'", colour.fill),
                fmt::format("{} of {} responses, {:.3f} to {:.3f} ms", counts[bin], responses.count(),
                            to_ms(bin_end(bin)), to_ms(bin_end(bin + 1))));
    }
  }
  [[nodiscard]] Duration bin_end(std::size_t bin) const {
    return Duration{std::llround(bin_ * static_cast<double>(bin))};
  }

  void draw_limit(Duration at, std::string_view name, std::string_view style, double top) {
    const double line = x(static_cast<double>(at.count()));
    svg_.line(line, top + 10, line, top + 36 + kBars, fmt::format("class='axis' stroke-width='1.5' {}", style));
    const bool is_right = line > kResponsesWidth / 2;
    svg_.text(is_right ? line - 5 : line + 5, top + 19, name,
              is_right ? "font-size='11' text-anchor='end'" : "font-size='11'");
  }

  void draw_axis(double floor) {
    const AxisUnit unit = time_unit(end_);
    svg_.line(x(0), floor, x(end_), floor, "class='axis'");
    for (const double tick : ticks(0, end_ / unit.size, 8)) {
      const double at = x(tick * unit.size);
      svg_.line(at, floor, at, floor + 4, "class='axis'");
      svg_.text(at, floor + 17, tick == 0 ? fmt::format("0 {}", unit.name) : fmt::format("{:g}", tick),
                "class='muted' font-size='11' text-anchor='middle'");
    }
  }

  double end_ = 1;  // of the axis, ns
  double bin_ = 1;  // width, ns
  Svg svg_;
};

}  // namespace

std::string responses_svg(std::span<const MeasuredTask> tasks, std::span<const JobSummary> summaries) {
  return ResponsesPicture().file(tasks, summaries);
}

}  // namespace tutti::internal
