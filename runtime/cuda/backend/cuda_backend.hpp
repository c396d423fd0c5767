#pragma once
#include <memory>

#include "runtime/core/backend.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/kernel_registry.hpp"
#include "runtime/host/cuda_options.hpp"

namespace tutti::internal {

/// The GPUs of this host as a backend. Real time only.
///
/// A batch is enqueued ahead of its run, every stream held at a gate; a thread of the backend, the conductor, opens the
/// gates at their planned instants and sees the completions, as signals that the streams write into host memory.
///
/// The conductor takes a core. The calling thread stays off it until it destroys the backend; threads that it starts
/// meanwhile stay off it for good. Older threads do not: make backends first.
///
/// The arguments outlive the backend; it outlives its batches, and its buffers may outlive it.
///
/// @errors InvalidInput: a GPU of the machine without bus id or UUID and without `bind`, one that `bind` names and the
///         machine has not, two that are the same, a virtual clock. Machine: this build has no CUDA, no driver or one
///         that is too old, fewer GPUs than the machine has or another one, peer access that the machine has and the
///         host has not.
[[nodiscard]] Expected<std::unique_ptr<DeviceBackend>> make_cuda_backend(const Topology& machine,
                                                                         const KernelRegistry& kernels, Clock& clock,
                                                                         const CudaOptions& options);

}  // namespace tutti::internal
