#pragma once
#include <memory>

#include "runtime/cuda/base/device_copier.hpp"
#include "runtime/cuda/base/status.hpp"

namespace tutti::internal::cuda {

/// Copies pageable memory to or from one GPU in one direction, by double queuing in a stream of its own.
class PageableCopier {
 public:
  /// @param stream  of the GPU, in which nothing waits for a gate and no one else enqueues
  /// @errors Machine: no room for pinned buffers, no thread, a driver without what copies need.
  [[nodiscard]] static Expected<std::unique_ptr<PageableCopier>> make(int device, CopyDirection direction,
                                                                      cudaStream_t stream,
                                                                      const CopierOptions& options);
  PageableCopier(const PageableCopier&) = delete;  // it is the only one that uses its stream
  PageableCopier& operator=(const PageableCopier&) = delete;
  ~PageableCopier();

  /// Makes a copy and waits for its end. For one thread at a time.
  /// @return whether the driver took all pieces
  [[nodiscard]] bool copy(std::byte* host, std::byte* device, std::size_t bytes);
  /// As `Copier::paused`.
  [[nodiscard]] Duration paused() const { return copier_->paused(); }

 private:
  PageableCopier(int device, CopyDirection direction, cudaStream_t stream)
      : device_(device), direction_(direction), stream_(stream) {}

  const int device_;
  const CopyDirection direction_;
  const cudaStream_t stream_;
  std::unique_ptr<DeviceCopier> copier_;
};

}  // namespace tutti::internal::cuda
