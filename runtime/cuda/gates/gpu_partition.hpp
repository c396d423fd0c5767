#pragma once
#include <cstdint>
#include <memory>

#include "runtime/cuda/base/handles.hpp"

namespace tutti::internal::cuda {

enum class GpuPart : std::uint8_t { Gates, Kernels };

/// The multiprocessors of a GPU in two parts (green contexts): on a few run gates and marks of copies, on the others
/// kernels. So a gate of a copy never waits until a kernel has room for it.
///
/// What a stream of a part launches or records runs on the multiprocessors of that part. A graph that a stream has
/// recorded is launched into streams of the same part: graphs with nodes of both hung beside each other.
class GpuPartition {
 public:
  /// Takes some 5 ms.
  /// @param sms  multiprocessors for gates, at least; the GPU has its own steps
  /// @errors Machine: a driver before CUDA 12.5, or one that refuses; a GPU that has no more than these.
  [[nodiscard]] static Expected<GpuPartition> make(int device, int sms);

  /// Fewest multiprocessors that a GPU can set apart for gates. @errors Machine: as `make`
  [[nodiscard]] static Expected<int> fewest(int device);

  /// @errors Machine: the driver refuses.
  [[nodiscard]] Expected<Stream> make_stream(GpuPart part) const;

  /// Where work hangs on it, its end would be waited for.
  void abandon() {
    static_cast<void>(gates_.release());
    static_cast<void>(kernels_.release());
  }

 private:
  struct Destroy {
    void operator()(CUgreenCtx context) const;
  };
  using Context = std::unique_ptr<CUgreenCtx_st, Destroy>;
  GpuPartition(Context gates, Context kernels) : gates_(std::move(gates)), kernels_(std::move(kernels)) {}

  Context gates_, kernels_;
};

}  // namespace tutti::internal::cuda
