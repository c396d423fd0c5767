#pragma once
#include <memory>
#include <vector>

#include "runtime/core/backend.hpp"

namespace tutti::internal {

/// Measured times of a copy.
struct CopyTimes {
  Duration on_the_gpu{};   ///< from a mark before it to one behind it
  Duration on_the_host{};  ///< from the host's signal for it until the host knows of its end
};

/// Times a single `cudaMemcpyAsync` on a stream of its own, between two events, and another one from the call until
/// `cudaStreamSynchronize` returns: the baseline of our copies.
/// @param from, to  buffers of a backend made by `make_cuda_backend`, of one size, at least one of them on a GPU.
/// @errors Machine: the driver's refusal, a build without CUDA.
[[nodiscard]] Expected<CopyTimes> time_plain_copy(const BufferView& from, const BufferView& to);

/// A copy, and a kernel of a given length behind it; no kernel where that is 0.
struct PlainStep {
  BufferView from, to;
  Duration kernel{};
};

/// Steps as one would enqueue them by hand: ahead, in one stream of one GPU, behind one gate of the backend's kind.
/// Copies alone are one `cudaMemcpyBatchAsync`, as far as the queue has room behind a closed gate, and the rest another
/// one when it is open.
class PlainChain {
 public:
  virtual ~PlainChain() = default;
  /// Two runs: one with the first start and the last end noted on the GPU, one without, from the start signal to the
  /// completion signal.
  /// @errors Machine: the driver's refusal, or it does not end.
  [[nodiscard]] virtual Expected<CopyTimes> run() = 0;
};

/// @param backend  made by `make_cuda_backend`, its GPU idle in the meantime; it outlives the chain
/// @param steps    at least one; buffers of the backend, at least one end of the first on a GPU
/// @errors InvalidInput: another backend. Machine: the driver's refusal, a build without CUDA.
[[nodiscard]] Expected<std::unique_ptr<PlainChain>> make_plain_chain(DeviceBackend& backend,
                                                                     std::vector<PlainStep> steps);

}  // namespace tutti::internal
