#pragma once
#include <span>
#include <vector>

#include "apps/lab/learn/learned_task.hpp"

namespace tutti::internal {

/// When the first operation of a job, or of a pattern's occurrence, starts. @pre one is not missing
[[nodiscard]] std::int64_t start_of_job(const RecordedTrace& trace, std::span<const std::uint32_t> job);
/// When the last one ends. @pre as above
[[nodiscard]] std::int64_t end_of_job(const RecordedTrace& trace, std::span<const std::uint32_t> job);

/// The positions of operations by step, then by row.
[[nodiscard]] std::vector<std::size_t> by_step(std::span<const LearnedOperation> operations);
/// Values in another order of positions.
template <class T>
[[nodiscard]] std::vector<T> permuted(const std::vector<T>& values, std::span<const std::size_t> order) {
  std::vector<T> result;
  result.reserve(values.size());
  for (const std::size_t i : order) result.push_back(values[i]);
  return result;
}

/// Finds the order of a task's operations from its jobs: steps, each of which begins when the one before has ended, and
/// rows of operations that follow each other. Sorts the operations of all jobs by it.
/// @heuristic
void find_order(const RecordedTrace& trace, LearnedTask& task);

/// For each operation of a trace, when its engine was free of all that had started before: the latest of their ends. An
/// engine is a direction of a GPU's copies, or its kernels.
[[nodiscard]] std::vector<std::int64_t> engine_free_before(const RecordedTrace& trace);

/// Which jobs count.
struct Fold {
  std::size_t of = 0;    ///< one of so many jobs is left out; 0: none is
  std::size_t left = 0;  ///< which one

  [[nodiscard]] bool leaves_out(std::size_t job) const { return of > 0 && job % of == left; }
};

/// Fills in lengths, gaps and sizes as they were seen in the jobs that count.
/// @param free_before  [operations of the trace]
void find_times(const RecordedTrace& trace, std::span<const std::int64_t> free_before, Fold fold, LearnedTask& task);

}  // namespace tutti::internal
