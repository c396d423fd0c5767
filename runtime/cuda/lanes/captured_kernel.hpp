#pragma once
#include "runtime/cuda/lanes/bound_batch.hpp"
#include "runtime/cuda/lanes/builtin_kernels.hpp"

namespace tutti::internal::cuda {

/// The kernels of a stream, as they can be launched behind a gate.
struct CapturedKernel {
  ExecutableGraph graph{};     ///< what their callables have enqueued; none: these are called in each run
  std::size_t operations = 1;  ///< places that a launch takes in a queue
};

/// Calls the callables of a stream's kernels, in their order, before gates are closed, in a thread of its own with a
/// time limit.
///
/// With `Capture::Once` they run once, on memory of their own, where they may load modules, plan and allocate; then
/// they are recorded, what they have enqueued is looked at (`fault_of_graph`), put in line, and loaded onto the GPU. So
/// in a run they are one operation, whatever they enqueue, and none of their code runs behind a closed gate. The run is
/// left out where the GPU has no room for that memory, and where the backend has seen one of these kernels with as
/// much. With `Capture::Never` they are recorded for their number of operations alone.
/// @errors Kernel: one throws; while it is recorded it waits, allocates or uses the default stream; it does not return
/// or
///         end; it enqueues what cannot be behind a gate. Machine: it breaks the GPU.
[[nodiscard]] Expected<CapturedKernel> capture_kernels(BoundDevices& backend, int device, const CommandStream& stream,
                                                       const std::vector<DeviceCall>& calls);

}  // namespace tutti::internal::cuda
