#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/ids.hpp"
#include "model/units.hpp"
#include "sched/analyses/analysis.hpp"
#include "sched/analyses/np_edf_slack.hpp"
#include "sched/analyses/np_fp_points.hpp"
#include "sched/tasks/policy.hpp"

namespace tutti {

/// A set of tasks that changes one task at a time while it runs, and is schedulable at every moment.
///
/// A request is answered as the full test of the policy would answer for all tasks that count: `np_edf_demand` or
/// `np_fp_response_time`. One that is refused leaves everything as it was.
///
/// A task that is removed or changed has promises to keep and has put off the work of others, so it counts on with its
/// old parameters, and whatever is added meanwhile is tested beside it. It stops to count once both hold:
///   - max(T, D) + J has passed since its last arrival;
///   - the machine was idle since that job became ready, or the longest busy period of the tasks that count has passed.
/// The second is needed: tasks (C, T) = (4, 20), (4, 22), (4, 100) are schedulable with A = (5, 10) and with B = (6,
/// 12), but where the four start together, A's last job arrives at 0 and B's first at 10, one job ends at 23 instead
/// of 22. After an idle moment only jobs of the new set follow, as if they were the first.
class OnlineAdmission {
 public:
  explicit OnlineAdmission(Policy policy) : policy_(policy), points_(policy) {}

  /// What a request came to; `task` names the new task from now on, where it was taken in.
  struct Outcome {
    Answer answer = Answer::Unknown;
    std::optional<TaskId> task;
  };

  /// Takes the task in if all that counts stays schedulable with it; its first job may then arrive at once.
  /// @param now       the time; never earlier than that of a request before.
  /// @param position  of equal priorities the lower position is higher, in one position what came first; below 2^32
  Outcome add(const TaskTiming& timing, Duration now, std::size_t position = 0);

  /// Lets no more jobs of the task arrive. This is never refused.
  /// @param last_arrival  of its jobs; nothing where none arrived.
  /// @pre  the task was taken in and not removed or changed since.
  void remove(TaskId task, Duration now, std::optional<Duration> last_arrival);

  /// Removes the task and takes in another one in its place, or does neither.
  /// @pre  as for `remove`.
  Outcome change(TaskId task, const TaskTiming& timing, Duration now, std::optional<Duration> last_arrival,
                 std::size_t position = 0);

  /// Says that at this moment no job was ready or running.
  void idle_at(Duration moment);

  /// All that counts at this time, by position, then in the order in which it came.
  [[nodiscard]] std::vector<TaskTiming> counted(Duration now);

 private:
  struct Entry {
    TaskTiming timing;
    std::uint64_t order = 0;  ///< position, then coming; 0 where the slot is free
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
  std::optional<std::optional<Wide>> busy_period_;  ///< of all that counts; forgotten at each change
  SlackBuckets buckets_;                            ///< under EDF
  PriorityPoints points_;                           ///< under fixed priorities
};

}  // namespace tutti
