#pragma once
#include <atomic>
#include <cstddef>
#include <memory>

namespace tutti::internal {

struct BufferView;
class BufferSource;

/// Holds by address: memory that a program still looks at outlives the `Buffer` that owns it.
///
/// A program gets addresses of memory that ends with a run. It can hold one without knowing which buffer it lies in.
/// There is one set of holds for the process, because an address names memory of any run.
class HeldMemory {
 public:
  /// The buffer with this address in it is not given back until the hold is released. There may be several for an
  /// address.
  static void hold(const void* address);
  /// Releases one hold of this address, and gives back buffers that ended meanwhile and have no hold any more. Any
  /// thread: memory of a source that a backend or a buffer still has is given back when a buffer of that source ends,
  /// in a thread that may use it.
  /// @pre it is held
  static void release(const void* address) noexcept;
  /// Whether there may be holds; nothing is locked while there are none.
  [[nodiscard]] static bool is_used() noexcept { return in_use_.load(std::memory_order_acquire) != 0; }
  /// Gives back what waits for a source that has ended meanwhile. Any thread.
  static void give_back_abandoned() noexcept;
  /// Gives back the memory of a buffer that ends: at once, or behind the last hold in it.
  static void give_back(const BufferView& memory, std::shared_ptr<BufferSource> source) noexcept;

 private:
  static std::atomic<std::size_t> in_use_;  // holds, and buffers that wait
};

}  // namespace tutti::internal
