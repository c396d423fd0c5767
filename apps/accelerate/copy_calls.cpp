#include "apps/accelerate/copy_calls.hpp"

#include <cstdint>
#include <limits>

namespace tutti::internal::cuda {
namespace {

/// One end of a box of bytes.
struct End {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  std::size_t x, y, z, pitch, height;  ///< where the box begins, and how long and how many its rows are there
};

struct Box {
  std::size_t width, height, depth;
};

/// A copy engine loses a twentieth of its time with rows of this length, and more with shorter ones.
constexpr std::size_t kShortestRow = 1024;

bool may_be_host(const End& end) { return end.type == CU_MEMORYTYPE_HOST || end.type == CU_MEMORYTYPE_UNIFIED; }
bool may_be_device(const End& end) { return end.type == CU_MEMORYTYPE_DEVICE || end.type == CU_MEMORYTYPE_UNIFIED; }

/// Whether each row of the box begins a pitch behind the one before it. The driver takes no longer pitch.
bool is_evenly_spaced(const Box& box, const End& end) {
  constexpr std::size_t kLongestPitch = std::numeric_limits<std::int32_t>::max();
  return end.pitch >= end.x + box.width && end.pitch <= kLongestPitch &&
         (box.depth == 1 || (end.y == 0 && end.height == box.height));
}

bool has_gaps(const Box& box, const End& end) { return box.height * box.depth > 1 && end.pitch != box.width; }

const void* first_of(const End& end) {
  const std::size_t offset = (end.z * end.height + end.y) * end.pitch + end.x;
  const bool is_host = end.type == CU_MEMORYTYPE_HOST;
  const auto begin = is_host ? reinterpret_cast<std::uintptr_t>(end.host) : static_cast<std::uintptr_t>(end.device);
  return begin == 0 ? nullptr : reinterpret_cast<const void*>(begin + offset);
}

std::optional<CopyCall> bytes_of(const Box& box, const End& from, const End& to, CUstream stream, bool waits) {
  if (box.width == 0 || box.height == 0 || box.depth == 0) return std::nullopt;
  if (!is_evenly_spaced(box, from) || !is_evenly_spaced(box, to)) return std::nullopt;
  std::size_t rows = 0, bytes = 0;
  if (__builtin_mul_overflow(box.height, box.depth, &rows) || __builtin_mul_overflow(box.width, rows, &bytes))
    return std::nullopt;
  const bool gaps_behind = has_gaps(box, to), gaps_before = has_gaps(box, from);
  if ((gaps_behind || gaps_before) && box.width < kShortestRow) return std::nullopt;
  CopyCall call{const_cast<void*>(first_of(to)),
                first_of(from),
                bytes,
                may_be_host(from) && !gaps_before && may_be_device(to),
                may_be_device(from) && may_be_host(to) && !gaps_behind,
                stream,
                waits};
  if (gaps_behind || gaps_before) call.rows = {box.width, gaps_behind ? to.pitch : from.pitch};
  return call;
}

}  // namespace

std::optional<CopyCall> bytes_of(const CUDA_MEMCPY2D* rows, CUstream stream, bool waits) {
  if (rows == nullptr) return std::nullopt;
  const End from{
      rows->srcMemoryType, rows->srcHost, rows->srcDevice, rows->srcXInBytes, rows->srcY, 0, rows->srcPitch, 0};
  const End to{
      rows->dstMemoryType, rows->dstHost, rows->dstDevice, rows->dstXInBytes, rows->dstY, 0, rows->dstPitch, 0};
  return bytes_of({rows->WidthInBytes, rows->Height, 1}, from, to, stream, waits);
}

std::optional<CopyCall> bytes_of(const CUDA_MEMCPY3D* box, CUstream stream, bool waits) {
  if (box == nullptr || box->srcLOD != 0 || box->dstLOD != 0) return std::nullopt;
  const End from{box->srcMemoryType, box->srcHost, box->srcDevice, box->srcXInBytes,
                 box->srcY,          box->srcZ,    box->srcPitch,  box->srcHeight};
  const End to{box->dstMemoryType, box->dstHost, box->dstDevice, box->dstXInBytes,
               box->dstY,          box->dstZ,    box->dstPitch,  box->dstHeight};
  return bytes_of({box->WidthInBytes, box->Height, box->Depth}, from, to, stream, waits);
}

}  // namespace tutti::internal::cuda
