#pragma once
#include <memory>

#include "runtime/comm/stream.hpp"

namespace tutti::internal::cuda {

/// A `cudaStream` of a GPU for communication: it sets and waits for words by stream memory operations, without a
/// kernel. Words lie in pinned memory, or in memory of the GPU. `call` runs its function in a thread of the driver.
/// @errors Machine: no driver with stream memory operations, no such GPU
/// @source [AGO17] section 2: cuStreamWriteValue32, cuStreamWaitValue32
[[nodiscard]] Expected<std::unique_ptr<comm::Stream>> make_comm_stream(int device);

}  // namespace tutti::internal::cuda
