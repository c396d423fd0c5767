#pragma once
#include <cstddef>
#include <functional>
#include <span>

#include "model/base/quantities.hpp"

struct CUstream_st;

namespace tutti {

/// Arguments of a kernel launch.
struct KernelLaunch {
  std::span<const std::byte> input;       ///< where its stream's transfer ended; empty without one
  std::span<std::byte> output;            ///< the user's; may be empty
  std::span<const std::byte> parameters;  ///< the user's; may be empty
  Duration declared{};                    ///< the time that it was declared to take
};

/// The host function of a kernel. It may throw; then its batch fails and no other.
using HostKernel = std::function<void(const KernelLaunch&)>;

/// A stream of a GPU, as a type that needs no header of CUDA: a `cudaStream_t`.
using DeviceStream = CUstream_st*;

/// The GPU function of a kernel: enqueues its work on a stream of the current device and returns. It may only launch
/// kernels and asynchronous copies: a call that waits, allocates, frees, pins memory, loads a module or uses the
/// default stream would wait for closed gates. `input` and `output` lie in the device's memory; `parameters` lie in
/// host memory and are read before it returns. It may throw; then its batch fails and no other.
using DeviceKernel = std::function<void(const KernelLaunch&, DeviceStream)>;

}  // namespace tutti
