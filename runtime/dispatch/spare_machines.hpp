#pragma once
#include <cstddef>
#include <span>

#include "model/base/error.hpp"
#include "model/base/ids.hpp"
#include "runtime/core/executor.hpp"

namespace tutti::internal {

/// Makes machines for partitions that have lost GPUs.
class SpareMachines {
 public:
  virtual ~SpareMachines() = default;

  /// A machine without the GPUs that a partition has lost so far, on the clock of the one that it had. The partition's
  /// own thread asks, while others run.
  /// @return  valid as long as this object
  /// @errors as those of the machine that it had.
  [[nodiscard]] virtual Expected<Executor*> without(std::size_t partition, std::span<const VertexId> lost) = 0;
};

}  // namespace tutti::internal
