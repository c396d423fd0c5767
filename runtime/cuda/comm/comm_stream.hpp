#pragma once
#include <memory>

#include <cuda_runtime_api.h>

#include "runtime/comm/stream.hpp"

namespace tutti::internal::cuda {

/// A `cudaStream` of a GPU for communication: it sets and waits for words by stream memory operations, without a
/// kernel. Words lie in pinned memory, or in memory of the GPU. `call` runs its function in a thread of the driver.
///
/// Streams that share a hardware queue wait for each other's words. These do not: up to 20 of a GPU at a time are lent
/// from those that were tried when the process made its first. A backend in the same process has streams of its own,
/// which are not tried against these.
/// @errors Machine: no driver with stream memory operations, no such GPU, no more streams
/// @source [AGO17] section 2: cuStreamWriteValue32, cuStreamWaitValue32
[[nodiscard]] Expected<std::unique_ptr<comm::Stream>> make_comm_stream(int device);

/// A stream of a GPU in which nothing ever waits for a word, for copies beside those that do.
/// @errors as of `make_comm_stream`
[[nodiscard]] Expected<cudaStream_t> stream_without_waits(int device);

}  // namespace tutti::internal::cuda
