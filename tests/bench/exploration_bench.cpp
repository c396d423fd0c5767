// How long an exploration takes: 10 periodic tasks expanded to 10,000 jobs without a choice, the same with release
// jitter and a range of costs, and 100,000 jobs from a CSV file by the shipped program.
//
// Tasks: periods of whole ms from 10 to 200, log-uniform; UUniFast at U = 0.37; D = T; EDF; no offsets. The seeds are
// counted up from 1 to the first set that is schedulable with its jitter of 100 us and costs of 80 to 100 %.
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/tutti/formats/job_csv.hpp"
#include "sched/analyses/utilization.hpp"
#include "sched/exploration/exploration.hpp"
#include "tests/bench/rows.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

using namespace bench;

constexpr std::size_t kTasks = 10;
constexpr std::size_t kJobs = 10'000;
constexpr std::size_t kFileJobs = 100'000;
constexpr double kUtilization = 0.37;

/// A set whose jobs have no choice.
std::vector<TaskTiming> draw_tasks(std::uint64_t seed) {
  test::Random random(seed);
  std::vector<TaskTiming> tasks;
  double left = kUtilization;
  for (std::size_t i = 0; i < kTasks; ++i) {
    const double share = random.share(left, kTasks - i);
    const auto period = std::chrono::milliseconds{std::lround(std::exp(random.real(std::log(10), std::log(200))))};
    TaskTiming& task = tasks.emplace_back();
    task.period = task.deadline = period;
    task.wcet = task.best_case = Duration{std::llround(share * as_ns(period))};
    task.arrivals = Arrivals::Periodic;
  }
  return tasks;
}

std::vector<TaskTiming> with_choice(std::vector<TaskTiming> tasks) {
  for (TaskTiming& task : tasks) {
    task.jitter = std::chrono::microseconds{100};
    task.best_case = task.wcet * 4 / 5;
  }
  return tasks;
}

/// The first schedulable set.
std::vector<TaskTiming> schedulable_tasks(std::uint64_t& seed) {
  for (seed = 1;; ++seed) {
    const std::vector<TaskTiming> tasks = draw_tasks(seed);
    if (explore(expand(with_choice(tasks), Policy::Edf, kFileJobs)).answer == Answer::Schedulable) return tasks;
  }
}

struct ProcessUse {
  double ms = 0;
  double megabytes = 0;
  int exit_code = -1;
};

/// One run of a program without its output: wall time from fork to end, largest resident size.
ProcessUse run_program(const std::string& program, const std::string& jobs) {
  const auto start = std::chrono::steady_clock::now();
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stdout) != nullptr)
      execl(program.c_str(), program.c_str(), "check", "--jobs", jobs.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  rusage use{};
  wait4(child, &status, 0, &use);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  return {took.count(), static_cast<double>(use.ru_maxrss) * 1024 / 1e6, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

/// The median of some runs; the largest memory.
ProcessUse median_run(const std::string& program, const std::string& jobs) {
  std::vector<ProcessUse> runs;
  for (int i = 0; i < 15; ++i) runs.push_back(run_program(program, jobs));
  std::ranges::sort(runs, {}, &ProcessUse::megabytes);
  const double megabytes = runs.back().megabytes;
  std::ranges::sort(runs, {}, &ProcessUse::ms);
  ProcessUse median = runs[runs.size() / 2];
  median.megabytes = megabytes;
  return median;
}

int run(int argc, char** argv) {
  initialize(argc, argv);
  std::uint64_t seed = 0;
  const std::vector<TaskTiming> fixed = schedulable_tasks(seed);
  const std::vector<TaskTiming> varied = with_choice(fixed);
  fmt::print("set of seed {}: {} tasks, U = {:.3f}\n", seed, fixed.size(), utilization(fixed));
  Exploration found;
  add_row("expand", [&](benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(expand(fixed, Policy::Edf, kJobs));
  });
  add_row("fixed", [&](benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(explore(expand(fixed, Policy::Edf, kJobs)));
  });
  add_row("varied", [&](benchmark::State& state) {
    for (auto _ : state) found = explore(expand(varied, Policy::Edf, kJobs));
  });
  Medians medians;
  benchmark::RunSpecifiedBenchmarks(&medians);

  const auto folder = std::filesystem::temp_directory_path() / fmt::format("tutti-bench-{}", getpid());
  std::filesystem::create_directories(folder);
  const std::string jobs = folder / "jobs.csv";
  const std::string program = std::filesystem::absolute(argv[0]).parent_path() / "../../apps/tutti/tutti";
  fmt::print("\nmedians; np-schedulability-analysis v3.0 needed 7.1, 330 and 23 ms, and 98 MB for the file\n\n");
  fmt::print("| what | jobs | ms | MB | verdict |\n|---|---|---|---|---|\n");
  fmt::print("| expansion alone | {} | {:.3f} | | |\n", kJobs, medians.us("expand") / 1e3);
  fmt::print("| expansion and fixed times | {} | {:.3f} | | schedulable |\n", kJobs, medians.us("fixed") / 1e3);
  fmt::print("| the same with 100 us of jitter, 80 to 100 % of cost: {} states | {} | {:.2f} | | schedulable |\n",
             found.states, kJobs, medians.us("varied") / 1e3);
  for (const auto& [what, tasks] : {std::pair{"fixed times", fixed}, std::pair{"jitter and costs", varied}}) {
    std::ofstream(jobs) << jobs_text(expand(tasks, Policy::Edf, kFileJobs));
    const ProcessUse use = median_run(program, jobs);
    fmt::print("| tutti check --jobs, {}; wall time | {} | {:.1f} | {:.1f} | {} |\n", what, kFileJobs, use.ms,
               use.megabytes, use.exit_code == 0 ? "schedulable" : fmt::format("exit code {}", use.exit_code));
  }
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace tutti::internal

int main(int argc, char** argv) { return tutti::internal::run(argc, argv); }
