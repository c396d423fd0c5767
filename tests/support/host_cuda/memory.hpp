#pragma once
#include <cstddef>
#include <optional>

#include <cuda_runtime_api.h>

namespace tutti::internal::host_cuda {

/// Memory that the runtime knows: of a GPU, or pinned.
struct Region {
  std::byte* begin = nullptr;
  std::size_t size = 0;
  int device = -1;  ///< below 0: pinned host memory
  int file = -1;    ///< of memory that this process allocated in a GPU, by which others map it
};

/// The region of an address; nothing: host memory that is not pinned.
[[nodiscard]] std::optional<Region> region_of(const void* address);
/// Whether a GPU reaches an address: its own memory, that of its peers, pinned memory.
[[nodiscard]] bool reaches(int device, const void* address);
/// Whether all bytes from an address on are of its region, or host memory that is not pinned.
[[nodiscard]] bool holds(const void* address, std::size_t size);

}  // namespace tutti::internal::host_cuda
