#pragma once
#include <optional>
#include <string>
#include <vector>

#include "model/base/faults.hpp"
#include "sched/tasks/task.hpp"
#include "sched/tasks/task_set_spec.hpp"

namespace tutti::internal {

/// Adds what the buffers of a job contradict, where a stream is ordered by itself and batches follow each other: bytes
/// that one stream of a batch writes and another one reads or writes, bytes of a GPU's buffer that are read before
/// anything is written there, and a buffer of another task that is written. Memories are filled by the program, and
/// kept buffers before the first job.
/// @param spec  that the task was compiled from, without a fault
/// @param path  of the task
void check_buffer_flow(const Topology& machine, const TaskSpec& spec, const Task& task, Faults& faults,
                       const std::string& path);

/// What the steps of a job do with a buffer.
struct BufferUse {
  bool is_read = false, is_written = false;
  bool is_counted = false;  ///< by the time of a kernel
};

/// [buffers]
[[nodiscard]] std::vector<BufferUse> uses_of(const Task& task);

/// The first memory of the host from which a buffer there can be filled; nothing where there is none.
[[nodiscard]] std::optional<VertexId> memory_before(const Topology& machine, VertexId place);

/// Whether jobs of the task write a buffer that is there once for all of them: then each waits for the one before.
[[nodiscard]] bool writes_kept_buffers(const Task& task);

/// Buffers that no step names, buffers of GPUs that are written and never read, and kernels of users that name none.
[[nodiscard]] std::vector<Error> notes_on_buffers(const TaskSet& set);

}  // namespace tutti::internal
