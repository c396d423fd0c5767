#pragma once
#include <memory>

#include "runtime/core/backend.hpp"
#include "runtime/cuda/lanes/bound_devices.hpp"

namespace tutti::internal::cuda {

/// As `Baselines::memcpy_batch`: a batch is one `cudaMemcpyBatchAsync` a GPU with all its transfers, and its kernels
/// behind them. It has no gates, and enqueues nothing ahead of its submission.
///
/// A transfer between GPUs is in the call of its source. Kernels of streams without a transfer have a queue of their
/// own, since nothing makes them wait for the copies. A batch starts when the one before it has ended on all GPUs,
/// which the GPUs synchronize among themselves. A run begins before the first call and ends when the waiting thread
/// sees the signals that the queues write last; times in between are not known: `measured` gives each transfer and
/// kernel the whole run, and kernels that take too long are not counted.
///
/// @param backend  of these devices; its memory is used, and it outlives this one
[[nodiscard]] Expected<std::unique_ptr<DeviceBackend>> make_memcpy_batch_backend(DeviceBackend& backend,
                                                                                 BoundDevices& bound);

}  // namespace tutti::internal::cuda
