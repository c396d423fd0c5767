#pragma once
#include "sched/admission/admission.hpp"
#include "sched/tasks/compile_tasks.hpp"

namespace tutti::internal {

/// A task set as its conductor leads it, and whether that keeps its deadlines.
struct ConductorChoice {
  TaskStudy study;
  AdmissionVerdict verdict;
};

/// Decides for a set as its conductor leads it. Where that is open (`conductor: auto`) and a GPU's does not guarantee
/// its deadlines, for the set as the host leads it: where these are guaranteed, `why_host` says so in a sentence.
[[nodiscard]] ConductorChoice decide_by_conductor(const AdmissionController& controller, TaskStudy study);

}  // namespace tutti::internal
