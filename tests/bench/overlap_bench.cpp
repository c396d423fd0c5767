// How many random task sets are admitted one job at a time (off), overlapping (on), and by the better of both (auto),
// beside those that no schedule is shown to miss: over the utilization of the fullest engine, GPU or cpu, and of the
// whole, as one job at a time uses it; and how many near the edge remain unknown. Sets: 2 to 8 tasks on the four GPUs
// of h200x4, each with a copy to one GPU, a kernel there, and in half of them a copy back in a second batch; copies of
// 1 to 100 MB, kernels of 0.1 to 10 ms and periods of 5 to 100 ms, all log-uniform; then all periods are stretched
// alike, so that the utilization is that of the row. Deadlines are the periods. Options: --seeds N, --svg FOLDER
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "apps/tutti/formats/svg.hpp"
#include "sched/admission/admission.hpp"
#include "sched/overlap/overlap_verdict.hpp"
#include "tests/support/random.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

using test::Random;

double log_uniform(Random& random, double low, double high) {
  return std::exp(random.real(std::log(low), std::log(high)));
}

TaskSet random_set(Random& random, const Topology& machine, int most_tasks, int gpus) {
  TaskSet set{machine, Policy::Edf, {}};
  const int tasks = random.between(2, most_tasks);
  for (int i = 0; i < tasks; ++i) {
    Task task;
    task.name = fmt::format("t{}", i);
    task.period = task.deadline = Duration{static_cast<std::int64_t>(1e6 * log_uniform(random, 5, 100))};
    const int gpu = random.between(0, gpus - 1);
    task.steps.emplace_back(test::make_batch(
        machine, fmt::format("  - {{from: mem0, to: gpu{}, size: {:.0f} kB, kernel: {{time: {:.0f} us}}}}\n", gpu,
                             log_uniform(random, 1e3, 1e5), log_uniform(random, 100, 10'000))));
    if (random.one_in(2))
      task.steps.emplace_back(test::make_batch(machine, fmt::format("  - {{from: gpu{}, to: mem0, size: {:.0f} kB}}\n",
                                                                    gpu, log_uniform(random, 1e3, 1e5))));
    set.tasks.push_back(std::move(task));
  }
  return set;
}

/// Stretches all periods and deadlines.
void stretch(TaskSet& set, double factor) {
  for (Task& task : set.tasks)
    task.period = task.deadline = Duration{static_cast<std::int64_t>(as_ns(task.period) * factor)};
}

/// Utilization of the fullest resource, every engine for itself.
double fullest(const TaskSet& set) {
  const OperationSet operations = operations_of(set).value();
  std::vector<double> utilization(operations.resources.size());
  for (const Operation& operation : operations.operations)
    utilization[operation.resource] += as_ns(operation.worst()) / as_ns(set.tasks[operation.task.index()].period);
  return std::ranges::max(utilization);
}

/// Utilization of the machine by one job at a time.
double whole(const TaskSet& set) {
  double sum = 0;
  for (const TaskTiming& timing : AdmissionController(planners().front()).plan(set).timings)
    sum += as_ns(timing.wcet) / as_ns(timing.period);
  return sum;
}

/// What a table and its picture are over.
struct Measure {
  std::string_view name;     ///< of the column
  std::string_view axis;     ///< of the picture
  std::string_view picture;  ///< its file
  double (*of)(const TaskSet&);
  double step = 0.1;
  int rows = 9;
};
constexpr std::array kMeasures{
    Measure{"fullest resource", "utilization of the fullest engine or GPU", "overlap.svg", fullest, 0.1, 9},
    Measure{"the whole", "utilization of the whole by one job at a time", "overlap-whole.svg", whole, 0.2, 12}};

/// Shares of the sets of a row, in percent.
struct Row {
  double utilization = 0;
  std::array<double, 5> shares{};  // of `kColumns`
};
constexpr std::array<std::string_view, 5> kColumns{"off", "on", "auto", "not refused", "on, nothing held"};

Row row_of(const Topology& machine, const Measure& measure, double utilization, int seeds) {
  const AdmissionController controller(planners().front());
  std::array<int, 5> counts{};
  for (int seed = 1; seed <= seeds; ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    TaskSet set = random_set(random, machine, 8, 4);
    stretch(set, measure.of(set) / utilization);
    const bool off = controller.answer(set) == Answer::Schedulable;
    const OverlapVerdict verdict = decide_overlapping(set).value();
    const bool on = verdict.answer == Answer::Schedulable;
    const std::array holds{off, on, off || on, verdict.answer != Answer::NotSchedulable,
                           on && !verdict.deadlines->held};
    for (std::size_t i = 0; i < holds.size(); ++i) counts[i] += holds[i] ? 1 : 0;
  }
  Row row{utilization, {}};
  for (std::size_t i = 0; i < counts.size(); ++i) row.shares[i] = 100.0 * counts[i] / seeds;
  return row;
}

/// What is known of sets near the edge: the fullest resource is used for 30 to 100 % of the time.
void print_answers(const Topology& machine, int seeds) {
  std::array<int, 3> counts{};
  for (int seed = 1; seed <= seeds; ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    const int gpus = random.between(1, 4);
    TaskSet set = random_set(random, machine, 6, gpus);
    stretch(set, fullest(set) / random.real(0.3, 1));
    ++counts[static_cast<std::size_t>(answer_overlapping(set))];
  }
  fmt::print("\n| {} sets of 2 to 6 tasks on 1 to 4 GPUs | share |\n|---|---|\n", seeds);
  const auto row = [&](std::string_view what, Answer answer) {
    fmt::print("| {} | {:.1f} % |\n", what, 100.0 * counts[static_cast<std::size_t>(answer)] / seeds);
  };
  row("admitted", Answer::Schedulable);
  row("refused", Answer::NotSchedulable);
  row("unknown", Answer::Unknown);
}

std::string drawing(const Measure& measure, std::span<const Row> rows) {
  constexpr double kWidth = 560, kHeight = 360, kLeft = 60, kRight = 20, kTop = 40, kBottom = 50;
  const double widest = measure.step * (measure.rows + 1);
  const auto x = [&](double utilization) { return kLeft + utilization / widest * (kWidth - kLeft - kRight); };
  const auto y = [&](double percent) { return kHeight - kBottom - percent / 100 * (kHeight - kTop - kBottom); };
  Svg svg;
  svg.text(kLeft, 22, "Random task sets that are admitted", "font-size='15'");
  for (const int percent : {0, 25, 50, 75, 100}) {
    svg.line(kLeft, y(percent), kWidth - kRight, y(percent), percent == 0 ? "class='axis'" : "class='grid'");
    svg.text(kLeft - 8, y(percent) + 4, fmt::format("{} %", percent), "text-anchor='end'");
  }
  for (int row = 0; row <= measure.rows + 1; row += 2)
    svg.text(x(row * measure.step), y(0) + 19, fmt::format("{:.1f}", row * measure.step), "text-anchor='middle'");
  svg.text((kLeft + kWidth - kRight) / 2, kHeight - 12, measure.axis, "text-anchor='middle'");
  for (std::size_t i = 0; i < 4; ++i) {  // the last column is that of "on"
    const std::string_view colour = series_colour(i).fill;
    std::string path;
    for (const Row& row : rows)
      path += fmt::format("{}{:.1f} {:.1f} ", path.empty() ? "M" : "L", x(row.utilization), y(row.shares[i]));
    const std::string_view dashes = kColumns[i] == "auto" ? " stroke-dasharray='6 4'" : "";
    svg.path(path, fmt::format("fill='none' stroke='{}' stroke-width='2'{}", colour, dashes));
    const double height = y(28) + 17 * static_cast<double>(i);
    svg.line(kLeft + 12, height - 4, kLeft + 32, height - 4, fmt::format("stroke='{}' stroke-width='3'", colour));
    svg.text(kLeft + 38, height, kColumns[i]);
  }
  return svg.file(kWidth, kHeight);
}

int run(int argc, char** argv) {
  int seeds = 1000;
  std::string folder;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--seeds") == 0) seeds = std::max(1, std::atoi(argv[i + 1]));
    if (std::strcmp(argv[i], "--svg") == 0) folder = argv[i + 1];
  }
  const Topology machine = load_machine(test::source_path("configs/machines/h200x4.yaml")).value();
  for (const Measure& measure : kMeasures) {
    fmt::print("\n| {} | off | on | auto | not refused | on, nothing held |\n|---|---|---|---|---|---|\n",
               measure.name);
    std::vector<Row> rows;
    for (int i = 1; i <= measure.rows; ++i) {
      const Row& row = rows.emplace_back(row_of(machine, measure, i * measure.step, seeds));
      fmt::print("| {:.1f} | {:.1f} % | {:.1f} % | {:.1f} % | {:.1f} % | {:.1f} % |\n", row.utilization, row.shares[0],
                 row.shares[1], row.shares[2], row.shares[3], row.shares[4]);
    }
    if (!folder.empty()) std::ofstream(folder + "/" + std::string(measure.picture)) << drawing(measure, rows);
  }
  print_answers(machine, seeds);
  return 0;
}

}  // namespace
}  // namespace tutti::internal

int main(int argc, char** argv) { return tutti::internal::run(argc, argv); }
