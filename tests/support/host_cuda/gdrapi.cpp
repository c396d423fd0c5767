// GDRCopy, as far as runtime/cuda/memory/bar_window asks it. The memory of GPUs is the host's; a window lies where
// nothing is, so that a program reaches it through this library alone.
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>

namespace {

constexpr std::uintptr_t kGpuPage = 64 << 10, kHostPage = 4 << 10;
/// From a GPU's address to its place in a window.
constexpr std::uintptr_t kAway = std::uintptr_t{1} << 60;

struct Buffer {
  std::uintptr_t begin = 0;
  std::size_t size = 0;
  bool is_mapped = false;
};

struct Handle {
  Buffer* buffer;
};

struct Mapping {
  std::uint64_t begin, mapped_size;
  std::uint32_t page_size;
  std::uint64_t cycles;
  std::uint32_t cycles_per_ms;
  unsigned is_mapped : 1, is_write_combined : 1;
  int type;
};

std::mutex mutex;
std::string fails;  // the mutex guards it
int fails_with = 0;
std::atomic<int> open_things{0};  // connections, pins, mappings
std::atomic<bool> by_dma_buf{false};

std::uintptr_t page() { return by_dma_buf ? kHostPage : kGpuPage; }

int planned(const char* function) {
  const std::lock_guard lock(mutex);
  return fails == function ? fails_with : 0;
}

/// Where a part of a window lies in the GPU's memory; null: it is in part outside of the window.
std::byte* in_window(const Buffer& buffer, const void* place, std::size_t size) {
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(place) - kAway;
  const bool inside = buffer.is_mapped && begin >= buffer.begin && begin + size <= buffer.begin + buffer.size;
  return inside ? reinterpret_cast<std::byte*>(begin) : nullptr;
}

}  // namespace

extern "C" {

/// For tests: a function fails from now on; none where the name is empty.
void set_gdr_failure(const char* function, int code) {
  const std::lock_guard lock(mutex);
  fails = function;
  fails_with = code;
}
/// For tests: it maps by DMA-BUF, in pages of the host, and not beyond a buffer, which is smaller than a page of a GPU.
void set_gdr_dma_buf(bool on) { by_dma_buf = on; }
/// For tests: connections, pinned buffers and mappings that there are.
int count_gdr_things() { return open_things; }

void* gdr_open() {
  if (planned("gdr_open") != 0) return nullptr;
  ++open_things;
  return &open_things;
}

int gdr_close(void*) { return --open_things, 0; }

int gdr_pin_buffer(void*, unsigned long address, std::size_t size, std::uint64_t, std::uint32_t, Handle* handle) {
  if (const int code = planned("gdr_pin_buffer"); code != 0) return code;
  if (by_dma_buf && size >= kGpuPage) return EINVAL;
  ++open_things;
  handle->buffer = new Buffer{address, size};
  return 0;
}

int gdr_unpin_buffer(void*, Handle handle) {
  if (handle.buffer->is_mapped) --open_things;
  delete handle.buffer;
  return --open_things, 0;
}

int gdr_get_info_v2(void*, Handle handle, Mapping* mapping) {
  if (const int code = planned("gdr_get_info_v2"); code != 0) return code;
  *mapping = {};
  mapping->begin = handle.buffer->begin / page() * page();
  mapping->mapped_size = handle.buffer->size;
  return 0;
}

/// As the kernel module: only what begins at a page.
int gdr_map(void*, Handle handle, void** place, std::size_t size) {
  if (const int code = planned("gdr_map"); code != 0) return code;
  Buffer& buffer = *handle.buffer;
  if (buffer.begin % page() != 0 || size > buffer.size || buffer.is_mapped) return EINVAL;
  ++open_things;
  buffer.is_mapped = true;
  *place = reinterpret_cast<void*>(buffer.begin + kAway);
  return 0;
}

int gdr_unmap(void*, Handle handle, void*, std::size_t) {
  if (!handle.buffer->is_mapped) return EINVAL;
  handle.buffer->is_mapped = false;
  return --open_things, 0;
}

int gdr_copy_to_mapping(Handle handle, void* to, const void* from, std::size_t size) {
  if (const int code = planned("gdr_copy_to_mapping"); code != 0) return code;
  std::byte* const place = in_window(*handle.buffer, to, size);
  if (place == nullptr) return EINVAL;
  std::memcpy(place, from, size);
  return 0;
}

int gdr_copy_from_mapping(Handle handle, void* to, const void* from, std::size_t size) {
  if (const int code = planned("gdr_copy_from_mapping"); code != 0) return code;
  const std::byte* const place = in_window(*handle.buffer, from, size);
  if (place == nullptr) return EINVAL;
  std::memcpy(to, place, size);
  return 0;
}
}
