#pragma once
#include <span>
#include <vector>

#include "sched/analyses/analysis.hpp"

namespace tutti::internal {

/// How long the machine may be held up beside its jobs is known in two ways: for one job (`TaskTiming::held_up`, a part
/// of its Wcet) and for all jobs of one busy period (`TaskTiming::held_up_together`). Each is a bound, so a proof with
/// either of them holds, and the smaller response is one.
///
/// **Together.** The hold-ups of a busy period are one more job: it arrives as the busy period begins, and is as urgent
/// as any. Say a job of the busy period ends at t. Until then the machine did what is at least as urgent, one blocker,
/// and hold-ups of H at most. With all of H in front, the job's last region starts no earlier, and more jobs that go
/// first may have arrived; so no schedule is left out (`held_up_together`). Sets with this one job are sporadic sets:
/// their tests need no change.
///
/// **Refusals.** A set is refused where it misses a deadline though the hold-ups of a busy period take no longer than
/// one job's: that can happen. Between this and the proofs the answer is unknown.

/// Whether both are known: then `ask` and `answer_of` use both. Jobs of several regions are held up in each of them.
[[nodiscard]] bool limits_hold_ups(std::span<const TaskTiming> tasks);

/// The tasks on a machine that is never held up.
[[nodiscard]] std::vector<TaskTiming> without_hold_ups(std::span<const TaskTiming> tasks);

/// The tasks by what their jobs take in the long run: without hold-ups, where these are limited.
[[nodiscard]] std::vector<TaskTiming> in_the_long_run(std::span<const TaskTiming> tasks);

/// Tasks, and the order of their jobs.
struct OrderedTasks {
  std::vector<TaskTiming> tasks;
  Policy policy = Policy::Edf;
};
/// The tasks without hold-ups, and one more, the last, whose one job in a busy period takes as long as they together.
/// Under fixed priorities it has the highest one, under EDF the earliest deadline.
[[nodiscard]] OrderedTasks held_up_together(std::span<const TaskTiming> tasks, Policy policy, Duration together);

/// The hold-ups of a busy period at most, and in the least case that surely can happen.
struct HoldUps {
  Duration most{};
  Duration least{};
};
/// @pre `limits_hold_ups`
[[nodiscard]] HoldUps hold_ups_of(std::span<const TaskTiming> tasks);

/// The verdict on a set with one more task, for the set: what concerns the last task is taken out.
[[nodiscard]] Verdict without_last(Verdict verdict, std::size_t tasks);

}  // namespace tutti::internal
