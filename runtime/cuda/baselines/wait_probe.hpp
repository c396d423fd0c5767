#pragma once
#include <memory>

#include "runtime/core/baselines.hpp"
#include "runtime/cuda/lanes/bound_devices.hpp"

namespace tutti::internal::cuda {

/// As `Baselines::wait_probe`, in all streams of the GPU that a batch may have.
[[nodiscard]] Expected<std::unique_ptr<WaitProbe>> make_wait_probe(BoundDevices& bound, VertexId gpu, GateKind gate,
                                                                   bool beside_copies);

}  // namespace tutti::internal::cuda
