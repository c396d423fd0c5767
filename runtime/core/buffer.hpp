#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "model/base/ids.hpp"
#include "model/base/units.hpp"
#include "runtime/core/held_memory.hpp"

namespace tutti::internal {

/// A view of memory of the machine, without ownership.
struct BufferView {
  VertexId where;             ///< the memory or GPU that it lies in
  std::byte* data = nullptr;  ///< an address in that place; the program may access it only in host memory
  Bytes size;

  [[nodiscard]] std::span<std::byte> bytes() const { return {data, static_cast<std::size_t>(size.count)}; }
  /// The first `count` bytes. @pre there are so many.
  [[nodiscard]] BufferView first(Bytes count) const { return {where, data, count}; }
  /// `count` bytes from `start` on. @pre there are so many.
  [[nodiscard]] BufferView part(Bytes start, Bytes count) const { return {where, data + start.count, count}; }
};

/// Takes freed memory back. Shared by a backend and its buffers, so that either may be destroyed first.
class BufferSource {
 public:
  virtual ~BufferSource() = default;
  virtual void give_back(const BufferView& memory) noexcept = 0;
};

/// Sole owner of memory of the machine. Memory that a program holds by its address is given back behind the last hold.
class Buffer {
 public:
  Buffer() = default;
  Buffer(BufferView memory, std::shared_ptr<BufferSource> source) : memory_(memory), source_(std::move(source)) {}
  Buffer(Buffer&& other) noexcept : memory_(std::exchange(other.memory_, {})), source_(std::move(other.source_)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(source_, other.source_);
    return *this;
  }
  Buffer(const Buffer&) = delete;  // device memory is never duplicated by accident
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (!source_) return;
    if (HeldMemory::is_used()) {
      HeldMemory::give_back(memory_, std::move(source_));
    } else {
      source_->give_back(memory_);
    }
  }

  [[nodiscard]] const BufferView& view() const { return memory_; }

 private:
  BufferView memory_;
  std::shared_ptr<BufferSource> source_;
};

/// A buffer of memory that is not the machine's to free.
/// @param owner  kept as long as the buffer; may be null
[[nodiscard]] Buffer borrowed(BufferView memory, std::shared_ptr<void> owner);

}  // namespace tutti::internal
