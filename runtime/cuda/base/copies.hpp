#pragma once
#include <cstddef>
#include <vector>

#include "model/transfer/transfer_method.hpp"
#include "runtime/cuda/base/status.hpp"

namespace tutti::internal::cuda {

/// `cudaMemcpyBatchAsync` is new in this version of toolkit and driver; from 13.0 on it does not report which copy
/// failed.
inline constexpr int kFirstWithBatches = 12080;

/// Whether this program and the driver have `cudaMemcpyBatchAsync`.
[[nodiscard]] inline bool has_batches() {
  int driver = 0;
  return CUDART_VERSION >= kFirstWithBatches && cudaDriverGetVersion(&driver) == cudaSuccess &&
         driver >= kFirstWithBatches;
}

/// Enqueues a copy of rows, which lie apart on the host's side and close together on the GPU's.
[[nodiscard]] inline cudaError_t copy_rows(const Topology& machine, const Transfer& transfer, std::byte* to,
                                           const std::byte* from, cudaStream_t stream) {
  const auto row = static_cast<std::size_t>(transfer.row().count);
  const auto pitch = static_cast<std::size_t>(transfer.rows.pitch.count);
  const bool up = goes_up(machine, transfer).value_or(true);
  return cudaMemcpy2DAsync(to, up ? row : pitch, from, up ? pitch : row, row,
                           static_cast<std::size_t>(transfer.rows.count), cudaMemcpyDefault, stream);
}

/// Copies of one stream that go in one call, in no order among themselves.
class Copies {
 public:
  void add(std::byte* to, const std::byte* from, std::size_t size) {
    to_.push_back(to);
    from_.push_back(const_cast<std::byte*>(from));
    sizes_.push_back(size);
  }
  [[nodiscard]] std::size_t count() const { return sizes_.size(); }
  /// Whether one call is faster: for several copies, and for a small one. A copy of 4 KiB between GPUs takes 170 us by
  /// `cudaMemcpyAsync` and 9 us in such a call; a kernel behind 64 KiB by `cudaMemcpyAsync` starts 6 us later.
  [[nodiscard]] bool go_together() const {
    constexpr std::size_t kLarge = 4 << 20;
    return count() > 1 || (count() == 1 && sizes_.front() < kLarge);
  }

  /// Enqueues all copies, in one call where that is faster.
  [[nodiscard]] cudaError_t enqueue(cudaStream_t stream) {
    return go_together() ? enqueue(stream, 0, count()) : enqueue_each(stream, 0, count());
  }

  /// Enqueues `count` copies from the `first` on, in one call.
  [[nodiscard]] cudaError_t enqueue(cudaStream_t stream, std::size_t first, std::size_t count) {
    if (count == 0) return cudaSuccess;
#if CUDART_VERSION >= 12080
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    std::size_t all = 0;
#endif
#if CUDART_VERSION >= 13000
    return cudaMemcpyBatchAsync(to_.data() + first, from_.data() + first, sizes_.data() + first, count, &attributes,
                                &all, 1, stream);
#elif CUDART_VERSION >= 12080
    std::size_t failed = 0;
    return cudaMemcpyBatchAsync(to_.data() + first, from_.data() + first, sizes_.data() + first, count, &attributes,
                                &all, 1, &failed, stream);
#else
    return enqueue_each(stream, first, count);
#endif
  }

  /// Enqueues them in a call each.
  [[nodiscard]] cudaError_t enqueue_each(cudaStream_t stream, std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
      const cudaError_t status = cudaMemcpyAsync(to_[i], from_[i], sizes_[i], cudaMemcpyDefault, stream);
      if (status != cudaSuccess) return status;
    }
    return cudaSuccess;
  }

 private:
  std::vector<void*> to_, from_;
  std::vector<std::size_t> sizes_;
};

}  // namespace tutti::internal::cuda
