// Calls about the host, its GPUs and errors.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tests/support/host_cuda/calls.hpp"

using namespace tutti::internal::host_cuda;

namespace {

/// No host has this domain.
constexpr int kDomain = 0x7e57;

struct ErrorText {
  cudaError_t status;
  const char* name;
  const char* text;
};
constexpr ErrorText kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorIllegalState, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorPeerAccessUnsupported, "cudaErrorPeerAccessUnsupported",
     "peer access is not supported between these two devices"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {cudaErrorPeerAccessNotEnabled, "cudaErrorPeerAccessNotEnabled", "peer access has not been enabled"},
    {cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const ErrorText& text_of(cudaError_t status) {
  const auto* const found = std::ranges::find(kErrors, status, &ErrorText::status);
  return found == std::end(kErrors) ? kErrors[std::size(kErrors) - 1] : *found;
}

bool is_there(int device) { return device >= 0 && device < host().devices; }

}  // namespace

extern "C" {

const char* cudaGetErrorName(cudaError_t status) { return text_of(status).name; }
const char* cudaGetErrorString(cudaError_t status) { return text_of(status).text; }

/// The fault of a broken GPU stays.
cudaError_t cudaGetLastError() {
  const cudaError_t last = std::exchange(this_thread().last, cudaSuccess);
  return current_gpu().fault() != cudaSuccess ? current_gpu().fault() : last;
}

cudaError_t cudaDriverGetVersion(int* version) {
  return call("cudaDriverGetVersion", Scope::Program, [&] { return *version = host().version, cudaSuccess; });
}

cudaError_t cudaGetDeviceCount(int* count) {
  return call("cudaGetDeviceCount", Scope::Program,
              [&] { return *count = host().devices, *count == 0 ? cudaErrorNoDevice : cudaSuccess; });
}

cudaError_t cudaGetDevice(int* device) {
  return call("cudaGetDevice", Scope::Program, [&] { return *device = this_thread().device, cudaSuccess; });
}

cudaError_t cudaSetDevice(int device) {
  return call("cudaSetDevice", Scope::Program, [&] {
    if (!is_there(device)) return cudaErrorInvalidDevice;
    this_thread().device = device;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return call("cudaDeviceGetPCIBusId", Scope::Program, [&] {
    if (!is_there(device)) return cudaErrorInvalidDevice;
    std::snprintf(text, static_cast<std::size_t>(length), "%04x:%02x:00.0", kDomain, device + 1);
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return call("cudaGetDeviceProperties", Scope::Program, [&] {
    if (!is_there(device)) return cudaErrorInvalidDevice;
    *properties = {};
    std::snprintf(properties->name, sizeof properties->name, "GPU of the host");
    std::memset(properties->uuid.bytes, 0x70 + device, sizeof properties->uuid.bytes);
    properties->totalGlobalMem = gpu(device).memory;
    properties->pciDomainID = kDomain;
    properties->pciBusID = device + 1;
    properties->asyncEngineCount = 2;
    properties->hostNumaId = -1;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* reaches, int device, int peer) {
  return call("cudaDeviceCanAccessPeer", Scope::Program, [&] {
    *reaches = device != peer && host().peer_access;
    return cudaSuccess;
  });
}
}
