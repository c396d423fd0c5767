#pragma once
#include <cstddef>
#include <optional>
#include <vector>

#include "model/base/error.hpp"
#include "sched/tasks/task.hpp"

namespace tutti::internal {

/// A stream among those of a job's batches.
struct StreamPlace {
  std::size_t batch = 0, stream = 0;

  friend bool operator==(const StreamPlace&, const StreamPlace&) = default;
};

/// Where a stream's data come from, and where they go.
struct StreamFlow {
  std::optional<StreamPlace> written_by{};  ///< whose kernel writes what its transfer copies
  bool is_copied = false;                   ///< whether a later transfer copies what its kernel writes
};

/// How data flow through a job whose buffers have no names: a kernel reads what its stream has brought to its GPU, and
/// writes what a later batch copies from there, where both transfers have one size; the first kernel comes first.
/// @return [batches][streams]
[[nodiscard]] std::vector<std::vector<StreamFlow>> data_flow(const Task& task);

/// Kernels of users that have no input or no output, and copies from their GPUs that nobody has written: each with the
/// place of its stream. Kernels that only pass time ('spin') need neither.
[[nodiscard]] std::vector<Error> notes_on_flow(const TaskSet& set);

}  // namespace tutti::internal
