#pragma once
#include "sched/analyses/analysis.hpp"

namespace tutti {

inline constexpr std::string_view kNpExploration = "np_exploration";

/// Whether the exploration says anything: strictly periodic arrivals, and jobs of a task become ready in their order.
[[nodiscard]] bool np_exploration_applies(std::span<const TaskTiming> tasks, Policy policy);

/// Non-preemptive EDF, RM or DM of strictly periodic tasks with offsets, release jitter up to J <= T and costs from the
/// best case to C: all schedules that can happen, followed until nothing new comes. A job that ends early can make
/// another one late, so C alone tells nothing unless the best case is C as well.
///
/// @return  with NotSchedulable the run that is late. Unknown where the hyperperiod or the number of schedules is out
///          of reach.
/// @source [NB17]
/// @exact  in both directions, in dense time, also the responses.
[[nodiscard]] Verdict np_exploration(std::span<const TaskTiming> tasks, Policy policy);

}  // namespace tutti
