#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/base/error.hpp"

namespace tutti::internal {

class SlotRing;

/// A slot of a ring in the hands of a job, until it is given back. It moves and does not copy: a slot is given back
/// once.
class HeldSlot {
 public:
  HeldSlot() = default;
  HeldSlot(HeldSlot&& other) noexcept;
  HeldSlot& operator=(HeldSlot&& other) noexcept;
  HeldSlot(const HeldSlot&) = delete;
  HeldSlot& operator=(const HeldSlot&) = delete;
  ~HeldSlot();

  [[nodiscard]] bool holds() const { return ring_ != nullptr; }
  [[nodiscard]] std::size_t slot() const { return slot_; }
  /// Slots that were complete up to this one, it included; 0: none was.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  /// Whether no job had it before.
  [[nodiscard]] bool is_new() const { return is_new_; }
  /// The job needs it no more. Any thread; it throws what `OnFree` throws, behind the call.
  void give_back();

 private:
  friend class SlotRing;
  HeldSlot(SlotRing& ring, std::size_t slot, std::uint64_t number, bool is_new)
      : ring_(&ring), slot_(slot), number_(number), is_new_(is_new) {}

  SlotRing* ring_ = nullptr;
  std::size_t slot_ = 0;
  std::uint64_t number_ = 0;
  bool is_new_ = false;
};

/// Slots that a producer fills at a rate of its own; a job takes the newest complete one. The producer writes to a slot
/// that it has begun, which nobody else has, so no job reads a torn one. `newest_` is an atomic exchange of slots, as
/// in a triple buffer: neither side waits for the other.
///
/// A slot that is complete is held by the ring until a newer one is complete or a job takes it. Behind the job that
/// took it the ring has it again, while it is still the newest: the next job may need it once more.
class SlotRing {
 public:
  static constexpr std::size_t kMostSlots = 4096;
  /// A slot is free again.
  using OnFree = std::function<void(std::size_t slot)>;

  /// All slots are free but the last one, which jobs get until one is complete.
  /// @param on_free  may be empty
  /// @pre 2 to `kMostSlots` slots
  SlotRing(std::vector<std::span<std::byte>> slots, OnFree on_free);

  [[nodiscard]] std::span<const std::span<std::byte>> slots() const { return slots_; }
  [[nodiscard]] std::size_t count() const { return slots_.size(); }
  [[nodiscard]] bool tells() const { return on_free_ != nullptr; }

  // The producer: any threads. Nothing waits, and nothing but a refusal allocates.

  /// Takes a free slot to write to; nothing: none is free.
  [[nodiscard]] std::optional<std::size_t> begin();
  /// Takes this one. @errors InvalidInput: there is none, or it is not free
  Expected<void> begin(std::size_t slot);
  /// What the producer wrote to a slot is complete, and newer than all before.
  /// @errors InvalidInput: there is none, or the producer has not begun it
  Expected<void> complete(std::size_t slot);
  /// Whether `begin` would get it now.
  [[nodiscard]] bool is_free(std::size_t slot) const;

  // A run: one thread takes.

  /// Takes part in a run, until `leave`. @return whether no other does
  [[nodiscard]] bool join() { return !is_taken_.exchange(true); }
  void leave() { is_taken_.store(false); }
  /// The newest complete slot. In bounded time.
  [[nodiscard]] HeldSlot take();
  /// The slot that `take` would give now.
  [[nodiscard]] std::size_t newest() const { return Newest::of(newest_.load(std::memory_order_relaxed)).slot; }

 private:
  friend class HeldSlot;
  enum class At : std::uint8_t {
    Jobs,  ///< jobs have taken it, and hold it for themselves
    Ring,  ///< the ring holds it, and no job has had it
    Again  ///< the ring holds it, and jobs had it
  };
  /// The newest complete slot, in one word.
  struct Newest {
    std::uint64_t number;  ///< < 2^48
    std::size_t slot;
    At at;

    [[nodiscard]] std::uint64_t word() const {
      return number << 14U | static_cast<std::uint64_t>(slot) << 2U | static_cast<std::uint64_t>(at);
    }
    [[nodiscard]] static Newest of(std::uint64_t word) {
      return {word >> 14U, (word >> 2U) % kMostSlots, static_cast<At>(word % 4)};
    }
  };
  /// Who has a slot, in one word: jobs and the ring, `kWriter`, or nobody. It has the number of what lies there, so
  /// that a slot that was written again is not taken for what it was.
  static constexpr std::uint64_t kHolders = (1U << 16U) - 1, kWriter = kHolders, kFree = 0;
  [[nodiscard]] static std::uint64_t held_once(std::uint64_t number) { return number << 16U | 1U; }

  [[nodiscard]] Expected<void> check(std::size_t slot) const;
  [[nodiscard]] bool start_writing(std::size_t slot, std::uint64_t& found);
  [[nodiscard]] bool hold_once_more(const Newest& newest);
  void give_back(std::size_t slot, std::uint64_t number);
  void drop(std::size_t slot);

  std::vector<std::span<std::byte>> slots_;
  OnFree on_free_;
  std::vector<std::atomic<std::uint64_t>> holders_;  // [slots]
  std::atomic<std::uint64_t> newest_;                // a `Newest`
  std::atomic<std::size_t> from_ = 0;                // where `begin` looks first
  std::atomic<bool> is_taken_ = false;
};

/// Rings of the program for buffers, by their names.
using UsersRings = std::map<std::string, std::shared_ptr<SlotRing>, std::less<>>;

}  // namespace tutti::internal
