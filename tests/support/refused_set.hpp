#pragma once
#include "sched/whatif/remedies.hpp"

namespace tutti::internal::test {

/// The default planner.
inline const Planner& planner() { return planners().front(); }

inline AdmissionVerdict decide(const TaskSet& set) { return AdmissionController(planner()).decide(set); }

/// Whether the set of a file is schedulable with another value; with another cut, as that cuts it.
inline bool schedulable(const TaskStudy& study, const TunableParameter& tunable, std::int64_t value) {
  const auto set = with_value(study, tunable, value);
  if (!set) return false;
  const bool is_cut = tunable.kind == TunableKind::Cut;
  return (is_cut ? AdmissionController(planner()).answer_as_cut(*set) : decide(*set).answer) == Answer::Schedulable;
}

inline Remedies remedies_of(const TaskStudy& study) { return find_remedies(study, planner(), decide(study.tasks)); }

}  // namespace tutti::internal::test
