#pragma once
#include "sched/analyses/analysis.hpp"

namespace tutti::internal {

inline constexpr std::string_view kNpEdfJeffay = "np_edf_jeffay";

/// Whether the theorem covers the set: EDF, D = T, J = 0, and no job has several regions.
[[nodiscard]] bool np_edf_jeffay_applies(std::span<const TaskTiming> tasks, Policy policy);

/// Non-preemptive EDF where D = T and J = 0: U <= 1, and with the tasks sorted by period (ties: order of the file), for
/// each i > 1 and every L with T_1 <= L < T_i:  L >= C_i + sum over j < i of floor(L / T_j) C_j.
///
/// Time is dense: a longer job may start any moment before the others arrive, so L itself stands where the integer
/// form of the theorem has L - 1. A task with C = 0 waits its turn like any other and then takes no time.
///
/// @return  with NotSchedulable the smallest failing interval, where it is found within reach; Unknown only where the
///          walk would be too long.
/// @source [JSM91] the two conditions for sporadic tasks.
/// @exact  in both directions, for sporadic arrivals: "schedulable" holds for every pattern, also where jobs end
///         early; "not schedulable" names a pattern that misses.
/// @pre    np_edf_jeffay_applies(tasks, policy).
[[nodiscard]] Verdict np_edf_jeffay(std::span<const TaskTiming> tasks, Policy policy);

/// The answer of `np_edf_jeffay` alone, without a search for the smallest interval.
[[nodiscard]] Answer np_edf_jeffay_answer(std::span<const TaskTiming> tasks, Policy policy);

}  // namespace tutti::internal
