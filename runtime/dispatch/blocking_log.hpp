#pragma once
#include <optional>
#include <vector>

#include "model/base/ids.hpp"
#include "model/base/units.hpp"

namespace tutti::internal {

/// By how much the jobs of each task were over their Wcet since the machine was idle last: time that they took from the
/// jobs behind them.
class BlockingLog {
 public:
  BlockingLog() = default;
  explicit BlockingLog(std::size_t tasks) : excess_(tasks) { touched_.reserve(tasks); }

  /// Ignores an excess that is not above 0.
  void add(TaskId task, Duration excess);
  [[nodiscard]] Duration total() const { return total_; }
  /// The task that took the most; nothing where none was over its Wcet.
  [[nodiscard]] std::optional<TaskId> worst() const { return worst_; }
  /// The same for a job, which has added part of its task's excess itself.
  [[nodiscard]] std::optional<TaskId> worst_beside(TaskId task, Duration own) const;
  /// The machine is idle.
  void clear();

 private:
  std::vector<Duration> excess_;  // [tasks]
  std::vector<TaskId> touched_;
  std::optional<TaskId> worst_;
  Duration total_{};
};

}  // namespace tutti::internal
