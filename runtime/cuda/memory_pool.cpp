#include "runtime/cuda/memory_pool.hpp"

#include <algorithm>
#include <cstring>

namespace tutti::internal::cuda {
namespace {

/// Sizes are multiples of this, so that small blocks fit again.
constexpr std::size_t kUnit = 4096;
/// Returned memory that stays pinned while nothing runs: pinning a small block takes 0.3 ms, unpinning as long.
constexpr std::size_t kKept = std::size_t{16} << 20;

std::size_t rounded(std::size_t size) { return (std::max<std::size_t>(size, 1) + kUnit - 1) / kUnit * kUnit; }

/// Whether a block serves a request: half of it may be wasted.
bool fits(const MemoryBlock& block, const MemoryPlace& place, std::size_t size) {
  return block.place == place && block.size >= size && block.size / 2 <= size;
}

/// Memory of a GPU. The driver waits for the GPU before it says that there is too little, so it is asked for no more
/// than there is.
Expected<DeviceMemory> make_if_there(int device, std::size_t size) {
  constexpr std::size_t kPage = std::size_t{2} << 20;
  const DeviceGuard guard(device);
  std::size_t free = 0, total = 0;
  if (auto ok = check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo"); !ok)
    return tl::unexpected(std::move(ok.error()));
  if (size > free / kPage * kPage) return machine_error("too little memory");
  return make_device_memory(device, size);
}

Expected<MemoryBlock> make_block(const MemoryPlace& place, std::size_t size) {
  if (place.device < 0)
    return PinnedMemory::make(size, place.numa_node).map([&](PinnedMemory&& memory) {
      return MemoryBlock{place, size, std::move(memory)};
    });
  return make_if_there(place.device, size).map([&](DeviceMemory&& memory) {
    return MemoryBlock{place, size, {}, std::move(memory)};
  });
}

}  // namespace

PooledMemory::~PooledMemory() {
  if (!block_.empty()) MemoryPool::instance().give_back(block_);
}

std::byte* PooledMemory::data() const {
  if (block_.empty()) return nullptr;
  const MemoryBlock& block = block_.front();
  return block.place.device < 0 ? block.host.data() : block.device.get();
}

MemoryPool& MemoryPool::instance() {
  static MemoryPool* const pool = new MemoryPool;
  return *pool;
}

Expected<PooledMemory> MemoryPool::take_host(std::size_t size, int numa_node) {
  return take({-1, numa_node}, rounded(size)).map([&](PooledMemory&& memory) {
    std::memset(memory.data(), 0, size);
    return std::move(memory);
  });
}

Expected<PooledMemory> MemoryPool::take_device(int device, std::size_t size, cudaStream_t stream) {
  return take({device}, rounded(size)).and_then([&](PooledMemory&& memory) {
    return zero(device, memory.data(), size, stream).map([&] { return std::move(memory); });
  });
}

Expected<PooledMemory> MemoryPool::take(const MemoryPlace& place, std::size_t size) {
  PooledMemory memory = reuse(place, size);
  if (memory.data() != nullptr) return memory;
  auto made = make_block(place, size);
  if (!made && kept(place) > 0) {
    trim();
    made = make_block(place, size);
  }
  if (!made) return tl::unexpected(std::move(made.error()));
  memory.block_.push_back(*std::move(made));
  return memory;
}

/// The smallest block that fits; no memory where none does.
PooledMemory MemoryPool::reuse(const MemoryPlace& place, std::size_t size) {
  PooledMemory memory;
  const std::lock_guard lock(mutex_);
  auto best = kept_.end();
  for (auto block = kept_.begin(); block != kept_.end(); ++block)
    if (fits(*block, place, size) && (best == kept_.end() || block->size < best->size)) best = block;
  if (best == kept_.end()) return memory;
  kept_bytes_ -= best->size;
  memory.block_.splice(memory.block_.end(), kept_, best);
  return memory;
}

void MemoryPool::give_back(std::list<MemoryBlock>& block) noexcept {
  const std::lock_guard lock(mutex_);
  if (keeps_all_) return lost_.splice(lost_.end(), block);
  kept_bytes_ += block.front().size;
  kept_.splice(kept_.end(), block);
  if (kept_bytes_ > kKept) free_kept();
}

/// Either this sees that memory is being freed, or `free_kept` sees the run.
void MemoryPool::begin_run() {
  runs_.fetch_add(1);
  if (freeing_) const std::lock_guard wait(mutex_);
}

std::size_t MemoryPool::kept(const MemoryPlace& place) const {
  const std::lock_guard lock(mutex_);
  std::size_t kept = 0;
  for (const MemoryBlock& block : kept_)
    if (block.place == place) kept += block.size;
  return kept;
}

void MemoryPool::trim() {
  const std::lock_guard lock(mutex_);
  free_kept();
}

/// @pre the mutex is held
void MemoryPool::free_kept() {
  freeing_ = true;
  if (!keeps_all_ && runs_ == 0) {
    kept_.clear();
    kept_bytes_ = 0;
  }
  freeing_ = false;
}

}  // namespace tutti::internal::cuda
