#include "runtime/api/dlpack.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "model/base/wide.hpp"

namespace tutti::internal {
namespace {

constexpr std::uint32_t kMajor = 1, kMinor = 0;
constexpr std::uint64_t kReadOnly = 1;
constexpr std::uint8_t kUnsigned = 1;
enum DeviceType : std::int32_t { kCpu = 1, kCuda = 2, kPinned = 3, kManaged = 13 };

/// Bytes of all elements; below 0: there are too many, or no shape says how many.
std::int64_t bytes_in(const ManagedTensor& managed) {
  const auto& tensor = managed.dl_tensor;
  if (tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr)) return -1;
  const std::span<const std::int64_t> shape(tensor.shape, static_cast<std::size_t>(tensor.ndim));
  if (std::ranges::any_of(shape, [](std::int64_t length) { return length < 0; })) return -1;
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  Wide bits = Wide{tensor.dtype.bits} * tensor.dtype.lanes;
  for (const std::int64_t length : shape) {
    bits *= length;
    if (bits > Wide{INT64_MAX}) return -1;
  }
  return static_cast<std::int64_t>((bits + 7) / 8);
}

/// Whether the last index moves by one element, and each before it over all behind it.
bool is_contiguous(const ManagedTensor& managed) {
  const auto& tensor = managed.dl_tensor;
  if (tensor.strides == nullptr) return true;
  std::int64_t step = 1;
  for (std::int32_t i = tensor.ndim; i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != step) return false;
    step *= tensor.shape[i];
  }
  return true;
}

/// A tensor with all that it consists of.
struct Exported {
  ManagedTensor tensor{};
  std::int64_t bytes = 0, stride = 1;
  std::function<void()> hold;
};

}  // namespace

Expected<TensorMemory> memory_of(const ManagedTensor& managed) {
  if (managed.version.major != kMajor)
    return invalid_input(fmt::format("the tensor is of version {}.{} of DLPack; give one of version 1",
                                     managed.version.major, managed.version.minor));
  const auto& tensor = managed.dl_tensor;
  if (tensor.device.type == kManaged)
    return invalid_input(
        "the tensor lies in managed memory, which may move; copy it into memory of a GPU or of the host");
  if (tensor.device.type != kCpu && tensor.device.type != kCuda && tensor.device.type != kPinned)
    return invalid_input(fmt::format(
        "the tensor lies on a device of kind {}; give one of the host (1, 3) or of CUDA (2)", tensor.device.type));
  if (tensor.device.type == kCuda && tensor.device.id < 0)
    return invalid_input(fmt::format("the tensor lies in GPU {} of CUDA, which is none", tensor.device.id));
  const std::int64_t bytes = bytes_in(managed);
  if (bytes < 0)
    return invalid_input("the tensor has no shape, or one with a negative length or more bytes than can be counted");
  if (bytes > 0 && !is_contiguous(managed))
    return invalid_input(
        "the elements of the tensor do not follow each other; give one that is contiguous, such as "
        "'tensor.contiguous()'");
  if (tensor.byte_offset > std::uint64_t{INT64_MAX} - reinterpret_cast<std::uintptr_t>(tensor.data))
    return invalid_input(
        fmt::format("the tensor begins {} bytes behind its memory, where nothing lies", tensor.byte_offset));
  auto* const data = tensor.data == nullptr ? nullptr : static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  return TensorMemory{{data, static_cast<std::size_t>(bytes)},
                      tensor.device.type == kCuda ? tensor.device.id : -1,
                      (managed.flags & kReadOnly) != 0};
}

ManagedTensor* tensor_of(const TensorMemory& memory, std::function<void()> hold) {
  auto made = std::make_unique<Exported>();
  made->bytes = static_cast<std::int64_t>(memory.bytes.size());
  made->hold = std::move(hold);
  ManagedTensor& tensor = made->tensor;
  tensor.version = {kMajor, kMinor};
  tensor.manager_ctx = made.get();
  tensor.deleter = [](ManagedTensor* self) { delete static_cast<Exported*>(self->manager_ctx); };
  tensor.flags = memory.is_read_only ? kReadOnly : 0;
  tensor.dl_tensor.data = memory.bytes.data();
  tensor.dl_tensor.device = {memory.cuda_device < 0 ? kCpu : kCuda, std::max(memory.cuda_device, 0)};
  tensor.dl_tensor.ndim = 1;
  tensor.dl_tensor.dtype = {kUnsigned, 8, 1};
  tensor.dl_tensor.shape = &made->bytes;
  tensor.dl_tensor.strides = &made->stride;
  return &made.release()->tensor;
}

}  // namespace tutti::internal
