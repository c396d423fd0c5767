#pragma once
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "model/planners/planner.hpp"
#include "runtime/core/executor.hpp"

namespace tutti::internal {

/// Scratch buffers for batches that run one after the other: one at either end of every route, as large as the largest
/// transfer on it.
class ScratchBuffers {
 public:
  /// @errors as `DeviceBackend::allocate`.
  [[nodiscard]] static Expected<ScratchBuffers> make(DeviceBackend& backend, std::span<const Batch> batches);

  /// Bindings [streams] of one of these batches. Rows that lie apart begin one byte before a line of 64 B.
  [[nodiscard]] std::vector<StreamBinding> bind(const Batch& batch) const;

 private:
  struct Ends {
    Buffer source, destination;
  };

  std::map<std::pair<VertexId, VertexId>, Ends> ends_;
};

/// A batch that is ready to run, with buffers of its own.
struct BatchWithBuffers {
  ScratchBuffers buffers;
  PreparedBatch batch;
};

/// @errors as `Batch::make`, `ScratchBuffers::make` and `Executor::prepare`.
[[nodiscard]] Expected<BatchWithBuffers> prepare_with_buffers(Executor& executor, const Planner& planner,
                                                              std::vector<CommandStream> streams);

}  // namespace tutti::internal
