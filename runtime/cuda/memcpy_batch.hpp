#pragma once
#include <memory>

#include "runtime/core/backend.hpp"

namespace tutti::internal {

/// A baseline on the GPUs of a CUDA backend: a batch is one `cudaMemcpyBatchAsync` a GPU with all its transfers, and
/// its kernels behind them. It has no plan and no gates, and enqueues nothing ahead of its submission.
///
/// A transfer between GPUs is in the call of its source. Kernels of streams without a transfer have a queue of their
/// own, since nothing makes them wait for the copies. A batch starts when the one before it has ended on all GPUs,
/// which the GPUs synchronize among themselves. A run begins before the first call and ends when the waiting thread
/// sees the signals that the queues write last; times in between are not known: `measured` gives each transfer and
/// kernel the whole run, and kernels that take too long are not counted.
///
/// @param backend  made by `make_cuda_backend`; its memory is used. It outlives this one, and has no batch armed or
///                 under way while one of this one is prepared or runs.
/// @errors InvalidInput: it is another backend. Machine: this program is built without CUDA, or one below 12.8. Its
///         `prepare` as that of `backend`, and InvalidInput: host work.
[[nodiscard]] Expected<std::unique_ptr<DeviceBackend>> make_memcpy_batch_backend(DeviceBackend& backend);

}  // namespace tutti::internal
