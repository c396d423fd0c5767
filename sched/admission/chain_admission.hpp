#pragma once
#include "sched/admission/admission.hpp"

namespace tutti::internal {

/// Whether the answer depends on the latency of a chain.
[[nodiscard]] bool has_chain_deadlines(const TaskSet& set);

/// Adds the bounds of the chains to a verdict on the tasks; one that is beyond its deadline takes the admission back.
[[nodiscard]] AdmissionVerdict with_chains(AdmissionVerdict verdict, const TaskSet& set);

}  // namespace tutti::internal
