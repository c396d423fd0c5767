#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/base/faults.hpp"
#include "sched/tasks/task.hpp"
#include "sched/tasks/task_set_spec.hpp"

namespace tutti::internal {

/// Buffers of other tasks: a job that names "camera.picture" reads what the newest complete job of 'camera' left in its
/// 'picture' when it starts. It holds that to its end, so nobody writes there meanwhile. Before the first job of the
/// owner is complete, there are zeros.

/// A name with a dot in the steps of a job.
struct NameOfOther {
  std::string name;
  std::string field;  ///< path of the first place that has it
};
/// The names with a dot that a job's steps have, each once.
/// @param path  of the task
[[nodiscard]] std::vector<NameOfOther> names_of_others(const TaskSpec& spec, const std::string& path);

/// The task that has a buffer of another one; nothing where the set has no such task.
[[nodiscard]] std::optional<TaskId> owner_of(const TaskSet& set, const NamedBuffer& buffer);

/// The tasks of which jobs of a task read what a job has left, each once, in the order in which the task names them
/// first: not those of which it names kept buffers alone.
[[nodiscard]] std::vector<TaskId> owners_read_by(const TaskSet& set, TaskId task);

/// The sets of buffers that each task has: one for each job that can be alive. Where other tasks read them, one more
/// for the newest that is complete, and one for each of their jobs that can be alive.
/// @param alive  [tasks] jobs that can be alive
/// @return [tasks]
[[nodiscard]] std::vector<std::int64_t> sets_of_buffers(const TaskSet& set, std::span<const std::int64_t> alive);

/// Most choices of memory that a job can meet: each has batches of its own.
inline constexpr std::int64_t kMostChoices = 1024;

/// Adds what buffers of other tasks contradict: one that is never written, or is there once and is written, or is taken
/// in turn; and a task whose jobs can meet too many choices of sets, its own and those that it reads.
/// @param names  [tasks] of the others that each names, all found
void check_shared_buffers(const TaskSet& set, std::span<const std::vector<NameOfOther>> names, Faults& faults);

}  // namespace tutti::internal
