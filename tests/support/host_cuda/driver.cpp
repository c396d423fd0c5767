// The functions of the driver that programs look up.
#include <algorithm>
#include <cstring>
#include <memory>
#include <tuple>
#include <vector>

#include <cuda.h>

#include "tests/support/host_cuda/calls.hpp"
#include "tests/support/host_cuda/memory.hpp"

namespace tutti::internal::host_cuda {
namespace {

using Word = std::uint32_t;

/// The status of a call of the driver that the runtime has another number for.
CUresult as_driver(cudaError_t status) { return static_cast<CUresult>(status); }

Word* word_at(CUdeviceptr address) { return reinterpret_cast<Word*>(address); }

/// Whether the streams of a GPU can use a word.
bool can_use(const CUstream_st* stream, CUdeviceptr address) {
  return host().memory_operations && address % sizeof(Word) == 0 && reaches(stream->gpu->ordinal(), word_at(address));
}

CUresult wait_value(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  if (const int planned = planned_failure("cuStreamWaitValue32"); planned != 0) return static_cast<CUresult>(planned);
  if (flags != CU_STREAM_WAIT_VALUE_GEQ || !can_use(stream, address)) return CUDA_ERROR_INVALID_VALUE;
  return as_driver(enqueue(*stream, [=](Instant, Instant now) {
    const Word found = std::atomic_ref(*word_at(address)).load(std::memory_order_acquire);
    return static_cast<std::int32_t>(found - value) >= 0 ? std::optional(now) : std::nullopt;
  }));
}

CUresult write_value(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned) {
  if (const int planned = planned_failure("cuStreamWriteValue32"); planned != 0) return static_cast<CUresult>(planned);
  if (!can_use(stream, address)) return CUDA_ERROR_INVALID_VALUE;
  return as_driver(enqueue(*stream, [=](Instant begin, Instant) {
    std::atomic_ref(*word_at(address)).store(value, std::memory_order_release);
    return std::optional(begin);
  }));
}

CUresult batch_operations(CUstream stream, unsigned count, CUstreamBatchMemOpParams* operations, unsigned) {
  if (const int planned = planned_failure("cuStreamBatchMemOp"); planned != 0) return static_cast<CUresult>(planned);
  for (unsigned i = 0; i < count; ++i) {
    const auto& [operation, wait, write] =
        std::tie(operations[i].operation, operations[i].waitValue, operations[i].writeValue);
    CUresult status = CUDA_ERROR_NOT_SUPPORTED;
    if (operation == CU_STREAM_MEM_OP_WAIT_VALUE_32) status = wait_value(stream, wait.address, wait.value, wait.flags);
    if (operation == CU_STREAM_MEM_OP_WRITE_VALUE_32)
      status = write_value(stream, write.address, write.value, write.flags);
    if (status != CUDA_SUCCESS) return status;
  }
  return CUDA_SUCCESS;
}

CUresult device_of(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal < host().devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult attribute_of(int* value, CUdevice_attribute attribute, CUdevice) {
  if (attribute == CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS)
    *value = host().memory_operations;
  else if (attribute == CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT)
    *value = host().limits_kernels;
  else
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult name_of(CUresult status, const char** name) {
  *name = status == CUDA_ERROR_INVALID_VALUE   ? "CUDA_ERROR_INVALID_VALUE"
          : status == CUDA_ERROR_NOT_SUPPORTED ? "CUDA_ERROR_NOT_SUPPORTED"
                                               : "CUDA_ERROR_UNKNOWN";
  return CUDA_SUCCESS;
}

/// Multiprocessors of a GPU, all or a part, where their number is all that is asked for. Its address is the handle.
struct Sms {
  int device = 0;
  int count = 0;
  std::vector<std::weak_ptr<CUstream_st>> streams{};
};

CUresult sms_of(CUdevice, CUdevResource* resource, CUdevResourceType type) {
  if (type != CU_DEV_RESOURCE_TYPE_SM || !host().splits_sms) return CUDA_ERROR_NOT_SUPPORTED;
  *resource = {};
  resource->type = type;
  resource->sm.smCount = kSms;
  return CUDA_SUCCESS;
}

/// One group at most, of a multiple of `kFewestSms`.
CUresult split_sms(CUdevResource* groups, unsigned* count, const CUdevResource* all, CUdevResource* rest, unsigned,
                   unsigned least) {
  const unsigned wanted = (std::max(least, 1U) + kFewestSms - 1) / kFewestSms * kFewestSms;
  if (*count != 1 || wanted > all->sm.smCount) return CUDA_ERROR_INVALID_VALUE;
  groups[0] = *rest = *all;
  groups[0].sm.smCount = wanted;
  rest->sm.smCount -= wanted;
  return CUDA_SUCCESS;
}

CUresult describe_sms(CUdevResourceDesc* described, CUdevResource* parts, unsigned count) {
  if (count != 1) return CUDA_ERROR_INVALID_VALUE;
  thread_local Sms last;
  last.count = static_cast<int>(parts->sm.smCount);
  *described = reinterpret_cast<CUdevResourceDesc>(&last);
  return CUDA_SUCCESS;
}

CUresult make_green(CUgreenCtx* made, CUdevResourceDesc described, CUdevice device, unsigned flags) {
  if (const int planned = planned_failure("cuGreenCtxCreate"); planned != 0) return static_cast<CUresult>(planned);
  if (flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  *made = reinterpret_cast<CUgreenCtx>(new Sms{device, reinterpret_cast<const Sms*>(described)->count});
  return CUDA_SUCCESS;
}

/// A context whose streams are not all destroyed takes its GPU with it.
CUresult destroy_green(CUgreenCtx context) {
  const std::unique_ptr<Sms> sms(reinterpret_cast<Sms*>(context));
  for (const auto& known : sms->streams)
    if (const auto stream = known.lock(); stream != nullptr && !stream->destroyed)
      gpu(sms->device).break_with(cudaErrorContextIsDestroyed);
  return CUDA_SUCCESS;
}

CUresult make_green_stream(CUstream* stream, CUgreenCtx context, unsigned flags, int) {
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  Sms& sms = *reinterpret_cast<Sms*>(context);
  *stream = gpu(sms.device).make_stream(false);
  (*stream)->sms = sms.count;
  sms.streams.push_back((*stream)->weak_from_this());
  return CUDA_SUCCESS;
}

struct Entry {
  const char* name;
  void* function;
};
const Entry kEntries[] = {
    {"cuStreamWaitValue32", reinterpret_cast<void*>(wait_value)},
    {"cuStreamWriteValue32", reinterpret_cast<void*>(write_value)},
    {"cuStreamBatchMemOp", reinterpret_cast<void*>(batch_operations)},
    {"cuDeviceGet", reinterpret_cast<void*>(device_of)},
    {"cuDeviceGetDevResource", reinterpret_cast<void*>(sms_of)},
    {"cuDevSmResourceSplitByCount", reinterpret_cast<void*>(split_sms)},
    {"cuDevResourceGenerateDesc", reinterpret_cast<void*>(describe_sms)},
    {"cuGreenCtxCreate", reinterpret_cast<void*>(make_green)},
    {"cuGreenCtxDestroy", reinterpret_cast<void*>(destroy_green)},
    {"cuGreenCtxStreamCreate", reinterpret_cast<void*>(make_green_stream)},
    {"cuDeviceGetAttribute", reinterpret_cast<void*>(attribute_of)},
    {"cuGetErrorName", reinterpret_cast<void*>(name_of)},
    {"cuCtxGetCurrent", reinterpret_cast<void*>(cuCtxGetCurrent)},
    {"cuCtxGetDevice", reinterpret_cast<void*>(cuCtxGetDevice)},
    {"cuDeviceGetPCIBusId", reinterpret_cast<void*>(cuDeviceGetPCIBusId)},
    {"cuEventCreate", reinterpret_cast<void*>(cuEventCreate)},
    {"cuEventDestroy", reinterpret_cast<void*>(cuEventDestroy)},
    {"cuEventQuery", reinterpret_cast<void*>(cuEventQuery)},
    {"cuEventRecord", reinterpret_cast<void*>(cuEventRecord)},
    {"cuMemHostRegister", reinterpret_cast<void*>(cuMemHostRegister)},
    {"cuMemHostUnregister", reinterpret_cast<void*>(cuMemHostUnregister)},
    {"cuMemcpy2DAsync", reinterpret_cast<void*>(cuMemcpy2DAsync)},
    {"cuMemcpyDtoHAsync", reinterpret_cast<void*>(cuMemcpyDtoHAsync)},
    {"cuMemcpyHtoDAsync", reinterpret_cast<void*>(cuMemcpyHtoDAsync)},
    {"cuPointerGetAttributes", reinterpret_cast<void*>(cuPointerGetAttributes)},
    {"cuStreamGetCtx", reinterpret_cast<void*>(cuStreamGetCtx)},
    {"cuStreamIsCapturing", reinterpret_cast<void*>(cuStreamIsCapturing)},
    {"cuStreamSynchronize", reinterpret_cast<void*>(cuStreamSynchronize)},
    {"cuThreadExchangeStreamCaptureMode", reinterpret_cast<void*>(cuThreadExchangeStreamCaptureMode)},
};

}  // namespace
}  // namespace tutti::internal::host_cuda

using namespace tutti::internal::host_cuda;

extern "C" cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                                        unsigned long long, cudaDriverEntryPointQueryResult* result) {
  return call("cudaGetDriverEntryPointByVersion", Scope::Program, [&] {
    *function = nullptr;
    for (const auto& [name, entry] : kEntries)
      if (std::strcmp(name, symbol) == 0) *function = entry;
    *result = *function == nullptr ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
    return cudaSuccess;
  });
}
