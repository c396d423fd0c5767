// Copies of the driver, by the names that its library exports, and as `cuGetProcAddress` finds them. Both default
// streams are one.
#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "tests/support/host_cuda/driver_call.hpp"

#undef cuGetProcAddress  // the first one, by its own name
extern "C" CUresult cuGetProcAddress(const char* name, void** found, int version, cuuint64_t flags);

namespace tutti::internal::host_cuda {
namespace {

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

CUresult copy(const char* function, std::vector<Copy> copies, cudaMemcpyKind kind, CUstream stream) {
  return driver_call(function, [&] { return enqueue_copies(stream_of(stream), std::move(copies), kind); });
}

/// In the default stream, and waits for it: no call in a capture.
CUresult copy(const char* function, std::vector<Copy> copies, cudaMemcpyKind kind) {
  return driver_call(function, [&] {
    if (const cudaError_t refused = refuse_waiting(); refused != cudaSuccess) return refused;
    const cudaError_t status = enqueue_copies(nullptr, std::move(copies), kind);
    CUstream_st& stream = *current_gpu().default_stream();
    return status == cudaSuccess ? wait_for(stream, stream.enqueued) : status;
  });
}

std::byte* begin_of(CUmemorytype type, const void* host, CUdeviceptr device) {
  return static_cast<std::byte*>(type == CU_MEMORYTYPE_HOST ? const_cast<void*>(host) : pointer(device));
}

std::vector<Copy> rows_of(const CUDA_MEMCPY3D& box) {
  std::byte* const to = begin_of(box.dstMemoryType, box.dstHost, box.dstDevice);
  const std::byte* const from = begin_of(box.srcMemoryType, box.srcHost, box.srcDevice);
  std::vector<Copy> rows;
  for (std::size_t z = 0; z < box.Depth; ++z)
    for (std::size_t y = 0; y < box.Height; ++y)
      rows.push_back({to + ((box.dstZ + z) * box.dstHeight + box.dstY + y) * box.dstPitch + box.dstXInBytes,
                      from + ((box.srcZ + z) * box.srcHeight + box.srcY + y) * box.srcPitch + box.srcXInBytes,
                      box.WidthInBytes});
  return rows;
}

std::vector<Copy> rows_of(const CUDA_MEMCPY2D& rows) {
  CUDA_MEMCPY3D box{};
  box.srcXInBytes = rows.srcXInBytes, box.srcY = rows.srcY, box.srcMemoryType = rows.srcMemoryType;
  box.srcHost = rows.srcHost, box.srcDevice = rows.srcDevice, box.srcPitch = rows.srcPitch;
  box.dstXInBytes = rows.dstXInBytes, box.dstY = rows.dstY, box.dstMemoryType = rows.dstMemoryType;
  box.dstHost = rows.dstHost, box.dstDevice = rows.dstDevice, box.dstPitch = rows.dstPitch;
  box.WidthInBytes = rows.WidthInBytes, box.Height = rows.Height, box.Depth = 1;
  return rows_of(box);
}

bool pitches_are_valid(std::size_t width, std::size_t from, std::size_t to) { return from >= width && to >= width; }

CUresult refuse(const char* function) {
  return driver_call(function, [] { return cudaErrorInvalidValue; });
}

template <class Shape, class... Stream>
CUresult copy_shape(const char* function, const Shape* shape, Stream... stream) {
  if (shape == nullptr ||
      !pitches_are_valid(shape->WidthInBytes + shape->srcXInBytes, shape->srcPitch, ~std::size_t{0}) ||
      !pitches_are_valid(shape->WidthInBytes + shape->dstXInBytes, ~std::size_t{0}, shape->dstPitch))
    return refuse(function);
  return copy(function, rows_of(*shape), cudaMemcpyDefault, stream...);
}

}  // namespace
}  // namespace tutti::internal::host_cuda

using namespace tutti::internal::host_cuda;

extern "C" {

CUresult cuMemAlloc_v2(CUdeviceptr* memory, size_t size) {
  return driver_call("cuMemAlloc_v2", [&] { return cudaMalloc(reinterpret_cast<void**>(memory), size); });
}

CUresult cuMemFree_v2(CUdeviceptr memory) {
  return driver_call("cuMemFree_v2", [&] { return cudaFree(pointer(memory)); });
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return copy("cuMemcpy", {{pointer(to), pointer(from), size}}, cudaMemcpyDefault);
}
CUresult cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t size) {
  return copy("cuMemcpy_ptds", {{pointer(to), pointer(from), size}}, cudaMemcpyDefault);
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  return copy("cuMemcpyAsync", {{pointer(to), pointer(from), size}}, cudaMemcpyDefault, stream);
}
CUresult cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  return copy("cuMemcpyAsync_ptsz", {{pointer(to), pointer(from), size}}, cudaMemcpyDefault, stream);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t size) {
  return copy("cuMemcpyHtoD_v2", {{pointer(to), from, size}}, cudaMemcpyHostToDevice);
}
CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void* from, size_t size) {
  return copy("cuMemcpyHtoD_v2_ptds", {{pointer(to), from, size}}, cudaMemcpyHostToDevice);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t size, CUstream stream) {
  return copy("cuMemcpyHtoDAsync_v2", {{pointer(to), from, size}}, cudaMemcpyHostToDevice, stream);
}
CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void* from, size_t size, CUstream stream) {
  return copy("cuMemcpyHtoDAsync_v2_ptsz", {{pointer(to), from, size}}, cudaMemcpyHostToDevice, stream);
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t size) {
  return copy("cuMemcpyDtoH_v2", {{to, pointer(from), size}}, cudaMemcpyDeviceToHost);
}
CUresult cuMemcpyDtoH_v2_ptds(void* to, CUdeviceptr from, size_t size) {
  return copy("cuMemcpyDtoH_v2_ptds", {{to, pointer(from), size}}, cudaMemcpyDeviceToHost);
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t size, CUstream stream) {
  return copy("cuMemcpyDtoHAsync_v2", {{to, pointer(from), size}}, cudaMemcpyDeviceToHost, stream);
}
CUresult cuMemcpyDtoHAsync_v2_ptsz(void* to, CUdeviceptr from, size_t size, CUstream stream) {
  return copy("cuMemcpyDtoHAsync_v2_ptsz", {{to, pointer(from), size}}, cudaMemcpyDeviceToHost, stream);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* rows) { return copy_shape("cuMemcpy2D_v2", rows); }
CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D* rows) { return copy_shape("cuMemcpy2D_v2_ptds", rows); }
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* rows) { return copy_shape("cuMemcpy2DUnaligned_v2", rows); }
CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D* rows) {
  return copy_shape("cuMemcpy2DUnaligned_v2_ptds", rows);
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* rows, CUstream stream) {
  return copy_shape("cuMemcpy2DAsync_v2", rows, stream);
}
CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D* rows, CUstream stream) {
  return copy_shape("cuMemcpy2DAsync_v2_ptsz", rows, stream);
}
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* box) { return copy_shape("cuMemcpy3D_v2", box); }
CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D* box) { return copy_shape("cuMemcpy3D_v2_ptds", box); }
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* box, CUstream stream) {
  return copy_shape("cuMemcpy3DAsync_v2", box, stream);
}
CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D* box, CUstream stream) {
  return copy_shape("cuMemcpy3DAsync_v2_ptsz", box, stream);
}
}

namespace tutti::internal::host_cuda {
namespace {

struct Exported {
  std::string_view name;
  void* function;
};

template <class Function>
Exported row(std::string_view name, Function* function) {
  return {name, reinterpret_cast<void*>(function)};
}

/// What `cuGetProcAddress` finds: by its own addresses, whatever a program has put before this library.
void* exported(std::string_view name) {
  static const std::array rows{row("cuGetProcAddress", cuGetProcAddress),
                               row("cuGetProcAddress_v2", cuGetProcAddress_v2),
                               row("cuInit", cuInit),
                               row("cuMemcpy", cuMemcpy),
                               row("cuMemcpy_ptds", cuMemcpy_ptds),
                               row("cuMemcpyAsync", cuMemcpyAsync),
                               row("cuMemcpyAsync_ptsz", cuMemcpyAsync_ptsz),
                               row("cuMemcpyHtoD_v2", cuMemcpyHtoD_v2),
                               row("cuMemcpyHtoD_v2_ptds", cuMemcpyHtoD_v2_ptds),
                               row("cuMemcpyHtoDAsync_v2", cuMemcpyHtoDAsync_v2),
                               row("cuMemcpyHtoDAsync_v2_ptsz", cuMemcpyHtoDAsync_v2_ptsz),
                               row("cuMemcpyDtoH_v2", cuMemcpyDtoH_v2),
                               row("cuMemcpyDtoH_v2_ptds", cuMemcpyDtoH_v2_ptds),
                               row("cuMemcpyDtoHAsync_v2", cuMemcpyDtoHAsync_v2),
                               row("cuMemcpyDtoHAsync_v2_ptsz", cuMemcpyDtoHAsync_v2_ptsz),
                               row("cuMemcpy2D_v2", cuMemcpy2D_v2),
                               row("cuMemcpy2D_v2_ptds", cuMemcpy2D_v2_ptds),
                               row("cuMemcpy2DUnaligned_v2", cuMemcpy2DUnaligned_v2),
                               row("cuMemcpy2DUnaligned_v2_ptds", cuMemcpy2DUnaligned_v2_ptds),
                               row("cuMemcpy2DAsync_v2", cuMemcpy2DAsync_v2),
                               row("cuMemcpy2DAsync_v2_ptsz", cuMemcpy2DAsync_v2_ptsz),
                               row("cuMemcpy3D_v2", cuMemcpy3D_v2),
                               row("cuMemcpy3D_v2_ptds", cuMemcpy3D_v2_ptds),
                               row("cuMemcpy3DAsync_v2", cuMemcpy3DAsync_v2),
                               row("cuMemcpy3DAsync_v2_ptsz", cuMemcpy3DAsync_v2_ptsz)};
  for (const Exported& one : rows)
    if (one.name == name) return one.function;
  return nullptr;
}

/// The newest function of the name that the version has: `_v2` since 3.2, variants for a default stream a thread
/// since 7.
void* function_of(const std::string& name, int version, cuuint64_t flags) {
  if (name == "cuGetProcAddress") return exported(version < 12000 ? name : name + "_v2");
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0 && version >= 7000;
  for (const char* second : {"_v2", ""})
    for (const char* variant : {"_ptds", "_ptsz", ""}) {
      if (per_thread == (*variant == '\0') || (*second != '\0' && version < 3020)) continue;
      if (void* const found = exported(name + second + variant)) return found;
    }
  return exported(name);
}

}  // namespace
}  // namespace tutti::internal::host_cuda

extern "C" CUresult cuGetProcAddress_v2(const char* name, void** found, int version, cuuint64_t flags,
                                        CUdriverProcAddressQueryResult* why) {
  if (name == nullptr || found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *found = function_of(name, version, flags);
  if (why != nullptr) *why = *found ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

extern "C" CUresult cuGetProcAddress(const char* name, void** found, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(name, found, version, flags, nullptr);
}
