#pragma once
#include <memory>
#include <type_traits>

#include "runtime/cuda/base/status.hpp"

namespace tutti::internal::cuda {

/// Makes a device current; the destructor restores the one before.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device) {
    static_cast<void>(cudaGetDevice(&before_));
    static_cast<void>(cudaSetDevice(device));
  }
  DeviceGuard(const DeviceGuard&) = delete;  // the order of two guards is their nesting
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard() { static_cast<void>(cudaSetDevice(before_)); }

 private:
  int before_ = 0;
};

/// Deleter of a CUDA object for its sole owner. Failures are ignored, since a destructor cannot report them.
template <auto destroy>
struct Destroy {
  template <class T>
  void operator()(T* handle) const {
    static_cast<void>(destroy(handle));
  }
};
using Stream = std::unique_ptr<CUstream_st, Destroy<cudaStreamDestroy>>;
using Event = std::unique_ptr<CUevent_st, Destroy<cudaEventDestroy>>;
using Graph = std::unique_ptr<CUgraph_st, Destroy<cudaGraphDestroy>>;
using ExecutableGraph = std::unique_ptr<CUgraphExec_st, Destroy<cudaGraphExecDestroy>>;
using DeviceMemory = std::unique_ptr<std::byte, Destroy<cudaFree>>;

/// A stream of a device.
/// @param flags  cudaStreamNonBlocking: it does not synchronize with the default stream.
[[nodiscard]] inline Expected<Stream> make_stream(int device, unsigned flags = cudaStreamNonBlocking) {
  const DeviceGuard guard(device);
  cudaStream_t stream = nullptr;
  return check(cudaStreamCreateWithFlags(&stream, flags), "cudaStreamCreateWithFlags").map([&] {
    return Stream(stream);
  });
}

/// An event of a device.
/// @param flags  cudaEventDefault: it notes the time, which costs its stream some 3 us; cudaEventDisableTiming: it only
///               orders, at no cost beside a copy.
[[nodiscard]] inline Expected<Event> make_event(int device, unsigned flags) {
  const DeviceGuard guard(device);
  cudaEvent_t event = nullptr;
  return check(cudaEventCreateWithFlags(&event, flags), "cudaEventCreateWithFlags").map([&] { return Event(event); });
}

/// Memory of a device, not initialised.
[[nodiscard]] inline Expected<DeviceMemory> make_device_memory(int device, std::size_t size) {
  const DeviceGuard guard(device);
  void* memory = nullptr;
  return check(cudaMalloc(&memory, size), "cudaMalloc").map([&] {
    return DeviceMemory(static_cast<std::byte*>(memory));
  });
}

/// Fills memory with zeros, and waits for that.
/// @param stream  of its device
[[nodiscard]] inline Expected<void> zero(int device, std::byte* memory, std::size_t size, cudaStream_t stream) {
  const DeviceGuard guard(device);
  return check(cudaMemsetAsync(memory, 0, size, stream), "cudaMemsetAsync").and_then([&] {
    return check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  });
}

/// Copies, and waits for that. A copy by the default stream would be refused while some thread of the program records a
/// stream, as `cudaMemcpy` is.
[[nodiscard]] inline Expected<void> copy_and_wait(void* to, const void* from, std::size_t size, cudaStream_t stream) {
  return check(cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, stream), "cudaMemcpyAsync").and_then([&] {
    return check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  });
}

/// Difference of two events of one device, which may be negative. CUDA returns milliseconds.
[[nodiscard]] inline Expected<double> elapsed_ns(const Event& from, const Event& to) {
  float ms = 0;
  return check(cudaEventElapsedTime(&ms, from.get(), to.get()), "cudaEventElapsedTime").map([&] {
    return static_cast<double>(ms) * 1e6;
  });
}

}  // namespace tutti::internal::cuda
