#include "runtime/dispatch/run_options.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "model/base/wide.hpp"
#include "runtime/dispatch/due_queue.hpp"

namespace tutti::internal {
namespace {

constexpr Duration kForever = Duration::max();

/// The instant at which one hyperperiod behind the last offset is over; nothing where that overflows a Duration.
std::optional<Duration> end_of_hyperperiod(const TaskSet& set) {
  Wide hyperperiod = 1;
  Duration last_offset{};
  for (const Task& task : set.tasks) {
    hyperperiod = common_multiple(hyperperiod, task.period.count());
    last_offset = std::max(last_offset, task.offset);
  }
  if (hyperperiod > kForever.count() - last_offset.count()) return std::nullopt;
  return last_offset + Duration{static_cast<std::int64_t>(hyperperiod)};
}

}  // namespace

Expected<std::vector<std::uint64_t>> jobs_per_task(const TaskSet& set, const RunOptions& options) {
  std::vector<std::uint64_t> jobs(set.tasks.size(), 0);
  if (options.endless) return std::vector(set.tasks.size(), std::numeric_limits<std::uint64_t>::max());
  std::uint64_t most = options.jobs.value_or(std::numeric_limits<std::uint64_t>::max());
  Duration end = options.arrivals_before.value_or(kForever);
  if (!options.jobs && !options.arrivals_before) {
    most = kDefaultJobs;
    end = end_of_hyperperiod(set).value_or(kForever);
  }
  DueQueue next(set.tasks.size());  // arrivals
  for (std::size_t task = 0; task < set.tasks.size(); ++task) next.set(task, set.tasks[task].offset);
  for (std::uint64_t total = 0; total < most && !set.tasks.empty(); ++total) {
    const std::size_t task = next.first();
    const Duration first = next.earliest();
    if (first >= end && (end != kForever || !options.jobs)) break;
    if (first == kForever || first > kForever - set.tasks[task].deadline) {
      if (!options.jobs && !options.arrivals_before) break;
      return invalid_input(fmt::format(
          "job {} of task '{}' would be due more than 292 years (2^63 ns) after the start; ask for less with "
          "--jobs or --for",
          jobs[task], set.tasks[task].name));
    }
    if (total >= kMostJobs && options.keeps_jobs) {
      return invalid_input(fmt::format(
          "a run of more than {} jobs keeps too many records; ask for fewer with --jobs or --for", kMostJobs));
    }
    ++jobs[task];
    const Duration period = set.tasks[task].period;
    next.set(task, first > kForever - period ? kForever : first + period);
  }
  return jobs;
}

}  // namespace tutti::internal
