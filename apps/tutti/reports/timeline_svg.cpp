#include "apps/tutti/reports/timeline_svg.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apps/tutti/formats/svg.hpp"
#include "apps/tutti/reports/report.hpp"
#include "model/batch/engine_lanes.hpp"

namespace tutti::internal {
namespace {

constexpr double kPageWidth = 960, kMargin = 16, kPageRight = kPageWidth - kMargin - 8;
constexpr double kBar = 16, kLeastBar = 3, kLaneGap = 3;  // heights
constexpr double kPanelHead = 24, kPanelFoot = 34;
constexpr double kTitleFont = 15, kFont = 12, kSmallFont = 10;
constexpr double kWidestLabel = 180;
constexpr std::size_t kNamedStreams = 14;  // in the legend
constexpr double kLongestAxis = 3;         // times the shortest batch: longer ones are cut off

/// A transfer or a kernel in a lane.
struct Bar {
  std::size_t lane = 0;
  std::size_t stream = 0;
  Duration start{};
  Duration work{};  ///< behind the set-up
  Duration end{};
  std::string tooltip;
  std::size_t row = 0;  ///< in a lane where work overlaps
};

/// One planner's part of the picture.
struct Panel {
  std::vector<Bar> bars;
  std::vector<std::size_t> rows;                     // [lanes]
  std::set<std::pair<std::size_t, Duration>> gates;  // lane, instant

  [[nodiscard]] double bar_height(std::size_t lane) const {
    return std::max(kLeastBar, kBar / static_cast<double>(rows[lane]));
  }
  [[nodiscard]] double lane_height(std::size_t lane) const {
    return bar_height(lane) * static_cast<double>(rows[lane]) + kLaneGap;
  }
};

/// End of the segments without bytes at the start of a transfer: its set-up, and the first chunk of a staged copy.
Duration end_of_setup(const TransferInterval& transfer) {
  const auto moves = [](const Segment& segment) { return segment.bytes.count > 0; };
  const auto first = std::ranges::find_if(transfer.segments, moves);
  return first == transfer.segments.end() ? transfer.end : first->start;
}

std::string interval_text(Duration start, Duration end) { return fmt::format("{} .. {} ms", ms(start), ms(end)); }

void add_transfer(Panel& panel, const EngineLanes& lanes, const Batch& batch, const StreamTimeline& line,
                  std::size_t s) {
  const TransferInterval& transfer = *line.transfer;
  const std::string tooltip =
      fmt::format("{}: {} copy of {}, {}", line.name, transfer.method.name,
                  to_string(batch.streams()[s].transfer->size), interval_text(transfer.start, transfer.end));
  const auto held = lanes.of_transfer(batch, s);
  panel.gates.emplace(held.front(), line.gate);
  for (const std::size_t lane : held)
    panel.bars.push_back({lane, s, transfer.start, end_of_setup(transfer), transfer.end, tooltip});
}

void add_kernel(Panel& panel, const EngineLanes& lanes, const Batch& batch, const StreamTimeline& line, std::size_t s) {
  const auto& [on, start, end] = *line.kernel;
  if (!line.transfer) panel.gates.emplace(lanes.of(on), line.gate);
  panel.bars.push_back(
      {lanes.of(on), s, start, start, end,
       fmt::format("{}: kernel on {}, {}", line.name, batch.machine().vertex(on).name, interval_text(start, end))});
}

/// Bars that overlap come into rows below each other: each into the first one that is free.
void stack(Panel& panel, std::span<const EngineLane> lanes) {
  panel.rows.assign(lanes.size(), 1);
  std::vector<Bar*> order;
  for (Bar& bar : panel.bars)
    if (lanes[bar.lane].overlaps) order.push_back(&bar);
  std::ranges::stable_sort(order, {}, [](const Bar* bar) { return bar->start; });
  std::vector<std::vector<Duration>> ends(lanes.size());  // [lanes][rows]
  for (Bar* bar : order) {
    auto& rows = ends[bar->lane];
    const auto free = std::ranges::find_if(rows, [&](Duration end) { return end <= bar->start + Duration{1}; });
    bar->row = static_cast<std::size_t>(free - rows.begin());
    if (free == rows.end()) rows.emplace_back();
    rows[bar->row] = bar->end;
    panel.rows[bar->lane] = rows.size();
  }
}

Panel make_panel(const EngineLanes& lanes, const Batch& batch, const Timeline& timeline) {
  Panel panel;
  for (std::size_t s = 0; s < timeline.streams.size(); ++s) {
    const StreamTimeline& line = timeline.streams[s];
    if (line.transfer) add_transfer(panel, lanes, batch, line, s);
    if (line.kernel) add_kernel(panel, lanes, batch, line, s);
  }
  stack(panel, lanes.all());
  return panel;
}

class TimelinePicture {
 public:
  TimelinePicture(const Batch& batch, std::span<const Prediction> predictions)
      : batch_(&batch), predictions_(predictions), lanes_(batch.machine(), std::array{&batch}) {
    for (const Prediction& prediction : predictions) panels_.push_back(make_panel(lanes_, batch, prediction.timeline));
    for (std::size_t lane = 0; lane < lanes_.all().size(); ++lane)
      left_ = std::max(left_, text_width(lanes_.name(lane), kFont));
    left_ = kMargin + std::min(left_, kWidestLabel) + 8;
    end_ = end_of_axis();
    unit_ = time_unit(end_);
  }

  std::string file() {
    title();
    double top = 52;
    for (std::size_t i = 0; i < panels_.size(); ++i) top = draw_panel(panels_[i], predictions_[i], top);
    return svg_.file(kPageWidth, legend(top));
  }

 private:
  /// The last completion, and the last of the latest finishes that are not too far for the shortest batch; ns.
  [[nodiscard]] double end_of_axis() const {
    const auto length = [](const Prediction& prediction) { return as_ns(prediction.timeline.latency); };
    const auto [shortest, longest] = std::ranges::minmax_element(predictions_, {}, length);
    const double most = std::max(1.0, kLongestAxis * length(*shortest));
    double end = std::clamp(length(*longest), 1.0, most);
    for (const Prediction& prediction : predictions_)
      if (const double latest = as_ns(prediction.latest.alone()); latest <= most) end = std::max(end, latest);
    return end;
  }
  [[nodiscard]] double x(double ns) const { return left_ + ns / end_ * (kPageRight - left_); }
  [[nodiscard]] double x(Duration time) const { return x(std::min(as_ns(time), end_)); }
  [[nodiscard]] bool beyond_axis(Duration time) const { return as_ns(time) > end_; }

  void title() {
    const std::size_t count = batch_->streams().size();
    const std::string words = fmt::format("{} stream{} on {}", count, count == 1 ? "" : "s", batch_->machine().name());
    svg_.text(kMargin, 24, shortened(words, kTitleFont, kPageRight - kMargin), "font-size='15'");
    svg_.text(kMargin, 42,
              "grey or pale: set-up, and the first chunk of a staged copy; triangle: a gate opens; line: the batch is "
              "complete; dashed line: its latest finish",
              "font-size='10' class='muted'");
  }

  /// @return where the next panel begins
  double draw_panel(const Panel& panel, const Prediction& prediction, double top) {
    const auto& [planner, timeline, latest] = prediction;
    const std::string_view note = beyond_axis(timeline.latency) ? " (cut off where the axis ends)"
                                  : beyond_axis(latest.alone()) ? " (beyond the axis)"
                                                                : "";
    svg_.text(
        kMargin, top + 16,
        fmt::format("{}: {} ms, at the latest {} ms{}", planner->name, ms(timeline.latency), ms(latest.alone()), note),
        "font-weight='bold'");
    std::vector<double> tops{top + kPanelHead};  // of lanes, and the end of the last
    for (std::size_t lane = 0; lane < panel.rows.size(); ++lane) tops.push_back(tops[lane] + panel.lane_height(lane));
    draw_lanes(panel, tops);
    draw_axis(tops.front(), tops.back());
    if (timeline.setup > Duration{0})
      svg_.rect(left_, tops.front(), x(timeline.setup) - left_, tops.back() - tops.front(), "class='setup'",
                "set-up of the batch");
    for (const Bar& bar : panel.bars) draw_bar(bar, panel.bar_height(bar.lane), tops[bar.lane]);
    for (const auto& [lane, gate] : panel.gates)
      if (!beyond_axis(gate)) svg_.path(fmt::format("M{:.2f} {:.2f}l8 5l-8 5z", x(gate), tops[lane]), "class='mark'");
    draw_end(latest.alone(), tops, "stroke-dasharray='4 3'");
    draw_end(timeline.latency, tops, "stroke-width='2'");
    return tops.back() + kPanelFoot;
  }

  void draw_lanes(const Panel& panel, std::span<const double> tops) {
    for (std::size_t lane = 0; lane < panel.rows.size(); ++lane) {
      const double height = tops[lane + 1] - tops[lane] - kLaneGap;
      svg_.rect(left_, tops[lane], kPageWidth - kMargin - left_, height, "class='lane'");
      svg_.text(left_ - 8, tops[lane] + height / 2 + 4, shortened(lanes_.name(lane), kFont, kWidestLabel),
                "text-anchor='end'");
    }
  }

  void draw_axis(double top, double bottom) {
    for (const double tick : ticks(0, end_ / unit_.size, 10)) {
      const double at = x(tick * unit_.size);
      svg_.line(at, top, at, bottom + 2, "class='grid'");
      svg_.text(at, bottom + 13, tick == 0 ? fmt::format("0 {}", unit_.name) : fmt::format("{:.6g}", tick),
                "text-anchor='middle' font-size='10' class='muted'");
    }
  }

  void draw_bar(const Bar& bar, double height, double lane_top) {
    if (beyond_axis(bar.start)) return;
    const SeriesColour colour = series_colour(bar.stream);
    const double top = lane_top + height * static_cast<double>(bar.row);
    if (bar.work > bar.start)
      svg_.rect(x(bar.start), top, x(bar.work) - x(bar.start), height,
                fmt::format("fill='{}' fill-opacity='0.4'", colour.fill), bar.tooltip);
    // A gap keeps neighbours of one colour apart.
    const double width = x(bar.end) - x(bar.work);
    svg_.rect(x(bar.work), top, width > 3 ? width - 0.75 : std::max(width, 0.75), height,
              fmt::format("fill='{}'", colour.fill), bar.tooltip);
    const std::string& name = batch_->streams()[bar.stream].name;
    if (height >= kBar && text_width(name, kSmallFont) + 16 <= width)
      svg_.text(x(bar.work) + width / 2, top + height / 2 + 3.5, name,
                fmt::format("text-anchor='middle' font-size='10' class='{}'", colour.text));
  }

  /// A line at the end of a batch, where the axis reaches that far.
  void draw_end(Duration end, std::span<const double> tops, std::string_view style) {
    if (beyond_axis(end)) return;
    svg_.line(x(end), tops.front() - 4, x(end), tops.back() + 2, fmt::format("class='axis' {}", style));
  }

  /// The names of the streams, in lines from `top` on.
  /// @return the height of the picture
  double legend(double top) {
    const auto streams = batch_->streams();
    double at = kMargin;
    const auto next = [&](double width) {
      if (at > kMargin && at + width > kPageWidth - kMargin) {
        at = kMargin;
        top += 18;
      }
      return std::exchange(at, at + width + 16);
    };
    for (std::size_t s = 0; s < std::min(streams.size(), kNamedStreams); ++s) {
      const std::string name = shortened(streams[s].name, kFont, kWidestLabel);
      const double left = next(18 + text_width(name, kFont));
      svg_.rect(left, top, 12, 12, fmt::format("fill='{}'", series_colour(s).fill));
      svg_.text(left + 18, top + 10, name);
    }
    if (streams.size() > kNamedStreams) {
      const std::string rest = fmt::format("and {} more", streams.size() - kNamedStreams);
      const double left = next(text_width(rest, kFont));
      svg_.text(left, top + 10, rest, "class='muted'");
    }
    return top + 12 + kMargin;
  }

  const Batch* batch_;
  std::span<const Prediction> predictions_;
  EngineLanes lanes_;
  std::vector<Panel> panels_;  // [predictions]
  double left_ = 0;            // of the axis
  double end_ = 1;             // of the axis, ns
  AxisUnit unit_;
  Svg svg_;
};

}  // namespace

Prediction predict_under(const Planner& planner, const Batch& batch) {
  ExecutionPlan planned = plan(planner, batch);
  LatestFinish latest = latest_finish(planned);
  return {&planner, std::move(planned.timeline), std::move(latest)};
}

std::string timelines_svg(const Batch& batch, std::span<const Prediction> predictions) {
  return TimelinePicture(batch, predictions).file();
}

}  // namespace tutti::internal
