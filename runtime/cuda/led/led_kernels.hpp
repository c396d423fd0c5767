#pragma once
#include <cuda_runtime_api.h>

#include "runtime/cuda/led/led_block.hpp"

namespace tutti::internal::cuda {

// Kernels of one thread each. All may be recorded into a graph that is launched again and again: what changes from run
// to run is counted in memory.

/// Holds a lane until its run is open, and the offset of its gate longer.
void launch_led_gate(cudaStream_t stream, const LedHold& hold);
/// Keeps the links from a GPU to the others awake until a gate of its own is open.
void launch_led_keep_awake(cudaStream_t stream, const LedGate* until, const LedFar& far);
/// Holds a lane until another one has come to a step of this run.
/// @param steps  of the other lane in a run
void launch_led_wait(cudaStream_t stream, const LedLane* other, std::uint32_t steps, std::uint32_t step,
                     const LedLane* lane);
/// Marks a step of a lane.
void launch_led_step(cudaStream_t stream, LedLane* lane);
/// Marks the end of a lane's run.
void launch_led_end(cudaStream_t stream, LedLane* lane, LedEnd* ended);
/// Lets the runs of a batch through that are armed, whoever leads it: at the end of a led run.
void launch_led_release(cudaStream_t stream, LedGate* gate, std::uint32_t run);
/// Leads a run from its start to its end.
void launch_conductor(cudaStream_t stream, LedWork work);

/// Loads all of them onto the current GPU: the first launch of a kernel would wait for what runs there.
[[nodiscard]] cudaError_t load_led_kernels();

}  // namespace tutti::internal::cuda
