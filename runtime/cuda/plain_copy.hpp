#pragma once
#include "runtime/backend.hpp"

namespace tutti {

/// What a copy takes.
struct CopyTimes {
  Duration on_the_gpu{};   ///< from a mark before it to one behind it
  Duration on_the_host{};  ///< from the host's word for it until the host knows of its end
};

/// A single `cudaMemcpyAsync` on a stream of its own, between two events, and another one from the call until
/// `cudaStreamSynchronize` returns: what our copies are measured by.
/// @param from, to  buffers of a backend made by `make_cuda_backend`, of one size, at least one of them on a GPU.
/// @errors Machine: the driver's refusal, a build without CUDA.
[[nodiscard]] Expected<CopyTimes> time_plain_copy(const BufferView& from, const BufferView& to);

}  // namespace tutti
