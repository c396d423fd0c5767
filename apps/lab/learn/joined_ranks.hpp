#pragma once
#include <span>
#include <vector>

#include "apps/lab/learn/learned_task.hpp"

namespace tutti::internal {

/// Joins closed loops that do the same work on different GPUs in step with each other: the ranks of one program. Two
/// loops that drift apart, and tasks with a clock of their own, stay as they are.
/// @param free_before  as `engine_free_before`
/// @heuristic
void join_ranks(const RecordedTrace& trace, std::span<const std::int64_t> free_before, std::vector<LearnedTask>& tasks);

}  // namespace tutti::internal
