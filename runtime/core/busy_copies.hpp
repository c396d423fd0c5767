#pragma once
#include <vector>

#include "runtime/core/executor.hpp"
#include "runtime/core/scratch_buffers.hpp"

namespace tutti::internal {

/// Copies that keep the engines of all GPUs busy in both directions, as long as something else is measured: streams to
/// add to its batch, with their buffers.
struct BusyCopies {
  ScratchBuffers buffers;
  std::vector<CommandStream> streams;
  std::vector<StreamBinding> bindings;  ///< [streams]

  /// @param length  that they are to last; at most 100 copies of 16 MiB an engine, and 4000 in all, are made for it
  /// @errors Machine: their buffers do not fit. InvalidInput: the machine has no memory, or no way for such a copy.
  [[nodiscard]] static Expected<BusyCopies> make(Executor& executor, Duration length);
};

}  // namespace tutti::internal
