#pragma once
#include <map>
#include <tuple>
#include <vector>

#include "runtime/core/executor.hpp"
#include "runtime/dispatch/task_state.hpp"
#include "sched/overlap/operation_plans.hpp"

namespace tutti::internal {

/// Binds the regions of operations to the memory of their programs: each is a batch of one stream.
class RegionBindings {
 public:
  RegionBindings(Executor& executor, const OverlapPlan& plan) : executor_(executor), plan_(plan) {}

  /// The regions of a task's operations, one operation after the other, for one choice of memory; none of host steps.
  /// @errors InvalidInput, Machine: as `TaskProgram::bind`; no room for a copy on its way.
  [[nodiscard]] Expected<std::vector<BoundPlan>> bind(TaskId task, const TaskState& state, std::size_t choice);
  /// What part of a job each of them is.
  [[nodiscard]] std::vector<ChunkPlace> places(TaskId task, const Task& of) const;

 private:
  [[nodiscard]] Expected<BufferView> buffer_on_way(TaskId task, const OperationPart& part, const CommandStream& stream,
                                                   std::size_t set);

  Executor& executor_;
  const OverlapPlan& plan_;
  std::vector<Buffer> buffers_;  // of copies through memories
  /// [task, set, step, stream]
  std::map<std::tuple<TaskId, std::size_t, std::size_t, std::size_t>, BufferView> on_way_;
};

}  // namespace tutti::internal
