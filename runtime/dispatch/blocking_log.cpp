#include "runtime/dispatch/blocking_log.hpp"

namespace tutti::internal {

void BlockingLog::add(TaskId task, Duration excess) {
  if (excess <= Duration{0}) return;
  Duration& of_task = excess_[task.index()];
  if (of_task == Duration{0}) touched_.push_back(task);
  of_task += excess;
  total_ += excess;
  if (!worst_ || of_task > excess_[worst_->index()]) worst_ = task;
}

std::optional<TaskId> BlockingLog::worst_beside(TaskId own_task, Duration own) const {
  std::optional<TaskId> worst;
  Duration most{};
  for (const TaskId task : touched_) {
    const Duration excess = excess_[task.index()] - (task == own_task ? own : Duration{0});
    if (excess <= most) continue;
    most = excess;
    worst = task;
  }
  return worst;
}

void BlockingLog::clear() {
  for (const TaskId task : touched_) excess_[task.index()] = {};
  touched_.clear();
  worst_.reset();
  total_ = {};
}

}  // namespace tutti::internal
