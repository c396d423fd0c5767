#pragma once
#include "sched/analyses/analysis.hpp"

namespace tutti::internal {

inline constexpr std::string_view kNpEdfDemand = "np_edf_demand";

/// Non-preemptive EDF for any deadlines and jitter, by processor demand with blocking: h(t) + b(t) <= t for every t.
///
///   h(t) = sum over D_i - J_i <= t of (floor((t - (D_i - J_i)) / T_i) + 1) C_i    jobs ready and due inside t
///   b(t) = max over D_j > t of C_j, less what task j itself has in h(t)            a job that started just before
///
/// For jobs with several non-preemptive regions, b(t) counts the longest region in place of C_j.
///
/// A job counts from its arrival: it is ready at most J later and due D after it. Deadlines may exceed periods. Jobs of
/// one task become ready in the order of their arrivals. A task with C = 0 waits its turn like any other and then
/// takes no time. An interval is negative where a job can be ready only after its deadline (J > D).
///
/// @return  with NotSchedulable the smallest failing interval, where it is found within reach. Unknown only where the
///          bounds on t or the walk are too long (U very close to 1 with unrelated periods).
/// @source [ZB09] algorithm QPA (the walk); [GRS96] non-preemptive EDF (blocking, bounds on t); [BB10] blocking by
/// regions.
/// @exact  in both directions, in dense time and for sporadic arrivals: with the condition no pattern of arrivals,
///         delays up to J and execution times up to C misses a deadline; without it the witness is one that does, the
///         blocker starting an arbitrarily short time before all others become ready together.
[[nodiscard]] Verdict np_edf_demand(std::span<const TaskTiming> tasks, Policy policy);

/// The answer of `np_edf_demand` alone, without a search for the smallest interval.
[[nodiscard]] Answer np_edf_demand_answer(std::span<const TaskTiming> tasks, Policy policy);

}  // namespace tutti::internal
