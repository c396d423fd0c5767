#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "sched/analyses/analysis.hpp"
#include "sched/overlap/operations.hpp"
#include "sched/tasks/task.hpp"

namespace tutti::internal {

/// When the operations of a job are released and due.
///
/// An operation has a guard, an instant counted from the job's arrival, and is due its local deadline after that: the
/// guards of what follows it in the job. Held until its guard, it is a sporadic task of its own on its resource,
/// without jitter but that of the task where its guard is the arrival. Where it may start as soon as what is before it
/// is over, all that may be sooner is jitter: it is ready between the arrival and its guard.
/// @source [SL96] release guards; [TC94] jitter
struct LocalDeadlines {
  std::vector<Duration> guards;     ///< [operations] from the arrival
  std::vector<Duration> deadlines;  ///< [operations] from the guard; > 0
  bool held = true;                 ///< operations wait for their guards

  /// When an operation is due, counted from the soonest instant at which it may be ready: its rank under fixed
  /// priorities.
  [[nodiscard]] Duration from_soonest(std::size_t operation) const {
    return held ? deadlines[operation] : add_saturating(guards[operation], deadlines[operation]);
  }

  friend bool operator==(const LocalDeadlines&, const LocalDeadlines&) = default;
};

/// The operations of a set as tasks of each resource, for the tests of `analyses/`: where each resource, as a
/// non-preemptive processor of its own, keeps all its local deadlines, every job keeps its deadline.
///
/// Proof: the first operations of a job are released as the task's jobs are. Suppose that some operation is the first
/// ever to be late. All that were due before it were in time, so all operations of its resource were released at their
/// guards, a period apart or more, or not held between the arrivals of their jobs and their guards, and the test of its
/// resource says that it is in time. A job's operations end at most
/// at the guards of the next ones, and the last at most at its deadline.
/// @param deadlines  sum up to the task's deadline at most along every stream of every step
/// @return [resources][its operations, in their order]
[[nodiscard]] std::vector<std::vector<TaskTiming>> timings_by_resource(const TaskSet& set,
                                                                       const OperationSet& operations,
                                                                       const LocalDeadlines& deadlines);

/// The policy by which a resource serves operations: EDF, or fixed priorities by local deadline.
[[nodiscard]] Policy policy_of_resources(Policy policy);

/// Whether no resource is in demand for more than all the time, whatever runs beside. No local deadlines are kept where
/// one is, or where a longest time is beyond what 64 bits hold.
/// @necessary
[[nodiscard]] bool fits(const TaskSet& set, const OperationSet& operations);

/// Whether every resource keeps the local deadlines, held or not as they say.
/// @sufficient
[[nodiscard]] bool keep(const TaskSet& set, const OperationSet& operations, const LocalDeadlines& deadlines);

/// Local deadlines of at least these times, as early as the jobs allow: a step begins when the one before it must be
/// over.
/// @param times  [operations] > 0
[[nodiscard]] LocalDeadlines at_least(const OperationSet& operations, std::span<const Duration> times);

/// Local deadlines in proportion to longest times, whether any resource keeps them or not; nothing is held.
[[nodiscard]] LocalDeadlines in_proportion(const TaskSet& set, const OperationSet& operations);

/// Looks for local deadlines that every resource keeps.
///
/// Every operation has at least its longest time, and the task's jitter where it is the first. What is left of a
/// deadline is handed out by weights; those of resources that fail grow, round by round. The search ends where a test
/// cannot say within its budget; there are fewer rounds where tests must look at many jobs.
/// @return  nothing where none were found, which proves nothing.
/// @heuristic
[[nodiscard]] std::optional<LocalDeadlines> find_local_deadlines(const TaskSet& set, const OperationSet& operations);

}  // namespace tutti::internal
