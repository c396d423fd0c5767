#pragma once
#include <atomic>
#include <cstddef>
#include <list>
#include <mutex>

#include "runtime/cuda/handles.hpp"
#include "runtime/cuda/pinned_memory.hpp"

namespace tutti::internal::cuda {

/// Where pooled memory lies: on a GPU, or in pinned host memory.
struct MemoryPlace {
  int device = -1;     ///< as CUDA counts; below 0: in host memory
  int numa_node = -1;  ///< of host memory, the system's number; below 0: wherever

  friend bool operator==(const MemoryPlace&, const MemoryPlace&) = default;
};

/// A block of memory, of a GPU or pinned.
struct MemoryBlock {
  MemoryPlace place;
  std::size_t size = 0;
  PinnedMemory host{};    ///< one of the two
  DeviceMemory device{};  ///< the other
};

/// Sole owner of a block of the pool. Move-only; the pool takes it back when it goes, which never waits for a GPU that
/// has a run under way.
class PooledMemory {
 public:
  PooledMemory() = default;
  PooledMemory(PooledMemory&& other) noexcept = default;
  PooledMemory& operator=(PooledMemory&& other) noexcept {
    block_.swap(other.block_);
    return *this;
  }
  PooledMemory(const PooledMemory&) = delete;  // memory is never duplicated by accident
  PooledMemory& operator=(const PooledMemory&) = delete;
  ~PooledMemory();

  /// Its first byte; null: no memory.
  [[nodiscard]] std::byte* data() const;

 private:
  friend class MemoryPool;
  std::list<MemoryBlock> block_;  // one or none: a node that the pool keeps as it is, without an allocation
};

/// All memory of GPUs and all pinned memory of this program.
///
/// Behind a closed gate the driver takes new memory at once, but waits where it frees or unpins some: for ever, where
/// the thread that would open the gate waits. So the pool takes memory back without freeing it, gives it out again, and
/// frees it only where no run of any backend is armed or under way. A request takes the smallest block that was
/// returned and fits, of at most twice its size, before it asks the driver.
///
/// There is one pool for a program, since the driver's waiting knows no backends.
///
/// Threads: any.
class MemoryPool {
 public:
  /// The program's. It is never destroyed: CUDA is gone by then.
  [[nodiscard]] static MemoryPool& instance();

  /// Pinned host memory that all GPUs reach, zeroed.
  /// @errors Machine: the host has not so much, or refuses to pin it.
  [[nodiscard]] Expected<PooledMemory> take_host(std::size_t size, int numa_node = -1);
  /// Memory of a GPU, zeroed.
  /// @param stream  of the GPU, in which nothing waits for a gate
  /// @errors Machine: the GPU has not so much memory.
  [[nodiscard]] Expected<PooledMemory> take_device(int device, std::size_t size, cudaStream_t stream);

  /// A run closes its gates, or begins. Waits only while memory is being freed.
  void begin_run();
  /// A run is finished. For the conductor: never waits.
  void end_run() { runs_.fetch_sub(1); }

  /// A GPU is broken or hangs: it may still write into what it used, and freeing would wait for it. From now on nothing
  /// is freed, and what is returned is not given out again.
  void keep_all() { keeps_all_ = true; }
  [[nodiscard]] bool keeps_all() const { return keeps_all_; }

  /// What was returned in a place and is not freed.
  [[nodiscard]] std::size_t kept(const MemoryPlace& place) const;
  /// Frees all that was returned, unless a run is armed or under way.
  void trim();

 private:
  friend class PooledMemory;

  MemoryPool() = default;
  Expected<PooledMemory> take(const MemoryPlace& place, std::size_t size);
  PooledMemory reuse(const MemoryPlace& place, std::size_t size);
  void give_back(std::list<MemoryBlock>& block) noexcept;
  void free_kept();

  mutable std::mutex mutex_;  // of all but the atomics; held while memory is freed
  std::list<MemoryBlock> kept_;
  std::size_t kept_bytes_ = 0;
  std::list<MemoryBlock> lost_;  // that a lost GPU may use
  std::atomic<int> runs_{0};     // armed or under way
  std::atomic<bool> freeing_{false};
  std::atomic<bool> keeps_all_{false};
};

/// A run in the pool's eyes, for as long as it lives: nothing is freed meanwhile.
class PoolRun {
 public:
  PoolRun() { MemoryPool::instance().begin_run(); }
  PoolRun(const PoolRun&) = delete;  // it stands for one run
  PoolRun& operator=(const PoolRun&) = delete;
  ~PoolRun() { MemoryPool::instance().end_run(); }
};

}  // namespace tutti::internal::cuda
