#pragma once
#include <cuda.h>

#include "tests/support/host_cuda/calls.hpp"

namespace tutti::internal::host_cuda {

/// The default streams have names.
inline cudaStream_t stream_of(CUstream stream) {
  return stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD ? nullptr : stream;
}

/// What the calling thread allows itself while streams are captured.
CUstreamCaptureMode& capture_mode();

/// A call that may wait is refused in a capture of its thread, and ends it, unless the thread has relaxed that.
inline cudaError_t refuse_waiting() {
  return capture_mode() == CU_STREAM_CAPTURE_MODE_RELAXED ? cudaSuccess : refuse_in_capture();
}

/// Makes a call of the driver.
template <class Body>
CUresult driver_call(const char* function, const Body& body) {
  if (const int planned = planned_failure(function); planned != 0) return static_cast<CUresult>(planned);
  const cudaError_t fault = current_gpu().fault();
  return static_cast<CUresult>(fault != cudaSuccess ? fault : body());  // statuses have the same numbers
}

}  // namespace tutti::internal::host_cuda
