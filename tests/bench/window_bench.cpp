// Which synchronous periodic sets non-preemptive EDF refuses and critical-window EDF (`cw_edf`) schedules.
//
// Tasks: UUniFast; periods from 1, 2, 4, 5, 8, 10, 20, 25, 40, 50, 100 and 200 ms, drawn evenly; D = T, no offsets, no
// jitter; every job takes its Wcet.
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "sched/exploration/exploration.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

constexpr std::array kPeriods{1, 2, 4, 5, 8, 10, 20, 25, 40, 50, 100, 200};

std::vector<TaskTiming> draw_tasks(std::uint64_t seed, std::size_t count, double utilization) {
  test::Random random(seed);
  std::vector<TaskTiming> tasks;
  double left = utilization;
  for (std::size_t i = 0; i < count; ++i) {
    const double share = random.share(left, count - i);
    TaskTiming& task = tasks.emplace_back();
    task.period = task.deadline = std::chrono::milliseconds{kPeriods[random.below(kPeriods.size())]};
    task.wcet = task.best_case = Duration{std::llround(share * static_cast<double>(task.period.count()))};
    task.arrivals = Arrivals::Periodic;
  }
  return tasks;
}

/// Whether a job fits between two of the shortest period at all.
bool may_fit(const std::vector<TaskTiming>& tasks) {
  for (const TaskTiming& longer : tasks)
    for (const TaskTiming& task : tasks)
      if (&task != &longer && longer.wcet > 2 * (task.period - task.wcet)) return false;
  return true;
}

int run(int argc, char** argv) {
  int sets = 1000;
  for (int i = 1; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], "--sets") == 0) sets = std::atoi(argv[i + 1]);
  fmt::print(
      "{} sets a row\n\n| tasks | U | edf | cw_edf | refused by edf that may fit | of these cw_edf, % | edf alone |\n"
      "|---|---|---|---|---|---|---|\n",
      sets);
  for (const std::size_t count : {3, 5, 10}) {
    for (const double utilization : {0.3, 0.5, 0.7, 0.9}) {
      int edf = 0, both = 0, window = 0, refused = 0;
      for (int set = 1; set <= sets; ++set) {
        const auto tasks = draw_tasks(static_cast<std::uint64_t>(set), count, utilization);
        const bool by_edf = explore(tasks, Policy::Edf).answer == Answer::Schedulable;
        const bool by_window = explore(tasks, Policy::CwEdf).answer == Answer::Schedulable;
        edf += by_edf ? 1 : 0;
        window += by_window ? 1 : 0;
        both += by_edf && by_window ? 1 : 0;
        refused += !by_edf && may_fit(tasks) ? 1 : 0;
      }
      fmt::print("| {} | {:.1f} | {} | {} | {} | {:.0f} | {} |\n", count, utilization, edf, window, refused,
                 refused == 0 ? 0 : 100.0 * (window - both) / refused, edf - both);
    }
  }
  return 0;
}

}  // namespace
}  // namespace tutti::internal

int main(int argc, char** argv) { return tutti::internal::run(argc, argv); }
