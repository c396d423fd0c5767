#pragma once
#include <vector>

#include "apps/lab/learn/learned_task.hpp"

namespace tutti::internal {

/// The tasks of a trace: the patterns of its CUDA streams (`find_motifs`), joined where one always follows another one
/// of its process. Work that comes less than three times, or in no order, is in none.
/// @heuristic
[[nodiscard]] std::vector<LearnedTask> find_tasks(const RecordedTrace& trace);

}  // namespace tutti::internal
