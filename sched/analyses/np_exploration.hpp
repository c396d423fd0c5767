#pragma once
#include "sched/analyses/analysis.hpp"

namespace tutti::internal {

inline constexpr std::string_view kNpExploration = "np_exploration";

/// Whether the exploration applies: strictly periodic arrivals, J <= T (jobs of a task become ready in their order, as
/// they do in the table of `cw_edf` with any J), and no job with several regions.
[[nodiscard]] bool np_exploration_applies(std::span<const TaskTiming> tasks, Policy policy);

/// Non-preemptive EDF, RM, DM or given priorities, or the time table of `cw_edf`, of strictly periodic tasks with
/// offsets, release jitter up to J <= T and costs from the best case to C: all possible schedules are followed until no
/// state is new. A job that ends early can make another one late, so a simulation with C alone decides nothing unless
/// the best case is C as well.
///
/// @return  with NotSchedulable the run that is late. Unknown where the hyperperiod or the number of schedules is out
///          of reach.
/// @source [NB17], [RGNN23]
/// @exact  in both directions, in dense time, also the responses. Where there are too many schedules to follow each, a
///         proof is `Exactness::Sufficient` and its responses are bounds; a refusal is a run that happens all the same.
[[nodiscard]] Verdict np_exploration(std::span<const TaskTiming> tasks, Policy policy);

/// The answer alone, which takes far less time where there are many schedules.
[[nodiscard]] Answer np_exploration_answer(std::span<const TaskTiming> tasks, Policy policy);

}  // namespace tutti::internal
