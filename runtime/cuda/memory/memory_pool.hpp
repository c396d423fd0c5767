#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "runtime/core/pinned_use.hpp"
#include "runtime/cuda/base/handles.hpp"
#include "runtime/cuda/memory/pinned_memory.hpp"

namespace tutti::internal::cuda {

/// Where pooled memory lies: on a GPU, or in pinned host memory.
struct MemoryPlace {
  int device = -1;     ///< as CUDA counts; below 0: in host memory
  int numa_node = -1;  ///< of host memory, the system's number; below 0: wherever

  friend bool operator==(const MemoryPlace&, const MemoryPlace&) = default;
};

/// Content of memory when it is given out.
enum class Contents : std::uint8_t {
  Zeros,
  Anything,  ///< zeros, or what was left in it: reuse then takes no time
};

/// Size of the pinned block for a request: whole pages of 4 KiB, in classes, of which four lie between a power of two
/// and the next, so that a block serves later requests of about its size. At most 25 % more than the pages that were
/// asked for. From 64 MiB on there are no classes, but whole pages of 2 MiB.
[[nodiscard]] std::size_t pinned_block_size(std::size_t size);

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

/// Keeps memory of the program's own pinned for as long as it lives. Made by the pool.
class UsersPin {
 public:
  UsersPin() = default;
  UsersPin(const UsersPin&) = delete;  // it is counted
  UsersPin& operator=(const UsersPin&) = delete;
  ~UsersPin();

 private:
  friend class MemoryPool;
  std::byte* users_ = nullptr;  // the pool's; null: none yet
};

/// All memory of GPUs and all pinned memory of this program, but for the buffers that copies of ordinary memory go
/// through.
///
/// Behind a closed gate the driver takes new memory at once, but waits where it frees or unpins some: for ever, where
/// the thread that would open the gate waits. So the pool takes memory back without freeing it, gives it out again, and
/// frees it only where no run of any backend is armed or under way. A request takes the smallest block that was
/// returned in its place and fits: of a GPU, of at most twice its size; pinned, of at most 1.25 times its pages.
///
/// Pinning takes 0.3 ms for a small block and 0.2 ms a MiB for a large one, so pinned memory is kept until the last
/// buffers go with their backend, the driver or the limit refuses more, or more than a quarter of the host's memory is
/// kept; the oldest goes first. Memory of GPUs is freed when more than 16 MiB of it are kept.
///
/// There is one pool for a program, since the driver's waiting knows no backends.
///
/// Threads: any.
class MemoryPool {
 public:
  /// The program's. It is never destroyed: CUDA is gone by then.
  [[nodiscard]] static MemoryPool& instance();

  /// Pinned host memory that all GPUs reach.
  /// @errors Machine: the host has not so much, or refuses to pin it; the limit is reached.
  [[nodiscard]] Expected<PooledMemory> take_host(std::size_t size, int numa_node = -1,
                                                 Contents contents = Contents::Zeros);
  /// Memory of a GPU, zeroed.
  /// @param stream  of the GPU, in which nothing waits for a gate
  /// @errors Machine: the GPU has not so much memory.
  [[nodiscard]] Expected<PooledMemory> take_device(int device, std::size_t size, cudaStream_t stream);

  /// Pins memory of the program's own, or shares in what this has pinned around it. It counts for no limit, and takes
  /// 0.2 ms a MiB.
  /// @param owner      goes when the memory is unpinned, which is later than the pin where a run is armed or under way
  /// @param is_pinned  says whether the driver knows it as pinned
  /// @return null: somebody else has pinned it
  /// @errors InvalidInput: part of it is pinned by an earlier call. Machine: the host refuses to pin it.
  [[nodiscard]] Expected<std::shared_ptr<UsersPin>> pin_users(std::span<std::byte> memory, std::shared_ptr<void> owner,
                                                              const std::function<Expected<bool>()>& is_pinned);
  /// Unpins the program's own memory that was given up while a run was armed or under way, unless one is; quick where
  /// there is none. Owners go in this call.
  void unpin_given_up();
  /// Blocks of the program's own memory that are pinned here.
  [[nodiscard]] std::size_t users() const;

  /// A run closes its gates, or begins. Waits only while memory is being freed.
  void begin_run();
  /// A run is finished. For the conductor: never waits.
  void end_run() { runs_.fetch_sub(1); }

  /// Whether a run is armed or under way.
  [[nodiscard]] bool has_runs() const { return runs_.load() > 0; }

  /// A GPU is broken or hangs: it may still write into what it used, and freeing would wait for it. From now on nothing
  /// is freed, and what is returned is not given out again.
  void keep_all() { keeps_all_ = true; }
  [[nodiscard]] bool keeps_all() const { return keeps_all_; }

  /// What was returned in a place and is not freed.
  [[nodiscard]] std::size_t kept(const MemoryPlace& place) const;
  /// Pinned memory by NUMA node, ascending. What a lost GPU may use counts as in use.
  [[nodiscard]] std::vector<PinnedUse> pinned() const;
  /// Frees all that was returned, unless a run is armed or under way.
  void trim();

 private:
  friend class PooledMemory;
  friend class PinnedLimit;
  friend class UsersPin;

  /// Memory of the program that is pinned here.
  struct UsersMemory {
    PinnedMemory pinned;
    std::size_t size = 0;
    std::size_t uses = 0;  // 0: given up, to be unpinned where nothing runs
    std::vector<std::shared_ptr<void>> owners{};
  };

  /// Memory that was returned, the oldest first.
  struct Kept {
    std::list<MemoryBlock> blocks;
    std::size_t bytes = 0;
  };

  MemoryPool() = default;
  PooledMemory reuse(Kept& kept, const MemoryPlace& place, std::size_t least, std::size_t most);
  PooledMemory reuse_pinned(const MemoryPlace& place, std::size_t least, std::size_t most);
  Expected<void> reserve(int numa_node, std::size_t size);
  Expected<PinnedMemory> pin(int numa_node, std::size_t size);
  void give_back(std::list<MemoryBlock>& block) noexcept;
  void free_kept(Kept& kept, std::size_t most);
  [[nodiscard]] UsersMemory* users_around(std::span<const std::byte> memory);
  void unpin_given_up(std::map<std::byte*, UsersMemory>& unpinned);
  void give_up(std::byte* users) noexcept;
  [[nodiscard]] std::size_t pinned_in_use() const;

  std::mutex pinning_;        // held while the program's own memory is pinned, by one at a time
  mutable std::mutex mutex_;  // of all but the atomics; held while memory is freed
  Kept gpus_, host_;
  std::map<std::byte*, UsersMemory> users_;     // by their first bytes
  std::atomic<std::size_t> users_given_up_{0};  // of them
  std::map<int, PinnedUse> pinned_;             // by NUMA node
  std::multiset<std::size_t> limits_;
  std::list<MemoryBlock> lost_;  // that a lost GPU may use
  std::atomic<int> runs_{0};     // armed or under way
  std::atomic<bool> freeing_{false};
  std::atomic<bool> keeps_all_{false};
};

/// A limit of the pool's pinned memory, for as long as it lives: of what is in use and what is kept. The least of all
/// counts.
class PinnedLimit {
 public:
  /// @param limit  absent: none
  explicit PinnedLimit(std::optional<Bytes> limit);
  PinnedLimit(const PinnedLimit&) = delete;  // it counts once
  PinnedLimit& operator=(const PinnedLimit&) = delete;
  ~PinnedLimit();

 private:
  std::optional<std::size_t> limit_;
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
