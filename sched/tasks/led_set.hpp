#pragma once
#include <cstddef>

#include "model/base/error.hpp"
#include "sched/tasks/task.hpp"

namespace tutti::internal {

/// Most tasks whose jobs a GPU leads: a conductor is a thread that looks at each of them.
inline constexpr std::size_t kMostLedTasks = 28;

/// Most lanes of a GPU that carry what a GPU leads, beside the conductor's: streams whose gates do not wait for each
/// other.
inline constexpr std::size_t kMostLedLanes = 27;

/// Whether a GPU can lead the jobs of a set: periodic ones that need nothing of the host while they run.
/// @errors InvalidInput: what it cannot lead, a sentence with the task and what would be right; the first one found.
[[nodiscard]] Expected<void> can_be_led(const TaskSet& set);

/// Whether it can lead them where they overlap: one GPU for all, a lane for each operation. @pre `can_be_led`, but for
/// `overlap: on`
/// @errors as there
[[nodiscard]] Expected<void> can_be_led_overlapping(const TaskSet& set);

}  // namespace tutti::internal
