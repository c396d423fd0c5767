#pragma once
#include <cstddef>
#include <span>
#include <utility>

#include "runtime/cuda/base/status.hpp"

namespace tutti::internal::cuda {

/// Host memory that never moves, that every GPU reaches at the same address. Move-only; unpins when it goes, and frees
/// what it made.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  PinnedMemory(PinnedMemory&& other) noexcept { *this = std::move(other); }
  PinnedMemory& operator=(PinnedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  PinnedMemory(const PinnedMemory&) = delete;  // pinned memory is scarce
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory();

  /// Zeroed memory, in huge pages where the host has them: its pinning then takes half the time.
  /// @param numa_node  the system's number of the NUMA node that it lies on; below 0, or unknown to it: wherever.
  /// @errors Machine: the host has not so much, or refuses to pin it.
  [[nodiscard]] static Expected<PinnedMemory> make(std::size_t size, int numa_node = -1);
  /// Pins memory that somebody else has.
  /// @errors InvalidInput: a part of it is pinned already. Machine: the host refuses to pin it.
  [[nodiscard]] static Expected<PinnedMemory> around(std::span<std::byte> memory);

  [[nodiscard]] std::byte* data() const { return data_; }
  /// Unpins somebody else's memory. @pre `around` made it.
  void unpin();

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;  // as mapped; 0: somebody else's memory
};

}  // namespace tutti::internal::cuda
