#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "runtime/trace/job_entry.hpp"

namespace tutti::internal {

/// A bounded queue of jobs from one thread to another. The first one is real-time: it never waits, allocates nothing
/// and does not call the system. A job that finds no room is lost and counted.
class EntryRing {
 public:
  /// Allocates the memory and touches its pages.
  /// @param capacity  rounded up to a power of two that holds one job with `kMostStreamTimes` at least
  explicit EntryRing(Bytes capacity)
      : memory_(std::bit_ceil(std::max(static_cast<std::size_t>(std::max<std::int64_t>(capacity.count, 0)),
                                       sizeof(Head) + kMostStreamTimes * sizeof(StreamTime)))) {}
  EntryRing(const EntryRing&) = delete;  // two threads hold references to it
  EntryRing& operator=(const EntryRing&) = delete;

  // ---- of the thread that hands over

  /// Hands a job over. Stream times behind the first `kMostStreamTimes` are left out.
  /// @return false: there was no room, and the job is lost
  bool push(const JobEntry& entry, std::span<const StreamTime> streams) noexcept {
    const std::uint64_t number = handed_over_.load(std::memory_order_relaxed);
    handed_over_.store(number + 1, std::memory_order_relaxed);
    if (place(number, entry, streams)) return true;
    lost_.store(lost_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return false;
  }

  /// Whether a job with so many stream times would find room.
  [[nodiscard]] bool has_room(std::size_t streams) noexcept {
    const std::uint64_t end = end_.load(std::memory_order_relaxed) + size_of(std::min(streams, kMostStreamTimes));
    if (end - begin_seen_ <= memory_.size()) return true;
    begin_seen_ = begin_.load(std::memory_order_acquire);
    return end - begin_seen_ <= memory_.size();
  }

  // ---- of the thread that takes out

  /// Takes the oldest job out. Allocates only where `job.streams` is too short.
  /// @return false: the ring is empty, and `job` as it was
  [[nodiscard]] bool pop(RecordedJob& job) {
    const std::uint64_t begin = begin_.load(std::memory_order_relaxed);
    if (begin == end_seen_) end_seen_ = end_.load(std::memory_order_acquire);
    if (begin == end_seen_) return false;
    Head head;
    copy_out(begin, &head, sizeof head);
    job.number = head.number;
    job.entry = head.entry;
    job.streams.resize(head.streams);
    copy_out(begin + sizeof head, job.streams.data(), head.streams * sizeof(StreamTime));
    begin_.store(begin + size_of(head.streams), std::memory_order_release);
    return true;
  }

  // ---- of any thread

  /// Jobs handed over so far, lost ones included.
  [[nodiscard]] std::uint64_t handed_over() const noexcept { return handed_over_.load(std::memory_order_relaxed); }
  /// Jobs that found no room.
  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }

 private:
  struct Head {
    std::uint64_t number = 0;
    std::uint64_t streams = 0;  ///< stream times behind it
    JobEntry entry;
  };
  static_assert(std::is_trivially_copyable_v<Head>);
  static constexpr std::size_t kCacheLine = 64;

  static std::size_t size_of(std::size_t streams) { return sizeof(Head) + streams * sizeof(StreamTime); }

  bool place(std::uint64_t number, const JobEntry& entry, std::span<const StreamTime> streams) noexcept {
    const auto kept = streams.first(std::min(streams.size(), kMostStreamTimes));
    if (!has_room(kept.size())) return false;
    const Head head{number, kept.size(), entry};
    const std::uint64_t end = end_.load(std::memory_order_relaxed);
    copy_in(end, &head, sizeof head);
    copy_in(end + sizeof head, kept.data(), kept.size_bytes());
    end_.store(end + size_of(kept.size()), std::memory_order_release);
    return true;
  }

  /// Copies to a position, which wraps around at the end of the memory.
  void copy_in(std::uint64_t position, const void* from, std::size_t size) noexcept {
    const std::size_t at = position & (memory_.size() - 1);
    const std::size_t first = std::min(size, memory_.size() - at);
    if (first > 0) std::memcpy(memory_.data() + at, from, first);
    if (first < size) std::memcpy(memory_.data(), static_cast<const std::byte*>(from) + first, size - first);
  }
  void copy_out(std::uint64_t position, void* to, std::size_t size) const noexcept {
    const std::size_t at = position & (memory_.size() - 1);
    const std::size_t first = std::min(size, memory_.size() - at);
    if (first > 0) std::memcpy(to, memory_.data() + at, first);
    if (first < size) std::memcpy(static_cast<std::byte*>(to) + first, memory_.data(), size - first);
  }

  std::vector<std::byte> memory_;
  // Positions count bytes from the first push on; they never wrap in practice (2^64).
  alignas(kCacheLine) std::atomic<std::uint64_t> end_ = 0;  // written by the thread that hands over, as the next three
  std::uint64_t begin_seen_ = 0;
  std::atomic<std::uint64_t> handed_over_ = 0;
  std::atomic<std::uint64_t> lost_ = 0;
  alignas(kCacheLine) std::atomic<std::uint64_t> begin_ = 0;  // written by the thread that takes out, as the next one
  std::uint64_t end_seen_ = 0;
};

}  // namespace tutti::internal
