#include "apps/tutti/reports/timeline_text.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "apps/table.hpp"
#include "apps/terminal.hpp"
#include "apps/tutti/reports/report.hpp"
#include "model/base/joined.hpp"

namespace tutti::internal {
namespace {

constexpr char kCopy = '=', kKernel = '#', kHostStep = '+', kIdle = '.';

/// A stretch of time in a row, and how it is drawn.
struct Stretch {
  Duration start{}, end{};
  char mark = kIdle;
};
using Stretches = std::vector<Stretch>;

/// The bar of a row, a character a column. A stretch longer than 0 takes at least one column.
std::string bar(std::span<const Stretch> stretches, Duration whole, std::size_t width) {
  std::string bar(width, kIdle);
  const auto column = [&](Duration at) {
    return static_cast<std::size_t>(std::lround(to_ms(at) / to_ms(whole) * static_cast<double>(width)));
  };
  for (const auto& [start, end, mark] : stretches) {
    if (whole <= Duration{0} || end <= start) continue;
    const std::size_t first = std::min(column(start), width - 1);
    const std::size_t last = std::clamp(column(end), first + 1, width);
    bar.replace(first, last - first, last - first, mark);
  }
  return bar;
}

std::string in_its_color(char mark, std::string_view text) {
  switch (mark) {
    case kCopy: return programs::cyan(text);
    case kKernel: return programs::yellow(text);
    case kHostStep: return programs::green(text);
    default: return programs::dim(text);
  }
}

/// Each run of equal marks in its colour.
std::string colored(std::string_view bar) {
  std::string text;
  while (!bar.empty()) {
    const std::size_t length = std::min(bar.find_first_not_of(bar.front()), bar.size());
    text += in_its_color(bar.front(), bar.substr(0, length));
    bar.remove_prefix(length);
  }
  return text;
}

/// What the marks of these rows mean.
std::string legend(std::span<const Stretches> rows) {
  std::vector<std::string> entries;
  for (const auto& [mark, word] :
       {std::pair(kCopy, "copy"), {kKernel, "kernel"}, {kHostStep, "host step"}, {kIdle, "idle"}}) {
    const auto has = [&, drawn = mark](const Stretches& row) {
      return std::ranges::count(row, drawn, &Stretch::mark) > 0;
    };
    if (mark == kIdle || std::ranges::any_of(rows, has))
      entries.push_back(fmt::format("{} {}", in_its_color(mark, std::string(1, mark)), word));
  }
  return joined(entries);
}

/// The table with a bar behind each row, and the legend.
/// @param rows  [rows of the table]
std::string with_bars(programs::Table table, std::span<const Stretches> rows, Duration whole,
                      std::optional<std::size_t> columns) {
  constexpr std::size_t kUnknown = 40, kLeast = 10;
  const std::size_t taken = table.width() + 2;
  const std::size_t width = !columns ? kUnknown : std::max(*columns, taken + kLeast) - taken;
  std::vector<std::string> bars;
  for (const Stretches& row : rows) bars.push_back(colored(bar(row, whole, width)));
  table.add_column("0 .. " + ms(whole) + " ms", std::move(bars));
  return fmt::format("{}\n{}\n", table.text(), legend(rows));
}

/// Copy and kernel of a stream of a batch.
/// @param from  start of the batch
Stretches stretches_of(const StreamTimeline& line, Duration from = {}) {
  Stretches stretches;
  if (line.transfer) stretches.push_back({from + line.transfer->start, from + line.transfer->end, kCopy});
  if (line.kernel) stretches.push_back({from + line.kernel->start, from + line.kernel->end, kKernel});
  return stretches;
}

/// The rows of a job, and its length.
struct JobRows {
  std::vector<std::vector<std::string>> cells;  ///< task, step
  std::vector<Stretches> rows;
  Duration whole{};
};

void add_job(const PlannedTaskSet& planned, std::size_t task, JobRows& to) {
  const Task& of = planned.tasks.tasks[task];
  if (of.declared_wcet || planned.bounds[task].plans.empty()) return;
  Duration at{};
  std::string name = of.name;  // in the first row
  const auto add = [&](std::string step, Stretches row) {
    to.cells.push_back({std::exchange(name, ""), std::move(step)});
    to.rows.push_back(std::move(row));
  };
  std::size_t batch = 0;
  for (const JobStep& step : of.steps) {
    if (const auto* host = std::get_if<HostStep>(&step)) {
      add("host step", {{at, add_saturating(at, host->time), kHostStep}});
      at = add_saturating(at, host->time);
      continue;
    }
    for (const ExecutionPlan& plan : planned.bounds[task].plans[batch]) {
      for (const StreamTimeline& line : plan.timeline.streams) add(line.name, stretches_of(line, at));
      at = add_saturating(at, plan.timeline.latency);
    }
    ++batch;
  }
  to.whole = std::max(to.whole, at);
}

}  // namespace

std::string timeline_text(const Planner& planner, const Topology& machine, const Timeline& timeline,
                          const LatestFinish& latest, std::optional<std::size_t> columns) {
  programs::Table table({"stream", "path", "transfer ms", "", "kernel ms", "", "on"});
  table.align_left(1);
  table.align_left(6);
  std::vector<Stretches> rows;
  for (const StreamTimeline& line : timeline.streams) {
    std::vector<std::string> row{line.name, "-", "-", "", "-", "", "-"};
    if (line.transfer) {
      row[1] = line.transfer->method.name;
      row[2] = ms(line.transfer->start);
      row[3] = ms(line.transfer->end);
      if (machine.table() != nullptr) row[1] += fmt::format(" ({})", joined(rate_sources_of(*line.transfer)));
    }
    if (line.kernel) {
      row[4] = ms(line.kernel->start);
      row[5] = ms(line.kernel->end);
      row[6] = machine.vertex(line.kernel->on).name;
    }
    table.add(std::move(row));
    rows.push_back(stretches_of(line));
  }
  return fmt::format("{} on {}: {} ms, at the latest {} ms\n\n{}", planner.name, machine.name(), ms(timeline.latency),
                     ms(latest.alone()), with_bars(std::move(table), rows, timeline.latency, columns));
}

std::string jobs_timeline_text(const PlannedTaskSet& planned, std::optional<std::size_t> columns) {
  constexpr std::size_t kMostRows = 40;
  if (planned.overlap) return "";
  JobRows jobs;
  for (std::size_t i = 0; i < planned.tasks.tasks.size(); ++i) add_job(planned, i, jobs);
  if (jobs.rows.empty()) return "";
  const std::size_t shown = std::min(jobs.rows.size(), kMostRows), more = jobs.rows.size() - shown;
  programs::Table table({"one job of", "step"});
  table.align_left(1);
  for (std::vector<std::string>& row : std::span(jobs.cells).first(shown)) table.add(std::move(row));
  const std::string text = with_bars(std::move(table), std::span(jobs.rows).first(shown), jobs.whole, columns);
  return more == 0 ? text : fmt::format("{}and {} more rows\n", text, more);
}

}  // namespace tutti::internal
