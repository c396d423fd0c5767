#pragma once
#include <source_location>
#include <string_view>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "model/base/error.hpp"
#include "runtime/cuda/base/device_copier.hpp"

namespace tutti::internal::cuda {

/// The error that a failed call ends in: the call, the place in the sources, the device and the driver's message.
[[nodiscard]] Error failure(std::string_view call, std::string_view name, std::string_view words,
                            const std::source_location& place);

/// A status of the CUDA runtime as a value. Clears the error that the runtime remembers.
/// @errors Machine: the call failed.
[[nodiscard]] inline Expected<void> check(cudaError_t status, std::string_view call,
                                          const std::source_location place = std::source_location::current()) {
  if (status == cudaSuccess) return {};
  static_cast<void>(cudaGetLastError());
  return tl::unexpected(failure(call, cudaGetErrorName(status), cudaGetErrorString(status), place));
}

/// A status that is an answer. Clears the error that the runtime remembers: the next call would be blamed for it.
[[nodiscard]] inline cudaError_t answer(cudaError_t status) {
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
  return status;
}

/// @errors InvalidInput: the host has no such GPU. Machine: the call failed.
[[nodiscard]] Expected<void> check_device(int device);

/// A status of the CUDA driver as a value.
[[nodiscard]] Expected<void> check(CUresult status, std::string_view call,
                                   std::source_location place = std::source_location::current());

/// A function of the installed driver. @param version  of CUDA since which it is what it is, 12050 for 12.5
/// @errors Machine: no driver, or one before that version.
[[nodiscard]] Expected<void*> driver_function(const char* name, int version);
template <class Function>
[[nodiscard]] Expected<void> look_up(const char* name, Function& function, int version = 12000) {
  return driver_function(name, version).map([&](void* found) { function = reinterpret_cast<Function>(found); });
}

/// Sets the environment variables that the driver reads before the first call: the most hardware queues, and eager
/// loading of kernels, since lazy loading would wait for closed gates. Variables set by the user stay.
void set_environment();

/// The functions of the driver that the runtime does not wrap. They are looked up in the driver that is installed, so
/// that a program built with CUDA starts without one.
struct Driver {
  CUresult (*wait_value)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
  CUresult (*write_value)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
  CUresult (*batch_operations)(CUstream, unsigned, CUstreamBatchMemOpParams*, unsigned);
  CUresult (*device)(CUdevice*, int);
  CUresult (*device_attribute)(int*, CUdevice_attribute, CUdevice);
};

/// @errors Machine: no driver, or one that is older than these functions.
[[nodiscard]] Expected<Driver> find_driver();

/// What the driver says of a device, yes or no; no where there is no driver.
/// @errors Machine: it refuses to say.
[[nodiscard]] Expected<bool> device_has(int device, CUdevice_attribute attribute);

/// The functions for copies through pinned buffers, of the same driver.
/// @errors Machine: it lacks one of them.
[[nodiscard]] Expected<CopyDriver> find_copy_driver();

}  // namespace tutti::internal::cuda
