#include "sched/exploration/job_set.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/base/expects.hpp"
#include "model/base/wide.hpp"
#include "sched/tasks/priority.hpp"

namespace tutti::internal {
namespace {

/// The least common multiple; nothing where it is out of reach.
std::optional<std::int64_t> hyperperiod_of(std::span<const TaskTiming> tasks) {
  Wide hyperperiod = 1;
  for (const TaskTiming& task : tasks) hyperperiod = common_multiple(hyperperiod, task.period.count());
  if (hyperperiod > kTimeInReach.count()) return std::nullopt;
  return static_cast<std::int64_t>(hyperperiod);
}

std::int64_t priority_of(const TaskTiming& task, Policy policy, std::int64_t arrival) {
  return is_by_deadline(policy) ? arrival + task.deadline.count() : priority_rank(task, policy);
}

}  // namespace

Expected<Repetition> repetition_of(std::span<const TaskTiming> tasks, std::size_t most_jobs) {
  const std::optional<std::int64_t> hyperperiod = hyperperiod_of(tasks);
  if (!hyperperiod) {
    return invalid_input(
        "the hyperperiod is longer than 146 years; periods with a small common multiple would have a shorter one");
  }
  std::int64_t last_offset = 0;
  for (const TaskTiming& task : tasks) last_offset = std::max(last_offset, task.offset.count());
  Wide startup = 0;
  Wide per_round = 0;
  for (const TaskTiming& task : tasks) {
    startup += ceil_div(last_offset - task.offset.count(), task.period.count());
    per_round += *hyperperiod / task.period.count();
  }
  const auto most = static_cast<Wide>(most_jobs);
  if (per_round > most) {
    return invalid_input(
        fmt::format("the hyperperiod of {} has more than {} jobs; periods with a smaller common "
                    "multiple would have fewer",
                    to_string(Duration{*hyperperiod}), most_jobs));
  }
  if (startup > most) {
    return invalid_input(
        fmt::format("more than {} jobs arrive before the last task's offset; a smaller offset would do", most_jobs));
  }
  return Repetition{static_cast<std::size_t>(startup), static_cast<std::size_t>(per_round), Duration{*hyperperiod}};
}

PeriodicJobs::PeriodicJobs(std::span<const TaskTiming> tasks, Policy policy)
    : tasks_(tasks.begin(), tasks.end()), ids_(tasks.size(), 0), policy_(policy) {
  TUTTI_EXPECTS(!tasks.empty() && in_reach(tasks), "there are tasks, and their numbers are in reach");
  for (std::size_t i = 0; i < tasks.size(); ++i)
    heap_.push_back({tasks[i].offset.count(), static_cast<std::uint32_t>(i)});
  std::make_heap(heap_.begin(), heap_.end(), later);
}

bool PeriodicJobs::later(const Source& a, const Source& b) {
  return a.arrival != b.arrival ? a.arrival > b.arrival : a.task > b.task;
}

/// Moves the first entry of the heap, which has grown later, to its place.
void PeriodicJobs::sift_down() {
  const Source moved = heap_.front();
  std::size_t at = 0;
  for (;;) {
    std::size_t child = 2 * at + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && later(heap_[child], heap_[child + 1])) ++child;
    if (!later(moved, heap_[child])) break;
    heap_[at] = heap_[child];
    at = child;
  }
  heap_[at] = moved;
}

std::optional<JobTiming> PeriodicJobs::next() {
  const auto [arrival, index] = heap_.front();
  const TaskTiming& task = tasks_[index];
  if (arrival > kTimeInReach.count()) return std::nullopt;
  const JobTiming job{Duration{arrival},
                      Duration{arrival} + task.jitter,
                      task.best_case,
                      task.wcet,
                      Duration{arrival} + task.deadline,
                      priority_of(task, policy_, arrival),
                      static_cast<std::int64_t>(index),
                      ids_[index]++};
  heap_.front().arrival += task.period.count();
  sift_down();
  return job;
}

bool in_reach(std::span<const TaskTiming> tasks) {
  return std::ranges::all_of(tasks, [](const TaskTiming& task) {
    return std::max({task.wcet, task.period, task.deadline, task.jitter, task.offset}) <= kTimeInReach;
  });
}

std::vector<JobTiming> expand(std::span<const TaskTiming> tasks, Policy policy, std::size_t count) {
  std::vector<JobTiming> jobs;
  if (tasks.empty()) return jobs;
  jobs.reserve(count);
  PeriodicJobs source(tasks, policy);
  while (jobs.size() < count) {
    const std::optional<JobTiming> job = source.next();
    if (!job) break;
    jobs.push_back(*job);
  }
  return jobs;
}

}  // namespace tutti::internal
