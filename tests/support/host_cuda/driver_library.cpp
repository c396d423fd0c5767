// The driver as a library, libcuda.so.1, as far as libtutti_copy.so calls it. A context is a GPU.
#include <cstdio>

#include <cuda.h>

#include "tests/support/host_cuda/driver_call.hpp"
#include "tests/support/host_cuda/memory.hpp"

namespace tutti::internal::host_cuda {
namespace {

CUcontext context_of(const Gpu& gpu) {
  return reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(gpu.ordinal()) + 1);
}

unsigned type_of(const Region& region) { return region.device < 0 ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE; }

}  // namespace

CUstreamCaptureMode& capture_mode() {
  thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

}  // namespace tutti::internal::host_cuda

using namespace tutti::internal::host_cuda;

extern "C" {

CUresult cuCtxGetCurrent(CUcontext* context) {
  return driver_call("cuCtxGetCurrent", [&] { return *context = context_of(current_gpu()), cudaSuccess; });
}

CUresult cuCtxGetDevice(CUdevice* device) {
  return driver_call("cuCtxGetDevice", [&] { return *device = current_gpu().ordinal(), cudaSuccess; });
}

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return driver_call("cuDevicePrimaryCtxRetain", [&] { return *context = context_of(gpu(device)), cudaSuccess; });
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return static_cast<CUresult>(cudaSetDevice(static_cast<int>(reinterpret_cast<std::uintptr_t>(context)) - 1));
}

CUresult cuDeviceGetPCIBusId(char* bus_id, int size, CUdevice device) {
  return driver_call("cuDeviceGetPCIBusId", [&] {
    std::snprintf(bus_id, static_cast<std::size_t>(size), "ffff:%02X:00.0", static_cast<unsigned>(device));
    return cudaSuccess;
  });
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return driver_call("cuStreamGetCtx", [&] {
    CUstream_st* found = nullptr;
    if (const cudaError_t status = find_stream(stream_of(stream), found); status != cudaSuccess) return status;
    return *context = context_of(*found->gpu), cudaSuccess;
  });
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return driver_call("cuStreamIsCapturing", [&] {
    const bool captures = stream_of(stream) != nullptr && stream->capture != nullptr;
    *status = captures ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return cudaSuccess;
  });
}

CUresult cuStreamSynchronize(CUstream stream) {
  return driver_call("cuStreamSynchronize", [&] {
    CUstream_st* found = nullptr;
    const cudaError_t status = find_stream(stream_of(stream), found);
    return status == cudaSuccess ? wait_for(*found, found->enqueued) : status;
  });
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  std::swap(capture_mode(), *mode);
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** values, CUdeviceptr address) {
  const auto region = region_of(reinterpret_cast<const void*>(address));
  for (unsigned i = 0; i < count; ++i) {
    if (attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
      *static_cast<unsigned*>(values[i]) = region ? type_of(*region) : 0;
    else if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
      *static_cast<int*>(values[i]) = region ? region->device : -1;
    else if (attributes[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED)
      *static_cast<unsigned*>(values[i]) = 0;
    else if (attributes[i] == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
      *static_cast<CUdeviceptr*>(values[i]) = region ? reinterpret_cast<CUdeviceptr>(region->begin) : 0;
    else if (attributes[i] == CU_POINTER_ATTRIBUTE_RANGE_SIZE)
      *static_cast<std::size_t*>(values[i]) = region ? region->size : 0;
    else
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemHostRegister(void* memory, size_t size, unsigned flags) {
  return driver_call("cuMemHostRegister_v2", [&] { return cudaHostRegister(memory, size, flags); });
}

CUresult cuMemHostUnregister(void* memory) {
  return driver_call("cuMemHostUnregister", [&] { return cudaHostUnregister(memory); });
}

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  return driver_call("cuEventCreate", [&] { return cudaEventCreateWithFlags(event, flags); });
}

CUresult cuEventDestroy(CUevent event) {
  return driver_call("cuEventDestroy_v2", [&] { return cudaEventDestroy(event); });
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return driver_call("cuEventRecord", [&] { return record_event(event, stream_of(stream)); });
}

CUresult cuEventQuery(CUevent event) {
  return driver_call("cuEventQuery", [&] {
    const cudaError_t refused = refuse_waiting();
    return refused != cudaSuccess ? refused : query_event(event);
  });
}
}
