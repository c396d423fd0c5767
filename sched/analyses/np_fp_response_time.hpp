#pragma once
#include <cstddef>
#include <vector>

#include "sched/analyses/analysis.hpp"
#include "sched/tasks/priority.hpp"

namespace tutti::internal {

inline constexpr std::string_view kNpFpResponseTime = "np_fp_response_time";

/// Non-preemptive fixed priorities (RM, DM, given), any deadlines and jitter: the worst response of every task, over
/// all instances q = 0, 1, ... of its level-i busy period.
///
/// Instance q starts at the smallest w with
///   w = B + q C_i + sum over higher k of ceil((w + J_k) / T_k) C_k           where a lower task blocks, B = max C
///   w =     q C_i + sum over higher k of (floor((w + J_k) / T_k) + 1) C_k    where none does
/// and responds w + C_i - (q T_i - J_i) after its arrival; R = D meets the deadline. The two forms differ because a
/// blocker must start before the others become ready, so all of them are one moment early: a job that becomes ready at
/// w comes too late. Without a blocker it comes in time. The first instance alone is optimistic.
///
/// For a job with several non-preemptive regions, `w` is the start of its last region: the regions before it are added
/// to the work before `w`, and R counts the last region. B is the longest region of the tasks below.
///
/// Jobs of one task become ready in the order of their arrivals. A task with C = 0 waits its turn like any other and
/// then takes no time.
///
/// @return  `worst_response` is nothing where it is unbounded (the task and those above it ask for more than all the
///          time), was not reached, or exceeds 64 bits. The witness is that of the highest task that fails: the
///          interval runs from the start of its busy period to the deadline of the first instance that is late, and the
///          load is what must be finished in it: the blocker, the instances up to this one, and all higher jobs that
///          become ready no later than the last moment at which it could start. The interval is negative where a job
///          can be ready only after its deadline (J > D).
/// @source [DBBL07] the revised analysis (why every instance counts, the recurrences); [GRS96] (no blocker for the
///         lowest level); [BLV09], [DB12] (the last region).
/// @exact  in both directions, in dense time and for sporadic arrivals: no pattern responds later, and some pattern
///         comes arbitrarily near (with a blocker) or equals it (without one).
[[nodiscard]] Verdict np_fp_response_time(std::span<const TaskTiming> tasks, Policy policy);

/// The answer of `np_fp_response_time` alone: no task below the first one that fails is analysed.
[[nodiscard]] Answer np_fp_answer(std::span<const TaskTiming> tasks, Policy policy);

/// Answer of `np_fp_response_time` about the task at `at` alone; tasks stand from the highest priority to the lowest.
[[nodiscard]] Answer np_fp_level(std::span<const TaskTiming> from_highest, std::size_t at);

}  // namespace tutti::internal
