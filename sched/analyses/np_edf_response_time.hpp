#pragma once
#include "sched/analyses/analysis.hpp"

namespace tutti::internal {

inline constexpr std::string_view kNpEdfResponseTime = "np_edf_response_time";

/// EDF without preemption, or with preemption between the regions of jobs; any deadlines and jitter: the worst response
/// of every task.
///
/// A job due d after the start of its deadline busy period starts its last region, of length l_i, at the smallest w
/// with
///   w = B + (jobs of its task due before it) C_i + C_i - l_i
///         + sum over the others of min(ready before w, due by d) C_k
/// and responds w + l_i - (d - D_i) after its arrival. Up to w, jobs due earlier run before it or between its regions;
/// its last region is not preempted. A non-preemptive job is one region: l_i = C_i. B is the longest region of a job of
/// a task with D - J > d, which started an arbitrarily short time before; no other region of that job runs before w.
/// All others become ready together, J after the first of them arrived, and then every T. `ready before w` is
/// ceil((w + J_k) / T_k) behind a blocker and floor(...) + 1 without one, as for fixed priorities. Only the d at which
/// some job is due matter, and w never falls as d grows, since what leaves B has all of its C in the sum: so the walk
/// goes down from the longest busy period, and the largest response so far decides how far it may jump.
///
/// It takes far longer than `np_edf_demand`, which says the same about schedulability; so it is asked where responses
/// are wanted, not for each request on line.
///
/// @return  `worst_response` is nothing where U > 1, where it exceeds 64 bits, or where the steps did not suffice (U =
///          1 with jitter, or very close to 1). The witness is that of `np_edf_demand`.
/// @source [GRS96] worst-case response times under non-preemptive EDF: deadline busy periods. [BB10] blocking under EDF
///         with limited preemption; [BLV09] and [DB12] the last region, under fixed priorities. Put together here.
/// @exact  as the supremum over all patterns of sporadic arrivals, delays, and times of every region up to its longest,
///         in dense time. It need not be reached: a blocker starts a moment earlier, and a job arrives a moment later
///         than one that is due with it.
[[nodiscard]] Verdict np_edf_response_time(std::span<const TaskTiming> tasks, Policy policy);

}  // namespace tutti::internal
