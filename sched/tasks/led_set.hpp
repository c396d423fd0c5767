#pragma once
#include <cstddef>

#include "model/base/error.hpp"
#include "sched/tasks/task.hpp"

namespace tutti::internal {

/// Most tasks whose jobs a GPU leads: a conductor is a thread that looks at each of them.
inline constexpr std::size_t kMostLedTasks = 28;

/// Whether a GPU can lead the jobs of a set: periodic ones, one at a time, that need nothing of the host while they
/// run. Where jobs may overlap, they do not then.
/// @errors InvalidInput: what it cannot lead, a sentence with the task and what would be right; the first one found.
[[nodiscard]] Expected<void> can_be_led(const TaskSet& set);

}  // namespace tutti::internal
