#pragma once
#include <string>
#include <vector>

#include "sched/admission/admission.hpp"

namespace tutti::internal {

/// A task whose jobs would have a smaller Wcet under another planner.
struct SoonerPlan {
  TaskId task;
  const Planner* planner = nullptr;
  Duration wcet{};  ///< under that planner
  double gain = 0;  ///< relative reduction of the present Wcet
};

struct SoonerPlans {
  std::vector<SoonerPlan> plans;  ///< in the order of the tasks
  std::size_t not_asked = 0;      ///< tasks left out to bound the planning time
};

/// A gain below this is not worth another planner.
inline constexpr double kLeastGain = 0.02;

/// The tasks whose Wcet another planner would make smaller by `kLeastGain` or more.
///
/// Only the planner that searches is asked: it starts from the plans of the others that share the machine as it does,
/// so none of them is better. It gets the effort that it would have if it planned the set, so that its Wcets are those
/// of a set that asks for it. Tasks that take the largest shares of the time come first, until the work of about 50 ms
/// is done.
/// @param asked  the answer about the set
/// @heuristic
[[nodiscard]] SoonerPlans find_sooner_plans(const TaskSet& set, const AdmissionVerdict& asked);

}  // namespace tutti::internal
