#pragma once
#include <functional>
#include <span>
#include <vector>

#include "runtime/core/command_list.hpp"
#include "runtime/cuda/lanes/bound_devices.hpp"
#include "runtime/cuda/led/led_kernels.hpp"

namespace tutti::internal::cuda {

/// A lane of a batch of a led set: its stream, and the words by which it is led.
struct LedStream {
  int device = 0;
  cudaStream_t stream = nullptr;
  LedGate* gate = nullptr;  ///< of the batch on its GPU
  LedLane* lane = nullptr;  ///< its own, in the memory of its GPU
  LedEnd* ended = nullptr;  ///< its own, in the memory of the leader
};

/// All that a lane does in a run of its batch, from its gate to the mark of its end, as few calls that enqueue it.
///
/// Copies that one call makes sooner are such a call: in a graph each takes 3 us of its own (H200: 50 copies of 4 KiB
/// took 149 us in a graph, 21 in one call). What lies between them is a graph, or where that is one kernel its launch.
struct RecordedLane {
  std::vector<std::function<cudaError_t()>> calls;
  std::vector<ExecutableGraph> graphs;  ///< that they launch
  std::size_t places = 0;               ///< of its queue that a run takes at most
};

/// Records the lanes of a batch.
/// @param plan   its kernels have run once: what they load, plan and allocate is there
/// @param lanes  [lanes of `list`]
/// @errors Kernel: a kernel throws or does more than enqueue. Machine: the driver's refusal.
/// @pre `check_led` has nothing against the batch
[[nodiscard]] Expected<std::vector<RecordedLane>> record_lanes(BoundDevices& backend, const BoundPlan& plan,
                                                               const CommandList& list,
                                                               std::span<const LedStream> lanes);

}  // namespace tutti::internal::cuda
