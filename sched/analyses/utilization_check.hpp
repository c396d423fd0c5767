#pragma once
#include "sched/analyses/analysis.hpp"

namespace tutti {

inline constexpr std::string_view kUtilizationCheck = "utilization";

/// Refuses sets that ask for more than all of the machine's time, under any policy.
///
/// It comes first because it is the plainest reason there is; "U <= 1" alone proves nothing, so it is then *unknown*.
///
/// @source [LL73] theorem 7.
/// @necessary
[[nodiscard]] Verdict utilization_check(std::span<const TaskTiming> tasks, Policy policy);

}  // namespace tutti
