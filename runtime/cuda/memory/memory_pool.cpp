#include "runtime/cuda/memory/memory_pool.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

#include "model/base/units.hpp"

namespace tutti::internal::cuda {
namespace {

/// Sizes are multiples of this, so that small blocks fit again.
constexpr std::size_t kUnit = 4096;
/// Pinned blocks from here on are of no class: a quarter of them would be too much to waste.
constexpr std::size_t kLarge = std::size_t{64} << 20;
constexpr std::size_t kLargeUnit = std::size_t{2} << 20;
/// Returned memory of GPUs that stays while nothing runs.
constexpr std::size_t kKeptOfGpus = std::size_t{16} << 20;

std::size_t rounded(std::size_t size, std::size_t unit = kUnit) {
  return (std::max<std::size_t>(size, 1) + unit - 1) / unit * unit;
}

/// Pinned memory that stays while nothing runs: a quarter of the host's.
std::size_t most_kept() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<std::size_t>(pages) / 4 * static_cast<std::size_t>(page) : 0;
}

Bytes as_bytes(std::size_t size) { return Bytes{static_cast<std::int64_t>(size)}; }

/// Memory of a GPU. The driver waits for the GPU before it says that there is too little, so it is asked for no more
/// than there is.
Expected<DeviceMemory> make_if_there(int device, std::size_t size) {
  constexpr std::size_t kLargePage = std::size_t{2} << 20;
  const DeviceGuard guard(device);
  std::size_t free = 0, total = 0;
  if (auto ok = check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo"); !ok)
    return tl::unexpected(std::move(ok.error()));
  if (size > free / kLargePage * kLargePage) return machine_error("too little memory");
  return make_device_memory(device, size);
}

/// @param kept  that a run which is armed or under way keeps from being freed
tl::unexpected<Error> above_limit(std::size_t size, std::size_t limit, std::size_t in_use, std::size_t kept) {
  const std::string given_back =
      kept == 0
          ? ""
          : fmt::format(", and {} were given back, which are free once no batch is armed", to_string(as_bytes(kept)));
  return machine_error(
      fmt::format("{} more of pinned memory exceed the limit of {}: {} are in use{}; give up buffers first, or give a "
                  "limit (--pinned-limit) of at least {}",
                  to_string(as_bytes(size)), to_string(as_bytes(limit)), to_string(as_bytes(in_use)), given_back,
                  to_string(as_bytes(in_use + size))));
}

}  // namespace

std::size_t pinned_block_size(std::size_t size) {
  if (size >= kLarge) return rounded(size, kLargeUnit);
  const std::size_t pages = rounded(size) / kUnit;
  // p pages, 2^k < p <= 2^(k+1), in steps of 2^k / 4: less than p / 4 more.
  const std::size_t below = std::bit_ceil(pages) / 2;
  return rounded(pages, std::max<std::size_t>(below / 4, 1)) * kUnit;
}

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

Expected<PooledMemory> MemoryPool::take_host(std::size_t size, int numa_node, Contents contents) {
  const MemoryPlace place{-1, std::max(numa_node, -1)};
  const std::size_t block = pinned_block_size(size);
  PooledMemory memory = reuse_pinned(place, block, std::max(block, rounded(size) / 4 * 5));
  if (memory.data() != nullptr) {
    if (contents == Contents::Zeros) std::memset(memory.data(), 0, size);
    return memory;
  }
  if (auto ok = reserve(place.numa_node, block); !ok) return tl::unexpected(std::move(ok.error()));
  return pin(place.numa_node, block).map([&](PinnedMemory&& pinned) {
    memory.block_.push_back({place, block, std::move(pinned)});
    return std::move(memory);
  });
}

Expected<PooledMemory> MemoryPool::take_device(int device, std::size_t size, cudaStream_t stream) {
  const MemoryPlace place{device};
  const std::size_t block = rounded(size);
  PooledMemory memory = [&] {
    const std::lock_guard lock(mutex_);
    return reuse(gpus_, place, block, 2 * block + 1);
  }();
  if (memory.data() == nullptr) {
    auto made = make_if_there(device, block);
    if (!made && kept(place) > 0) {
      trim();
      made = make_if_there(device, block);
    }
    if (!made) return tl::unexpected(std::move(made.error()));
    memory.block_.push_back({place, block, {}, *std::move(made)});
  }
  return zero(device, memory.data(), size, stream).map([&] { return std::move(memory); });
}

/// The smallest block that fits; no memory where none does.
/// @pre the mutex is held
PooledMemory MemoryPool::reuse(Kept& kept, const MemoryPlace& place, std::size_t least, std::size_t most) {
  PooledMemory memory;
  auto best = kept.blocks.end();
  for (auto block = kept.blocks.begin(); block != kept.blocks.end(); ++block)
    if (block->place == place && block->size >= least && block->size <= most &&
        (best == kept.blocks.end() || block->size < best->size))
      best = block;
  if (best == kept.blocks.end()) return memory;
  kept.bytes -= best->size;
  memory.block_.splice(memory.block_.end(), kept.blocks, best);
  return memory;
}

PooledMemory MemoryPool::reuse_pinned(const MemoryPlace& place, std::size_t least, std::size_t most) {
  const std::lock_guard lock(mutex_);
  PooledMemory memory = reuse(host_, place, least, most);
  if (memory.block_.empty()) return memory;
  const Bytes size = as_bytes(memory.block_.front().size);
  PinnedUse& use = pinned_.at(place.numa_node);
  use.kept = use.kept - size;
  use.in_use += size;
  use.taken += size;
  use.largest = std::max(use.largest, use.in_use);
  ++use.reuses;
  return memory;
}

/// Counts memory as in use, so that no other thread takes it. Where the limit has no room, kept memory is freed.
Expected<void> MemoryPool::reserve(int numa_node, std::size_t size) {
  const std::lock_guard lock(mutex_);
  const std::size_t in_use = pinned_in_use();
  if (!limits_.empty()) {
    const std::size_t limit = *limits_.begin();
    const std::size_t left = limit > in_use ? limit - in_use : 0;
    if (size <= left && host_.bytes > left - size) free_kept(host_, left - size);
    if (size > left || host_.bytes > left - size)
      return above_limit(size, limit, in_use, size > left ? 0 : host_.bytes);
  }
  PinnedUse& use = pinned_[numa_node];
  use.numa_node = numa_node;
  use.in_use += as_bytes(size);
  return {};
}

/// Pins memory that is reserved. The mutex is free meanwhile: it takes 0.2 ms a MiB.
Expected<PinnedMemory> MemoryPool::pin(int numa_node, std::size_t size) {
  auto made = PinnedMemory::make(size, numa_node);
  std::unique_lock lock(mutex_);
  if (!made && (host_.bytes > 0 || users_given_up_ > 0)) {
    lock.unlock();
    trim();
    made = PinnedMemory::make(size, numa_node);
    lock.lock();
  }
  PinnedUse& use = pinned_.at(numa_node);
  if (!made) {
    use.in_use = use.in_use - as_bytes(size);
    return made;
  }
  use.taken += as_bytes(size);
  use.largest = std::max(use.largest, use.in_use);
  ++use.allocations;
  return made;
}

UsersPin::~UsersPin() {
  if (users_ != nullptr) MemoryPool::instance().give_up(users_);
}

/// The first of the program's own memory here that has a byte of this; null where none has.
/// @pre the mutex is held
MemoryPool::UsersMemory* MemoryPool::users_around(std::span<const std::byte> memory) {
  for (auto& [data, users] : users_)
    if (memory.data() < data + users.size && data < memory.data() + memory.size()) return &users;
  return nullptr;
}

Expected<std::shared_ptr<UsersPin>> MemoryPool::pin_users(std::span<std::byte> memory, std::shared_ptr<void> owner,
                                                          const std::function<Expected<bool>()>& is_pinned) {
  unpin_given_up();
  auto pin = std::make_shared<UsersPin>();
  std::vector<std::shared_ptr<void>> owners;
  const std::lock_guard one(pinning_);
  {
    const std::lock_guard lock(mutex_);
    if (UsersMemory* const around = users_around(memory)) {
      std::byte* const data = around->pinned.data();
      if (memory.data() < data || memory.data() + memory.size() > data + around->size)
        return invalid_input(
            "part of the memory to wrap is pinned by another buffer, or by one that went while a batch was armed; wrap "
            "the whole once, and then what lies in it");
      around->owners.push_back(std::move(owner));
      if (around->uses++ == 0) --users_given_up_;
      pin->users_ = data;
      return pin;
    }
  }
  const auto by_others = is_pinned();
  if (!by_others) return tl::unexpected(by_others.error());
  if (*by_others) return nullptr;
  owners.push_back(std::move(owner));
  auto pinned = PinnedMemory::around(memory);
  if (!pinned) return tl::unexpected(std::move(pinned.error()));
  const std::lock_guard lock(mutex_);
  users_.try_emplace(memory.data(), UsersMemory{*std::move(pinned), memory.size(), 1, std::move(owners)});
  pin->users_ = memory.data();
  return pin;
}

/// The last pin of the program's own memory goes.
void MemoryPool::give_up(std::byte* users) noexcept {
  std::map<std::byte*, UsersMemory> unpinned;  // their owners go once the mutex is free
  const std::lock_guard lock(mutex_);
  if (--users_.find(users)->second.uses > 0) return;
  ++users_given_up_;
  unpin_given_up(unpinned);
}

void MemoryPool::unpin_given_up() {
  if (users_given_up_ == 0 || has_runs()) return;
  std::map<std::byte*, UsersMemory> unpinned;  // their owners go once the mutex is free
  const std::lock_guard lock(mutex_);
  unpin_given_up(unpinned);
}

/// @pre the mutex is held
void MemoryPool::unpin_given_up(std::map<std::byte*, UsersMemory>& unpinned) {
  freeing_ = true;
  for (auto users = users_.begin(); users != users_.end() && !keeps_all_ && runs_ == 0;) {
    const auto next = std::next(users);
    if (users->second.uses == 0) {
      users->second.pinned.unpin();
      unpinned.insert(users_.extract(users));
      --users_given_up_;
    }
    users = next;
  }
  freeing_ = false;
}

std::size_t MemoryPool::users() const {
  const std::lock_guard lock(mutex_);
  return users_.size();
}

void MemoryPool::give_back(std::list<MemoryBlock>& block) noexcept {
  static const std::size_t most_of_host = most_kept();
  const MemoryPlace place = block.front().place;
  const std::size_t size = block.front().size;
  const std::lock_guard lock(mutex_);
  if (keeps_all_) return lost_.splice(lost_.end(), block);
  Kept& kept = place.device < 0 ? host_ : gpus_;
  kept.bytes += size;
  kept.blocks.splice(kept.blocks.end(), block);
  if (place.device >= 0) {
    if (kept.bytes > kKeptOfGpus) free_kept(kept, 0);
    return;
  }
  PinnedUse& use = pinned_.find(place.numa_node)->second;
  use.in_use = use.in_use - as_bytes(size);
  use.kept += as_bytes(size);
  if (kept.bytes > most_of_host) free_kept(kept, most_of_host);
}

/// Either this sees that memory is being freed, or `free_kept` sees the run.
void MemoryPool::begin_run() {
  runs_.fetch_add(1);
  if (freeing_) const std::lock_guard wait(mutex_);
}

std::size_t MemoryPool::kept(const MemoryPlace& place) const {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const MemoryBlock& block : (place.device < 0 ? host_ : gpus_).blocks)
    if (block.place == place) bytes += block.size;
  return bytes;
}

/// @pre the mutex is held
std::size_t MemoryPool::pinned_in_use() const {
  std::size_t bytes = 0;
  for (const auto& [node, use] : pinned_) bytes += static_cast<std::size_t>(use.in_use.count);
  return bytes;
}

std::vector<PinnedUse> MemoryPool::pinned() const {
  const std::lock_guard lock(mutex_);
  std::vector<PinnedUse> all;
  for (const auto& [node, use] : pinned_) all.push_back(use);
  return all;
}

void MemoryPool::trim() {
  unpin_given_up();
  const std::lock_guard lock(mutex_);
  for (Kept* const kept : {&gpus_, &host_}) free_kept(*kept, 0);
}

/// Frees the oldest memory until no more than `most` is kept.
/// @pre the mutex is held
void MemoryPool::free_kept(Kept& kept, std::size_t most) {
  freeing_ = true;
  while (!keeps_all_ && runs_ == 0 && kept.bytes > most) {
    const MemoryBlock& oldest = kept.blocks.front();
    kept.bytes -= oldest.size;
    if (oldest.place.device < 0) {
      PinnedUse& use = pinned_.find(oldest.place.numa_node)->second;
      use.kept = use.kept - as_bytes(oldest.size);
    }
    kept.blocks.pop_front();
  }
  freeing_ = false;
}

PinnedLimit::PinnedLimit(std::optional<Bytes> limit) {
  if (!limit) return;
  limit_ = static_cast<std::size_t>(limit->count);
  MemoryPool& pool = MemoryPool::instance();
  const std::lock_guard lock(pool.mutex_);
  pool.limits_.insert(*limit_);
  const std::size_t in_use = pool.pinned_in_use();
  pool.free_kept(pool.host_, *limit_ > in_use ? *limit_ - in_use : 0);
}

PinnedLimit::~PinnedLimit() {
  if (!limit_) return;
  MemoryPool& pool = MemoryPool::instance();
  const std::lock_guard lock(pool.mutex_);
  pool.limits_.erase(pool.limits_.find(*limit_));
}

}  // namespace tutti::internal::cuda
