#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/base/ids.hpp"
#include "model/base/units.hpp"
#include "sched/tasks/task_timing.hpp"

namespace tutti::internal {

/// A job in a time table.
struct TableEntry {
  TaskId task;
  std::uint64_t index = 0;  ///< of the task's jobs, from 0
  Duration start{};

  friend bool operator==(const TableEntry&, const TableEntry&) = default;
};

/// The time table of `policy: cw_edf`: at which instant each job of strictly periodic tasks starts, for ever.
///
/// At a decision the ready job with the earliest deadline starts where, after its Wcet, all of the critical window can
/// still be in time: the next job of every other task that is not ready yet, run in the order of deadlines and ended by
/// them. Otherwise the machine waits until the next job is ready, though a job is. A job that can no longer meet its
/// deadline starts at once.
///
/// The table has every job ready as late as it may be, and gives it its Wcet. The analysis and the dispatcher read one
/// table: no job starts before its instant, so that one that ends early, or is ready early, changes nothing.
///
/// Pure; `next` allocates nothing. A decision takes n log n steps for n tasks.
/// @source [NF16] section 5, critical-window EDF
class CriticalWindowTable {
 public:
  /// @pre  at least one task; no two regions in a job.
  explicit CriticalWindowTable(std::span<const TaskTiming> tasks);

  /// The next job that starts, in the order of the starts.
  /// @pre  its times are in reach: below 2^62 ns.
  [[nodiscard]] TableEntry next();

  /// When the machine is free after the jobs so far.
  [[nodiscard]] Duration free_at() const { return now_; }
  /// Index of the next job of a task.
  [[nodiscard]] std::uint64_t next_index(std::size_t task) const { return next_[task]; }

 private:
  struct WindowJob {
    Duration deadline, wcet;
  };

  [[nodiscard]] Duration ready(std::size_t task, std::uint64_t index) const;
  [[nodiscard]] Duration due(std::size_t task, std::uint64_t index) const;
  /// Index of the first job of a task that is ready after this instant.
  [[nodiscard]] std::uint64_t first_after(std::size_t task, Duration instant) const;
  [[nodiscard]] bool leaves_window(std::size_t task);

  std::vector<TaskTiming> tasks_;
  std::vector<std::uint64_t> next_;  ///< [tasks] index of the job that runs next
  std::vector<WindowJob> window_;
  Duration now_{};
};

}  // namespace tutti::internal
