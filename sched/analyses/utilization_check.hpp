#pragma once
#include "sched/analyses/analysis.hpp"

namespace tutti::internal {

inline constexpr std::string_view kUtilizationCheck = "utilization";

/// Refuses sets with U > 1, under any policy.
///
/// This test comes first because it is the plainest reason; U <= 1 alone proves nothing, so the answer is then
/// *unknown*.
///
/// @source [LL73] theorem 7.
/// @necessary
[[nodiscard]] Verdict utilization_check(std::span<const TaskTiming> tasks, Policy policy);

}  // namespace tutti::internal
