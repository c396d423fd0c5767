#pragma once
#include <span>
#include <string>
#include <vector>

#include "apps/lab/learn/learned_task.hpp"
#include "model/machine/machine_spec.hpp"
#include "sched/tasks/task_set_spec.hpp"

namespace tutti::internal {

/// Parameter of which all sizes of learned copies are shares: another value scales all of them.
inline constexpr const char* kScale = "scale";

/// What stands for the deadlines that no trace shows.
inline constexpr const char* kGuessedDeadlines =
    "deadlines: each job ends before the next one of its task arrives, that of a closed loop at the pace of its "
    "longest";

/// The task set of learned tasks: a step of a job is a batch, the gap before it a step of the host. Kernels that follow
/// each other in a stream are one; kernels are the registered `spin`, and streams have their names.
/// @param machine  the file of the machine, relative to that of the tasks
[[nodiscard]] TaskSetSpec learned_task_set(const RecordedTrace& trace, std::span<const LearnedTask> tasks,
                                           std::string machine);

/// The task file; its first lines say what was seen, and what is a guess.
[[nodiscard]] std::string learned_tasks_text(const TaskSetSpec& set, std::span<const LearnedTask> tasks,
                                             const std::string& source);
/// A task file with these first lines.
/// @param comments  a line each
[[nodiscard]] std::string task_set_text(const TaskSetSpec& set, std::span<const std::string> comments);

/// The same work on another number of GPUs: on more, GPU i does what GPU i modulo their number did; on fewer, GPU i
/// modulo the new number does what GPU i did.
/// @param was  GPUs of the trace; both >= 1
[[nodiscard]] std::vector<LearnedTask> on_gpus(std::span<const LearnedTask> tasks, std::size_t was, std::size_t gpus);
/// The machine with another number of GPUs, as GPU i modulo their number is. The memory is as wide as it was.
[[nodiscard]] MachineSpec on_gpus(const MachineSpec& machine, std::size_t was, std::size_t gpus);

}  // namespace tutti::internal
