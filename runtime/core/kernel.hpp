#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "model/base/quantities.hpp"

struct CUstream_st;

namespace tutti {

/// Memory that a kernel reads.
struct ReadBuffer {
  std::string name;   ///< of the task's buffer; empty without names
  std::string place;  ///< the memory or GPU that it lies in
  std::span<const std::byte> bytes;
};
/// Memory that a kernel writes.
struct WrittenBuffer {
  std::string name, place;  ///< as above
  std::span<std::byte> bytes;
};

/// Arguments of a kernel launch.
struct KernelLaunch {
  std::span<const std::byte> input;        ///< the first that it reads: without names where its stream's transfer ended
  std::span<std::byte> output;             ///< the first that it writes; may be empty
  std::span<const std::byte> parameters;   ///< the user's; may be empty
  Duration declared{};                     ///< the time that it was declared to take
  std::span<const ReadBuffer> reads = {};  ///< in the order of the stream's `reads`
  std::span<const WrittenBuffer> writes = {};  ///< in the order of `writes`; what is in both is in both
};

/// The host function of a kernel. It may throw; then its batch fails and no other.
using HostKernel = std::function<void(const KernelLaunch&)>;

/// A stream of a GPU, as a type that needs no header of CUDA: a `cudaStream_t`.
using DeviceStream = CUstream_st*;

/// The GPU function of a kernel: enqueues its work on a stream of the current device and returns. What it reads and
/// writes lies in the device's memory; `parameters` lie in host memory and are read before it returns.
///
/// It is called when a batch is prepared, once for each set of buffers, and not in each run: what it enqueues is
/// recorded as a CUDA graph, which the runs launch, whatever number of kernels that is. So parameters, and whatever the
/// function has captured, are those of that call; what changes from run to run lies in memory that its kernels read.
///
/// The first time it is called twice: once to run, on memory of its own that is zero, where it may load modules, plan
/// and allocate; then to be recorded. There it may only enqueue kernels, memsets, and copies between memory of GPUs
/// and pinned memory, on its stream and on streams that fork from it and join it. CUDA lets no graph be launched there:
/// it is added as a child (`apps/examples/network.cu`). A call that waits,
/// allocates, frees, pins memory or uses the default stream is refused when the batch is prepared; so are copies of
/// ordinary memory, functions of the host (`cudaLaunchHostFunc`), memory that is allocated in the stream (cuBLAS:
/// `cublasSetWorkspace`), and cooperative kernels that leave no room for those that hold gates. Branches are put in
/// line. It may throw; then the batch cannot be prepared.
///
/// Kernels of one stream are called one after the other, and are one graph.
///
/// With `capture: never` in its stream it is called in each run instead, where it is given at most 900 operations and
/// may only enqueue.
///
///     void detect(const KernelLaunch& launch, DeviceStream stream) {
///       for (const Layer& layer : network) layer.launch(launch.input, launch.output, stream);  // any number
///     }
using DeviceKernel = std::function<void(const KernelLaunch&, DeviceStream)>;

}  // namespace tutti
