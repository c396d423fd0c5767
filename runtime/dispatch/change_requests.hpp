#pragma once
#include <mutex>
#include <optional>
#include <vector>

#include "sched/admission/changing_task_set.hpp"

namespace tutti {

/// Requests to change a task set while it runs. Any thread may post one; the dispatcher takes them.
class ChangeRequests {
 public:
  /// It is answered at its time, or as soon after as the run comes to it: behind the job that has the machine, and
  /// within 50 ms where none has.
  void post(const TaskChange& change);

  /// When the next one is due.
  [[nodiscard]] std::optional<Duration> next() const;
  /// The next one, if it is due by then.
  [[nodiscard]] std::optional<TaskChange> take_due(Duration now);

 private:
  mutable std::mutex mutex_;
  std::vector<TaskChange> open_;  ///< by rising time, in the order of posting
};

}  // namespace tutti
