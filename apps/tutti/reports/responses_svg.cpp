#include "apps/tutti/reports/responses_svg.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apps/tutti/formats/svg.hpp"
#include "model/base/units.hpp"

namespace tutti::internal {
namespace {

constexpr double kResponsesWidth = 860, kResponsesEdge = 20, kPanel = 190, kBars = 96, kLowestBar = 1.5;
constexpr std::size_t kBins = 120;
constexpr std::int64_t kFarDeadline = 3;  // times the longest response: the axis ends before it

constexpr std::string_view kOverColour = "#c1121f";

/// Responses of a task: each of them, or where a run kept no jobs, their histogram.
class Responses {
 public:
  Responses(const DurationHistogram& rounded, std::span<const Duration> exact, Duration limit)
      : rounded_(&rounded), exact_(exact.begin(), exact.end()), limit_(limit) {
    std::ranges::sort(exact_);
  }

  [[nodiscard]] bool is_exact() const { return exact_.size() == rounded_->count(); }
  [[nodiscard]] std::uint64_t count() const { return rounded_->count(); }
  [[nodiscard]] Duration largest() const { return rounded_->largest(); }
  /// How many are at most this one. The histogram rounds up, by at most 1/64: what it may have rounded beyond the limit
  /// counts as kept.
  [[nodiscard]] std::uint64_t at_most(Duration time) const {
    if (!is_exact()) return rounded_->at_most(time >= limit_ ? std::max(time, limit_ + limit_ / 64) : time);
    return static_cast<std::uint64_t>(std::ranges::upper_bound(exact_, time) - exact_.begin());
  }

 private:
  const DurationHistogram* rounded_;
  std::vector<Duration> exact_;
  Duration limit_;
};

/// A response is late beyond its bound; where a task has none, as in a replay, beyond its deadline.
Duration limit_of(const MeasuredTask& task) { return task.bound.value_or(task.deadline); }

class ResponsesPicture {
 public:
  std::string file(std::span<const MeasuredTask> tasks, std::span<const JobSummary> summaries,
                   std::span<const std::vector<Duration>> exact) {
    svg_.text(kResponsesEdge, kResponsesEdge + 14, "response times", "font-size='15' font-weight='bold'");
    bool is_exact = true, has_bounds = true;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      const Responses responses(summaries[t].responses(), exact[t], limit_of(tasks[t]));
      is_exact = is_exact && responses.is_exact();
      has_bounds = has_bounds && tasks[t].bound;
      draw(tasks[t], summaries[t], responses, series_colour(t), kResponsesEdge + 44 + kPanel * static_cast<double>(t));
    }
    svg_.text(
        kResponsesEdge + 150, kResponsesEdge + 14,
        fmt::format("red: longer than the bound{}{}", has_bounds ? "" : ", or than the deadline where there is none",
                    is_exact ? "" : "; rounded, by at most 1.6 %"),
        "class='muted' font-size='11'");
    return svg_.file(kResponsesWidth, 2 * kResponsesEdge + 30 + kPanel * static_cast<double>(tasks.size()));
  }

 private:
  [[nodiscard]] double x(double ns) const {
    return kResponsesEdge + (kResponsesWidth - 2 * kResponsesEdge) * ns / end_;
  }

  void draw(const MeasuredTask& task, const JobSummary& jobs, const Responses& responses, const SeriesColour& colour,
            double top) {
    const Duration longest = std::max({responses.largest(), task.bound.value_or(Duration{1}), Duration{1}});
    const bool reaches_deadline = task.deadline <= kFarDeadline * longest;
    end_ = 1.04 * static_cast<double>((reaches_deadline ? std::max(longest, task.deadline) : 5 * longest / 4).count());
    // The bound is the middle of a bin: a response that is as long stands on its line.
    const auto limit = static_cast<double>(limit_of(task).count());
    // Bins are never narrower than a kBins-th of the axis, so that they cover it.
    const double bins_to_limit = std::floor(static_cast<double>(kBins) * limit / end_);
    bin_ = bins_to_limit >= 1 ? limit / bins_to_limit : end_ / static_cast<double>(kBins);
    svg_.text(kResponsesEdge, top, title(task, jobs), "font-size='12'");
    const double floor = top + 36 + kBars;
    draw_bars(responses, limit_of(task), colour, floor);
    std::vector<Limit> limits;
    if (task.bound) limits.push_back({*task.bound, "bound", ""});
    if (reaches_deadline) limits.push_back({task.deadline, "deadline", "stroke-dasharray='5 4'"});
    draw_limits(limits, top + 10, floor);
    if (!reaches_deadline)
      svg_.text(kResponsesWidth - kResponsesEdge, top + 31, "the deadline is beyond the axis",
                "class='muted' font-size='11' text-anchor='end'");
    draw_axis(floor);
  }

  [[nodiscard]] static std::string title(const MeasuredTask& task, const JobSummary& jobs) {
    const std::uint64_t count = jobs.responses().count();
    std::string text = fmt::format("{}: {} response{}", task.name, count, count == 1 ? "" : "s");
    if (count > 0) text += fmt::format(", worst {:.3f} ms", to_ms(jobs.responses().largest()));
    if (task.bound) text += fmt::format(", bound {:.3f} ms", to_ms(*task.bound));
    text += fmt::format(", deadline {:.3f} ms", to_ms(task.deadline));
    if (jobs.without_deadline_met() > 0) text += fmt::format(", which {} did not meet", jobs.without_deadline_met());
    if (jobs.over_bound() > 0) text += fmt::format("; {} over bound", jobs.over_bound());
    return text;
  }

  /// How many responses lie in a bin.
  struct Bin {
    std::uint64_t kept = 0, over = 0;  ///< the limit
    [[nodiscard]] std::uint64_t all() const { return kept + over; }
  };

  void draw_bars(const Responses& responses, Duration limit, const SeriesColour& colour, double floor) {
    std::vector<Bin> bins;
    std::uint64_t before = 0;
    for (std::size_t bin = 0; bin <= kBins + 1; ++bin) {
      const std::uint64_t until = responses.at_most(bin_end(bin));
      const std::uint64_t kept = std::clamp(responses.at_most(limit), before, until);
      bins.push_back({kept - before, until - kept});
      before = until;
    }
    const std::uint64_t most = std::max<std::uint64_t>(std::ranges::max_element(bins, {}, &Bin::all)->all(), 1);
    for (std::size_t bin = 0; bin < bins.size(); ++bin) {
      if (bins[bin].all() == 0) continue;
      const Duration from = bin == 0 ? Duration{0} : bin_end(bin - 1);
      const double left = x(static_cast<double>(from.count())), right = x(static_cast<double>(bin_end(bin).count()));
      const std::string tooltip = fmt::format("{} of {} responses, {:.3f} to {:.3f} ms", bins[bin].all(),
                                              responses.count(), to_ms(from), to_ms(bin_end(bin)));
      double base = floor;
      for (const auto& [count, fill] : {std::pair(bins[bin].kept, colour.fill), {bins[bin].over, kOverColour}}) {
        if (count == 0) continue;
        const double height = std::max(kLowestBar, kBars * static_cast<double>(count) / static_cast<double>(most));
        base -= height;
        svg_.rect(left, base, std::max(right - left - 0.5, 0.75), height, fmt::format("fill='{}'", fill), tooltip);
      }
    }
  }
  /// Bins are as wide, each around a multiple of their width.
  [[nodiscard]] Duration bin_end(std::size_t bin) const {
    return Duration{std::llround(bin_ * (static_cast<double>(bin) + 0.5))};
  }

  struct Limit {
    Duration at;
    std::string_view name, style;
  };

  /// Lines with their names: to the left of both where the last one stands in the right half, so that names stay in the
  /// picture. The line from which a name reaches over the other one begins higher, and its name stands above that one.
  void draw_limits(std::vector<Limit> limits, double top, double floor) {
    if (limits.empty()) return;
    std::ranges::sort(limits, {}, &Limit::at);
    const bool is_left = x(static_cast<double>(limits.back().at.count())) > kResponsesWidth / 2;
    if (is_left) std::ranges::reverse(limits);
    for (const Limit& limit : limits) {
      const double line = x(static_cast<double>(limit.at.count()));
      svg_.line(line, top, line, floor, fmt::format("class='axis' stroke-width='1.5' {}", limit.style));
      const bool has_room = line > kResponsesEdge + 60;
      svg_.text(is_left && has_room ? line - 5 : line + 5, top + 9, limit.name,
                is_left && has_room ? "font-size='11' text-anchor='end'" : "font-size='11'");
      top += 12;
    }
  }

  void draw_axis(double floor) {
    const AxisUnit unit = time_unit(end_);
    svg_.line(x(0), floor, x(end_), floor, "class='axis'");
    for (const double tick : ticks(0, end_ / unit.size, 8)) {
      const double at = x(tick * unit.size);
      svg_.line(at, floor, at, floor + 4, "class='axis'");
      svg_.text(at, floor + 17, fmt::format("{:g} {}", tick, unit.name),
                tick == 0 ? "class='muted' font-size='11'" : "class='muted' font-size='11' text-anchor='middle'");
    }
  }

  double end_ = 1;  // of the axis, ns
  double bin_ = 1;  // width, ns
  Svg svg_;
};

}  // namespace

std::string responses_svg(std::span<const MeasuredTask> tasks, std::span<const JobSummary> summaries,
                          std::span<const std::vector<Duration>> exact) {
  return ResponsesPicture().file(tasks, summaries, exact);
}

}  // namespace tutti::internal
