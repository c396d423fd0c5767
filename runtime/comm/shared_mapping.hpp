#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "runtime/comm/fabric.hpp"

namespace tutti::internal::comm {

/// How the ranks of a job meet in shared memory.
struct SharedJob {
  std::string name;  ///< its own among the jobs of this host: `/dev/shm/tutti-comm.NAME`
  int ranks = 2;
  std::size_t memory = std::size_t{64} << 20;   ///< bytes that each rank can allocate
  Duration meeting = std::chrono::seconds{30};  ///< how long ranks wait for each other at the start
};

/// Waits until something holds; looks every 2 ms. @return whether it does
[[nodiscard]] bool holds_within(Duration limit, const std::function<bool()>& holds);

/// The mapping of a job's shared memory: a fabric, and behind it the memory that ranks allocate. Move-only.
class SharedMapping {
 public:
  /// Makes it. The name is there until `remove_name`.
  /// @errors InvalidInput: a name or number of ranks that is none, or there is such a job. Machine: no memory.
  [[nodiscard]] static Expected<SharedMapping> create(const SharedJob& job);
  /// Waits until it is made.
  /// @errors InvalidInput: it has another number of ranks. Machine: it is not there in time, or is none.
  [[nodiscard]] static Expected<SharedMapping> join(const SharedJob& job);
  SharedMapping(SharedMapping&& other) noexcept;
  SharedMapping& operator=(SharedMapping&& other) noexcept;
  SharedMapping(const SharedMapping&) = delete;  // it unmaps the memory once
  SharedMapping& operator=(const SharedMapping&) = delete;
  ~SharedMapping();

  [[nodiscard]] Fabric fabric() const { return fabric_; }
  /// All of it.
  [[nodiscard]] std::span<std::byte> memory() const { return memory_; }
  /// What a rank allocates from.
  [[nodiscard]] std::span<std::byte> arena(int rank) const;
  /// This process is a rank of the job from now on.
  /// @param device  the GPU that may hold buffers of the rank
  /// @errors InvalidInput: there is no such rank, or another process is it
  [[nodiscard]] Expected<void> claim(const SharedJob& job, int rank, std::optional<int> device = {}) const;
  /// Waits until all ranks have joined.
  /// @errors Machine: one does not come in time; the sentence names it.
  [[nodiscard]] Expected<void> wait_for_all(Duration limit) const;
  /// The memory goes when the last process that maps it ends. Others cannot join any more.
  void remove_name();

 private:
  SharedMapping(std::string path, std::span<std::byte> memory) : path_(std::move(path)), memory_(memory) {}

  std::string path_;  // empty: no name to remove
  std::span<std::byte> memory_;
  Fabric fabric_;
};

}  // namespace tutti::internal::comm
