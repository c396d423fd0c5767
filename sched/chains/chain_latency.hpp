#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "model/base/units.hpp"
#include "sched/tasks/partition.hpp"
#include "sched/tasks/policy.hpp"
#include "sched/tasks/task.hpp"
#include "sched/tasks/task_timing.hpp"

namespace tutti::internal {

/// A task of a chain, with what its jobs are guaranteed.
struct ChainStage {
  TaskTiming timing;
  Duration longest_gap{};     ///< >= the period: longest distance from one arrival to the next
  Duration worst_response{};  ///< of any job, from its arrival; >= Wcet
  std::size_t position = 0;   ///< in the set: of two equally urgent tasks the smaller goes first
  /// Tasks of one dispatcher run one job at a time, in the order of the policy. Absent: jobs overlap.
  std::optional<std::size_t> dispatcher = {};
};

/// Longest distance of two arrivals in a row while no trigger is missing: of an external release `missing_after`, and
/// the period more where early triggers are dropped.
[[nodiscard]] Duration longest_gap(const Task& task);

/// Upper bound on the reaction time and on the data age of a chain.
///
/// The reaction time is the longest time from an event that the first task can observe to the finish of the first job
/// of the last task whose output depends on it; the worst event comes just after a job of the first task has started.
/// The data age is the longest time from the start of a job of the first task to the end of the use of its data: the
/// finish of the last task's next job. Both count from the second job of each task on.
///
/// Let job k of stage i arrive at a_i(k), start at s_i(k) and finish at f_i(k). *Lag*: L_i is such that a job of stage
/// i+1 that starts before f_i(k) has arrived at a_i(k) + L_i or before.
///
/// Reaction: an event just after s_1(k-1) >= a_1(k-1) is read by job k, and a_1(k) <= a_1(k-1) + T_1. The first job of
/// stage i+1 that starts at f_i(k) or later follows one that started before; that one arrived by a_i(k) + L_i, so this
/// one by a_i(k) + L_i + T_(i+1). The last one finishes R_n after its arrival. Together
///
///     reaction <= T_1 + sum over i < n of (L_i + T_(i+1)) + R_n.
///
/// Data age: let job k_n of the last stage use the outputs of the jobs k_(n-1), ..., k_1. An event just after s_1(k_1)
/// is read by job k_1 + 1, which ends after s_2(k_2), since k_2 does not use its output; so the event reaches stage 2
/// in a job after k_2, and so on: it reaches the last stage in a job after k_n. The data age is no longer than that
/// reaction time.
///
/// Lags. L_i = R_i always, since f_i(k) <= a_i(k) + R_i. Where one dispatcher serves both stages, a job of stage i+1
/// starts before f_i(k) only if it starts before the last region of job k does; that region starts E_i, its length,
/// before a_i(k) + R_i, since what it takes itself does not move its start. So L_i = R_i - E_i, and less the best case
/// of stage i+1 where its jobs are non-preemptive and hold the machine for it. Moreover, job k is ready J_i after
/// a_i(k) at most, and from then until its last region starts only more urgent jobs do: L_i = J_i where stage i has the
/// higher fixed priority, and L_i = max(J_i, D_i - D_(i+1)) under EDF. The smallest of them counts.
///
/// Where distances of arrivals are known, the next job of stage i+1 is found among its arrivals in place of a period
/// later. Strictly periodic tasks are walked through so from each arrival of a common period. Tasks that arrive
/// together (`after`) have one arrival for both: where stage i goes first, a_(i+1) = a_i(k) and nothing is added for
/// the pair.
///
/// @param chain   [n] from cause to effect, n >= 1, each task once; every deadline is guaranteed
/// @return  nothing where it is beyond the longest Duration
/// @source  [DZN07] has L_i = R_i; [DBCC19] the use of priorities; [GTCBC23] shows that the two maxima are equal.
/// @sufficient
[[nodiscard]] std::optional<Duration> worst_case_latency(std::span<const ChainStage> chain, Policy policy);

/// The stages of a chain in a set whose every deadline is guaranteed.
/// @param timings     [tasks]
/// @param responses   [tasks] bounds on the response; the deadline where there is none
/// @param partitions  each has a dispatcher; empty: jobs overlap
[[nodiscard]] std::vector<ChainStage> stages_of(const Chain& chain, const TaskSet& set,
                                                std::span<const TaskTiming> timings,
                                                std::span<const std::optional<Duration>> responses,
                                                std::span<const Partition> partitions);

}  // namespace tutti::internal
