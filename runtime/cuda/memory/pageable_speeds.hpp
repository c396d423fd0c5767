#pragma once
#include "model/base/error.hpp"
#include "runtime/host/pageable_measurement.hpp"

namespace tutti::internal {

/// Measures how ordinary memory goes to and from a GPU, which takes some 2 s and 0.8 GiB of memory. The GPU and the
/// cores near it should have nothing else to do meanwhile.
/// @param device  as CUDA counts
/// @errors Machine: no such GPU, no room for the buffers, the driver's refusal.
[[nodiscard]] Expected<PageableMeasurement> measure_pageable(int device);

}  // namespace tutti::internal
