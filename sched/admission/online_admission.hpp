#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/base/ids.hpp"
#include "model/base/units.hpp"
#include "sched/analyses/analysis.hpp"
#include "sched/analyses/np_edf_slack.hpp"
#include "sched/analyses/np_fp_points.hpp"
#include "sched/tasks/policy.hpp"

namespace tutti::internal {

/// A set of tasks that changes one task at a time while it runs, and is schedulable at every moment.
///
/// A request is answered as the full test of the policy would answer for all tasks that count: `np_edf_demand` or
/// `np_fp_response_time`. A refused request changes nothing.
///
/// A removed or changed task may still have a job to finish and may have delayed other jobs. So it continues to count
/// with its old parameters, and a task added meanwhile is tested together with it. It stops counting once both hold:
///   - max(T, D) + J has passed since its last arrival;
///   - the machine was idle since that job became ready, or the longest busy period of the tasks that count has passed.
/// The second is needed: tasks (C, T) = (4, 20), (4, 22), (4, 100) are schedulable with A = (5, 10) and with B = (6,
/// 12), but where the four start together, A's last job arrives at 0 and B's first at 10, one job ends at 23 instead
/// of 22. After an idle moment only jobs of the new set follow, as if they were the first.
class OnlineAdmission {
 public:
  explicit OnlineAdmission(Policy policy) : policy_(policy), points_(policy) {}

  /// Answer to a request; `task` is the id of the new task, where it was admitted.
  struct Outcome {
    Answer answer = Answer::Unknown;
    std::optional<TaskId> task;
  };

  /// Adds the task if all tasks that count stay schedulable with it; its first job may then arrive at once.
  /// @param now       the time; never earlier than that of a request before.
  /// @param position  tie-break of equal priorities: the lower position first, then the task added first; below 2^32
  Outcome add(const TaskTiming& timing, Duration now, std::size_t position = 0);

  /// Lets no more jobs of the task arrive. This is never refused.
  /// @param last_arrival  of its jobs; nothing where none arrived.
  /// @pre  the task was added and not removed or changed since.
  void remove(TaskId task, Duration now, std::optional<Duration> last_arrival);

  /// Removes the task and adds another one in its place, or does neither.
  /// @pre  as for `remove`.
  Outcome change(TaskId task, const TaskTiming& timing, Duration now, std::optional<Duration> last_arrival,
                 std::size_t position = 0);

  /// Records an idle moment: no job was ready or running then.
  void idle_at(Duration moment);

  /// The tasks that count at this time, by position, then in the order in which they were added.
  [[nodiscard]] std::vector<TaskTiming> counted(Duration now);

 private:
  struct Entry {
    TaskTiming timing;
    std::uint64_t order = 0;  ///< position, then order of addition; 0 where the slot is free
    bool leaving = false;
    Duration last_arrival{};  ///< of one that leaves
  };

  [[nodiscard]] bool may_stop(const Entry& entry, Duration now);
  void let_go(Duration now);
  [[nodiscard]] Answer test_with(const TaskTiming& timing, std::uint64_t order);
  [[nodiscard]] std::vector<TaskTiming> all_tasks() const;
  TaskId insert(const TaskTiming& timing, std::uint64_t order);
  void take_out(std::size_t slot);
  void insert(std::size_t slot);

  Policy policy_;
  std::vector<Entry> entries_;  ///< by TaskId
  std::vector<std::size_t> free_;
  std::vector<std::size_t> leaving_;
  std::uint64_t arrivals_ = 0;
  std::optional<Duration> idle_;
  std::optional<std::optional<Wide>> busy_period_;  ///< of all tasks that count; reset at each change
  SlackBuckets buckets_;                            ///< under EDF
  PriorityPoints points_;                           ///< under fixed priorities
};

}  // namespace tutti::internal
