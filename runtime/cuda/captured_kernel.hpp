#pragma once
#include "runtime/core/kernel_registry.hpp"
#include "runtime/cuda/bound_batch.hpp"

namespace tutti::internal::cuda {

/// Operations that go into a hardware queue ahead of its gate; at 1020 the driver blocks.
inline constexpr std::size_t kQueueCapacity = 900;

/// A kernel that can be launched behind a gate.
struct CapturedKernel {
  ExecutableGraph graph{};     ///< what its callable has enqueued; none: the callable is called in each run
  std::size_t operations = 1;  ///< places that a launch takes in a queue
};

/// Calls a user's callable before gates are closed, in a thread of its own with a time limit.
///
/// With `Capture::Once` it runs once, on memory of its own, where it may load modules, plan and allocate; then it is
/// recorded, what it has enqueued is looked at (`fault_of_graph`), put in line, and loaded onto the GPU. So in a run it
/// is one operation, whatever it enqueues, and none of its code runs behind a closed gate. The run is left out where
/// the GPU has no room for that memory, and where the backend has seen one of this kernel with as much. With
/// `Capture::Never` it is recorded for its number of operations alone.
/// @param stream  whose kernel it is
/// @errors Kernel: it throws; while it is recorded it waits, allocates or uses the default stream; it does not return
/// or
///         end; it enqueues what cannot be behind a gate. Machine: it breaks the GPU.
[[nodiscard]] Expected<CapturedKernel> capture_kernel(BoundDevices& backend, int device, const CommandStream& stream,
                                                      const DeviceKernel& callable, const KernelLaunch& launch);

}  // namespace tutti::internal::cuda
