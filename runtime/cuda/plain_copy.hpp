#pragma once
#include "runtime/backend.hpp"

namespace tutti {

/// What a single `cudaMemcpyAsync` takes, on a stream of its own: what our copies are measured by.
struct PlainCopy {
  Duration on_the_gpu{};   ///< between two events
  Duration on_the_host{};  ///< of another one: from the call until `cudaStreamSynchronize` returns
};

/// @param from, to  buffers of a backend made by `make_cuda_backend`, of one size, at least one of them on a GPU.
/// @errors Machine: the driver's refusal, a build without CUDA.
[[nodiscard]] Expected<PlainCopy> time_plain_copy(const BufferView& from, const BufferView& to);

}  // namespace tutti
