#pragma once
#include <mutex>
#include <optional>
#include <vector>

#include "sched/admission/changing_task_set.hpp"

namespace tutti::internal {

/// Requests to change a task set while it runs. Any thread may post one; the dispatcher takes them.
class ChangeRequests {
 public:
  /// Posts a request. The run answers it at its time or soon after: behind the job that has the machine, or within 50
  /// ms if no job has it.
  void post(const TaskChange& change);

  /// When the next request is due.
  [[nodiscard]] std::optional<Duration> next() const;
  /// The next request, if it is due by `now`.
  [[nodiscard]] std::optional<TaskChange> take_due(Duration now);

 private:
  mutable std::mutex mutex_;
  std::vector<TaskChange> open_;  ///< by rising time, in the order of posting
};

}  // namespace tutti::internal
