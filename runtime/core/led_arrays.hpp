#pragma once
#include <utility>
#include <vector>

#include "runtime/core/led_jobs.hpp"

namespace tutti::internal {

/// Owns what a `LedJobs` is a view of, in memory of the host.
class LedArrays {
 public:
  /// @param tasks  with the places of their sets
  explicit LedArrays(std::vector<LedTask> tasks)
      : tasks_(std::move(tasks)), states_(tasks_.size()), instants_(2 * tasks_.size()) {
    std::size_t sets = 0;
    for (const LedTask& task : tasks_) sets += task.sets;
    waiting_.resize(sets);
    set_due_.resize(sets);
  }

  [[nodiscard]] LedJobs jobs(bool by_deadline) {
    return {by_deadline,      static_cast<std::uint32_t>(tasks_.size()),
            tasks_.data(),    states_.data(),
            waiting_.data(),  set_due_.data(),
            instants_.data(), instants_.data() + tasks_.size()};
  }
  [[nodiscard]] const std::vector<LedTask>& tasks() const { return tasks_; }
  /// Buffer sets of all tasks.
  [[nodiscard]] std::size_t sets() const { return set_due_.size(); }

 private:
  std::vector<LedTask> tasks_;
  std::vector<LedTaskState> states_;
  std::vector<LedJob> waiting_;
  std::vector<Ns> set_due_, instants_;
};

}  // namespace tutti::internal
