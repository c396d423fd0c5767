#pragma once
#include <span>

#include "apps/lab/learn/learned_task.hpp"

namespace tutti::internal {

/// Finds what starts a task's jobs: a clock or the job before; with the period, the jitter, the offset, and the periods
/// that have no job. A clock of the recorder that jumps is no jitter: instants behind a jump have an offset of their
/// own.
/// @heuristic
/// @return whether jobs come as that says: most within half a period, and one period in four at least has one
/// @param jumps  ns, where other tasks show that the clock has jumped
bool find_release(const RecordedTrace& trace, LearnedTask& task, std::span<const std::int64_t> jumps = {});

}  // namespace tutti::internal
