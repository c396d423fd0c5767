#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/faults.hpp"
#include "sched/tasks/task.hpp"
#include "sched/tasks/task_set_spec.hpp"

namespace tutti::internal {

/// The task set of a spec on a machine.
/// @param machine  absent where every task declares its Wcet
/// @param faults   of reading the spec
/// @errors InvalidInput, a fault for each field: no task, doubled names, a period or deadline of 0, a task with neither
/// job nor
///         wcet or with both, a priority that the policy does not know or lacks, a cut without preemption, an unknown
///         planner, a batch without a machine, a set that a GPU is to lead and cannot (`can_be_led`), a chain with an
///         unknown task, a task twice or none; and as `compile` of a batch.
[[nodiscard]] Expected<TaskSet> compile(const TaskSetSpec& spec, const std::optional<Topology>& machine,
                                        Faults faults = {});

/// Field of a fault of a set that only the host can lead.
inline constexpr std::string_view kConductorField = "conductor";

/// What the user of a spec may not have meant, each with the path of its field (`notes_on` of streams).
[[nodiscard]] std::vector<Error> notes_on(const TaskSetSpec& spec);

/// A task set with the spec that it was compiled from: what searches for other values start from.
struct TaskStudy {
  TaskSetSpec spec;
  TaskSet tasks;
  std::vector<Error> notes = {};  ///< of loading a file: what its user may not have meant

  /// @errors as `compile`.
  [[nodiscard]] static Expected<TaskStudy> make(TaskSetSpec spec, const std::optional<Topology>& machine,
                                                Faults faults = {});
};

/// A study as the host leads it; the same where it does.
/// @param why  it has to, a sentence
/// @errors InvalidInput with that sentence: the spec asks for a GPU
[[nodiscard]] Expected<TaskStudy> led_by_host(TaskStudy study, const std::string& why);

/// A study as the host leads it, where its spec leaves that open and a GPU comes first.
[[nodiscard]] std::optional<TaskStudy> led_by_host_instead(const TaskStudy& study);

}  // namespace tutti::internal
