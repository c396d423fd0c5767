#include "sched/tasks/critical_window.hpp"

#include <algorithm>
#include <optional>

#include "model/base/expects.hpp"

namespace tutti::internal {

CriticalWindowTable::CriticalWindowTable(std::span<const TaskTiming> tasks)
    : tasks_(tasks.begin(), tasks.end()), next_(tasks.size(), 0) {
  TUTTI_EXPECTS(!tasks.empty(), "a table has jobs");
  window_.reserve(tasks.size());
}

Duration CriticalWindowTable::ready(std::size_t task, std::uint64_t index) const {
  const TaskTiming& timing = tasks_[task];
  return timing.offset + timing.jitter + timing.period * static_cast<std::int64_t>(index);
}

Duration CriticalWindowTable::due(std::size_t task, std::uint64_t index) const {
  const TaskTiming& timing = tasks_[task];
  return timing.offset + timing.deadline + timing.period * static_cast<std::int64_t>(index);
}

std::uint64_t CriticalWindowTable::first_after(std::size_t task, Duration instant) const {
  const Duration first = ready(task, 0);
  return instant < first ? 0 : static_cast<std::uint64_t>((instant - first) / tasks_[task].period) + 1;
}

bool CriticalWindowTable::leaves_window(std::size_t task) {
  window_.clear();
  for (std::size_t other = 0; other < tasks_.size(); ++other)
    if (other != task) window_.push_back({due(other, first_after(other, now_)), tasks_[other].wcet});
  std::ranges::sort(window_, std::greater(), &WindowJob::deadline);
  Duration latest_start = Duration::max();
  for (const WindowJob& job : window_) latest_start = std::min(latest_start, job.deadline) - job.wcet;
  return now_ + tasks_[task].wcet <= latest_start;
}

TableEntry CriticalWindowTable::next() {
  for (;;) {
    std::optional<std::size_t> head;
    Duration next_ready = Duration::max();
    for (std::size_t task = 0; task < tasks_.size(); ++task) {
      if (ready(task, next_[task]) <= now_ && (!head || due(task, next_[task]) < due(*head, next_[*head]))) head = task;
      next_ready = std::min(next_ready, ready(task, std::max(next_[task], first_after(task, now_))));
    }
    if (head) {
      const Duration wcet = tasks_[*head].wcet;
      if (now_ + wcet > due(*head, next_[*head]) || leaves_window(*head)) {
        const TableEntry entry{TaskId{*head}, next_[*head]++, now_};
        now_ += wcet;
        return entry;
      }
    }
    now_ = next_ready;
  }
}

}  // namespace tutti::internal
