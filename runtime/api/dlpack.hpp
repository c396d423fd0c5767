#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "model/base/error.hpp"

namespace tutti::internal {

/// A tensor that a library lends to another one: the layout of `DLManagedTensorVersioned` of DLPack 1.
/// @source https://dmlc.github.io/dlpack/latest/c_api.html
struct ManagedTensor {
  struct {
    std::uint32_t major, minor;
  } version;
  void* manager_ctx;
  void (*deleter)(ManagedTensor* self);  ///< gives it back; null: nobody waits for that
  std::uint64_t flags;
  struct {
    void* data;
    struct {
      std::int32_t type, id;
    } device;
    std::int32_t ndim;
    struct {
      std::uint8_t code, bits;
      std::uint16_t lanes;
    } dtype;
    std::int64_t* shape;    // [ndim]
    std::int64_t* strides;  // [ndim] in elements; null: rows follow each other
    std::uint64_t byte_offset;
  } dl_tensor;
};

/// Where a tensor lies.
struct TensorMemory {
  std::span<std::byte> bytes;
  int cuda_device = -1;  ///< its number in CUDA; below 0: the host
  bool is_read_only = false;
};

/// @errors InvalidInput: another major version, elements that do not follow each other, managed memory, memory of
///         another kind of device.
[[nodiscard]] Expected<TensorMemory> memory_of(const ManagedTensor& tensor);

/// A tensor of bytes, which holds its memory until it is given back.
/// @param hold  goes then
[[nodiscard]] ManagedTensor* tensor_of(const TensorMemory& memory, std::function<void()> hold);

}  // namespace tutti::internal
