#pragma once
#include "model/batch/batch.hpp"
#include "model/machine/costs.hpp"

/// What commands take beside their bytes and their work, in ns: said here alone, for predictions, safe bounds, bounds
/// of jobs that overlap, and the simulated machine.
namespace tutti::internal {

/// What the copies of a transfer with bytes take, once it may start.
struct CopyTimes {
  /// A time that passes: the set-up of each of its copies.
  double before = 0;
  /// Of buffers of pageable memory, with nothing beside it; beside others as slow as the copy itself.
  double filling = 0;
};

/// @param copies  one; of a staged copy, each over a leg
[[nodiscard]] CopyTimes copy_times(const SetupTimes& setup, Basis basis, const StreamWork& work, double copies);

/// Of a kernel on a GPU or of host work, with its launch.
[[nodiscard]] double kernel_time(const SetupTimes& setup, Basis basis, const StreamWork& work);

/// The most that may precede a copy or a kernel that is submitted by itself, whatever ran before it in its queue:
/// a gate, the first of its class, other ends, another queue.
[[nodiscard]] double most_before_copy(const SetupTimes& setup, const StreamWork& work);
[[nodiscard]] double most_before_kernel(const SetupTimes& setup, const StreamWork& work);

}  // namespace tutti::internal
