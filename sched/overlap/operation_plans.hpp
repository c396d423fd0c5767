#pragma once
#include <vector>

#include "model/batch/execution_plan.hpp"
#include "sched/overlap/local_deadlines.hpp"

namespace tutti::internal {

/// How the jobs of a set run where they overlap: what is executed, when, and why it holds.
struct OverlapPlan {
  OperationSet operations;
  LocalDeadlines deadlines;
  /// [operations][parts][regions] of one copy or kernel each; none of a host step
  std::vector<std::vector<std::vector<ExecutionPlan>>> plans;
};

/// Plans every region of every operation: a batch of one stream, at guaranteed bandwidths and worst kernel times with
/// nothing beside it, its longest time beside co-runners as its latest finish.
[[nodiscard]] OverlapPlan plan_operations(const TaskSet& set, OperationSet operations, LocalDeadlines deadlines);

}  // namespace tutti::internal
