#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/base/ids.hpp"
#include "model/base/units.hpp"
#include "sched/tasks/policy.hpp"

namespace tutti::internal {

/// A job that waits for the machine.
struct ReadyJob {
  TaskId task;
  std::uint64_t index = 0;  ///< of the task's jobs, from 0
  Duration arrival{};
  Duration deadline{};  ///< absolute
  Duration period{};    ///< of its task
  Duration relative_deadline{};
  int priority = 0;  ///< of its task, under `given`

  friend bool operator==(const ReadyJob&, const ReadyJob&) = default;
};

/// The jobs that are ready, most urgent first: by absolute deadline (EDF), period (RM), relative deadline (DM) or given
/// priority; ties by the order of the tasks, then of the jobs.
///
/// A pure data structure of fixed capacity: `push` and `pop` allocate nothing.
class ReadyQueue {
 public:
  ReadyQueue(Policy policy, std::size_t capacity);

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] std::size_t size() const { return heap_.size(); }
  /// @pre fewer jobs than the capacity are in it.
  void push(const ReadyJob& job);
  /// The job that `pop` would return. @pre not empty.
  [[nodiscard]] const ReadyJob& next() const { return heap_.front(); }
  /// @pre not empty.
  ReadyJob pop();
  /// Takes this job out, wherever it stands.
  /// @return  nothing where it is not in the queue.
  std::optional<ReadyJob> take(TaskId task, std::uint64_t index);
  /// In no order.
  [[nodiscard]] std::span<const ReadyJob> jobs() const { return heap_; }
  /// Whether one of its jobs would go before `job`.
  [[nodiscard]] bool has_more_urgent_than(const ReadyJob& job) const;

 private:
  Policy policy_;
  std::size_t capacity_;
  std::vector<ReadyJob> heap_;
};

}  // namespace tutti::internal
