#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <random>
#include <vector>

#include "sched/analyses/analysis.hpp"

namespace tutti::internal {

/// Shown by GoogleTest beside a failed expectation.
inline void PrintTo(const TaskTiming& task, std::ostream* out) {
  *out << "{C " << task.wcet.count() << ", T " << task.period.count() << ", D " << task.deadline.count() << ", J "
       << task.jitter.count() << ", P " << task.priority << "}";
}

}  // namespace tutti::internal

namespace tutti::internal::oracle {

/// A task in whole ns; the numbers stand for any unit.
[[nodiscard]] inline TaskTiming timing(std::int64_t wcet, std::int64_t period, std::int64_t deadline,
                                       std::int64_t jitter = 0) {
  return {Duration{wcet}, Duration{period}, Duration{deadline}, Duration{jitter}};
}

/// A task whose deadline is its period.
[[nodiscard]] inline TaskTiming implicit(std::int64_t wcet, std::int64_t period) {
  return timing(wcet, period, period);
}

/// The same set in another unit.
[[nodiscard]] inline std::vector<TaskTiming> scaled(std::vector<TaskTiming> tasks, std::int64_t factor) {
  for (TaskTiming& task : tasks) {
    for (Duration* time : {&task.wcet, &task.period, &task.deadline, &task.jitter}) *time *= factor;
    if (task.regions) task.regions = JobRegions{task.regions->longest * factor, task.regions->last * factor};
  }
  return tasks;
}

using Responses = std::vector<std::optional<Duration>>;

/// Worst responses in ns; below 0: none.
[[nodiscard]] inline Responses responses(const std::vector<std::int64_t>& ns) {
  Responses result;
  for (const std::int64_t time : ns) result.push_back(time < 0 ? std::nullopt : std::optional(Duration{time}));
  return result;
}

/// Whole numbers from `low` to `high`, the same on every machine (the standard distributions are not).
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  [[nodiscard]] std::int64_t roll(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }

 private:
  std::mt19937_64 engine_;
};

/// What random sets are drawn from, each bound included.
struct TimingRanges {
  std::int64_t tasks_min = 1, tasks_max = 3;
  std::int64_t wcet_min = 0, wcet_max = 3;
  std::int64_t period_min = 2, period_max = 7;
  bool implicit_deadlines = false;  ///< D = T
  std::int64_t deadline_min = 1, deadline_max = 10;
  std::int64_t jitter_max = 0;
};

[[nodiscard]] inline std::vector<TaskTiming> random_timings(Dice& dice, const TimingRanges& ranges) {
  std::vector<TaskTiming> tasks(static_cast<std::size_t>(dice.roll(ranges.tasks_min, ranges.tasks_max)));
  for (TaskTiming& task : tasks) {
    const std::int64_t period = dice.roll(ranges.period_min, ranges.period_max);
    const std::int64_t deadline =
        ranges.implicit_deadlines ? period : dice.roll(ranges.deadline_min, ranges.deadline_max);
    task = timing(dice.roll(ranges.wcet_min, ranges.wcet_max), period, deadline, dice.roll(0, ranges.jitter_max));
  }
  // Priorities from numbers drawn already, so that a seed gives the same sets as without them.
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const TaskTiming& next = tasks[(i + 1) % tasks.size()];
    tasks[i].priority = static_cast<int>((next.period + next.wcet).count() % 3);
  }
  return tasks;
}

}  // namespace tutti::internal::oracle
