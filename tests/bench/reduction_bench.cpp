// How many sets of strictly periodic tasks with release jitter of half a period an exploration decides, and in what
// time: with all orders of the jobs alone, and with partial-order reduction where these are too many.
//
// Tasks: UUniFast; periods from 10, 20, 50, 100, 200 and 1000 ms, drawn evenly, the next shorter one as long as a job
// would take more than 2.5 ms; J = T / 2, D = T + J, costs of 50 to 100 %, no offsets.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "sched/exploration/exploration.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

constexpr std::array kPeriods{10, 20, 50, 100, 200, 1000};
/// What all orders may cost before they are left out of account: that of an answer without responses.
constexpr std::int64_t kFewVisits = kVisitsPerWalk / 64;
/// No job may block the shortest period for longer.
constexpr Duration kLongest = std::chrono::microseconds{2500};

std::vector<TaskTiming> draw_tasks(std::uint64_t seed, std::size_t count, double utilization) {
  test::Random random(seed);
  std::vector<TaskTiming> tasks;
  double left = utilization;
  for (std::size_t i = 0; i < count; ++i) {
    const double share = random.share(left, count - i);
    TaskTiming& task = tasks.emplace_back();
    for (std::size_t drawn = random.below(kPeriods.size());; --drawn) {
      task.period = std::chrono::milliseconds{kPeriods[drawn]};
      task.wcet = Duration{std::llround(share * static_cast<double>(task.period.count()))};
      if (drawn == 0 || task.wcet <= kLongest) break;
    }
    task.jitter = task.period / 2;
    task.deadline = task.period + task.jitter;
    task.best_case = task.wcet / 2;
    task.arrivals = Arrivals::Periodic;
  }
  return tasks;
}

struct Row {
  int in_time = 0, late = 0, open = 0;
  double ms = 0, longest_ms = 0;

  void add(const std::vector<TaskTiming>& tasks, Policy policy, const ExplorationLimits& limits) {
    const auto start = std::chrono::steady_clock::now();
    const Exploration found = explore(tasks, policy, limits);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    ++(found.answer == Answer::Schedulable ? in_time : found.answer == Answer::Unknown ? open : late);
    ms += took.count();
    longest_ms = std::max(longest_ms, took.count());
  }
  [[nodiscard]] std::string text(int sets) const {
    return fmt::format("{} | {} | {} | {:.0f} | {:.0f} |", in_time, late, open, ms / std::max(1, sets), longest_ms);
  }
};

int run(int argc, char** argv) {
  int sets = 10;
  for (int i = 1; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], "--sets") == 0) sets = std::max(1, std::atoi(argv[i + 1]));
  fmt::print(
      "{} sets a row; a: all orders, {} visits; b: without orders after the first {}\n\n| policy | tasks | U | a: in "
      "time "
      "| late | open | ms | longest ms | b: in time | late | open | ms | longest ms "
      "|\n|---|---|---|---|---|---|---|---|---|"
      "---|---|---|---|\n",
      sets, kVisitsPerWalk, kFewVisits);
  for (const Policy policy : {Policy::Edf, Policy::Rm}) {
    for (const std::size_t count : {10, 20, 30, 50}) {
      for (const double utilization : {0.3, 0.5, 0.7, 0.9}) {
        Row all;
        Row reduced;
        for (int set = 1; set <= sets; ++set) {
          const auto tasks = draw_tasks(static_cast<std::uint64_t>(set), count, utilization);
          all.add(tasks, policy, {.visits = kVisitsPerWalk, .reduced_visits = 0});
          reduced.add(tasks, policy, {.visits = kFewVisits});
        }
        fmt::print("| {} | {} | {:.1f} | {} {}\n", to_string(policy), count, utilization, all.text(sets),
                   reduced.text(sets));
        std::fflush(stdout);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace tutti::internal

int main(int argc, char** argv) { return tutti::internal::run(argc, argv); }
