#pragma once
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "runtime/executor.hpp"

namespace tutti {

/// Buffers for batches that run one after the other and whose data matters to nobody: one at either end of every way,
/// as large as the largest transfer on it.
class WayBuffers {
 public:
  /// @errors as `DeviceBackend::allocate`.
  [[nodiscard]] static Expected<WayBuffers> make(DeviceBackend& backend, std::span<const BatchOperation> batches);

  /// [streams] of one of these batches.
  [[nodiscard]] std::vector<StreamBinding> bind(const BatchOperation& batch) const;

 private:
  struct Ends {
    Buffer source, destination;
  };

  std::map<std::pair<VertexId, VertexId>, Ends> ends_;
};

/// A batch that is ready to run, with buffers of its own.
struct BatchWithBuffers {
  WayBuffers buffers;
  PreparedBatch batch;
};

/// @errors as `BatchOperation::make`, `WayBuffers::make` and `Executor::prepare`.
[[nodiscard]] Expected<BatchWithBuffers> prepare_with_buffers(Executor& executor, std::vector<CommandStream> streams);

}  // namespace tutti
