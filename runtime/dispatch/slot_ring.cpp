#include "runtime/dispatch/slot_ring.hpp"

#include <utility>

#include <fmt/format.h>

#include "model/base/expects.hpp"

namespace tutti::internal {

HeldSlot::HeldSlot(HeldSlot&& other) noexcept
    : ring_(std::exchange(other.ring_, nullptr)), slot_(other.slot_), number_(other.number_), is_new_(other.is_new_) {}

HeldSlot& HeldSlot::operator=(HeldSlot&& other) noexcept {
  const HeldSlot before(std::move(*this));
  ring_ = std::exchange(other.ring_, nullptr);
  slot_ = other.slot_;
  number_ = other.number_;
  is_new_ = other.is_new_;
  return *this;
}

HeldSlot::~HeldSlot() {
  try {
    give_back();
  } catch (...) {  // of a job that never ran: its run is over, and has no error for it
  }
}

void HeldSlot::give_back() {
  if (SlotRing* const ring = std::exchange(ring_, nullptr)) ring->give_back(slot_, number_);
}

SlotRing::SlotRing(std::vector<std::span<std::byte>> slots, OnFree on_free)
    : slots_(std::move(slots)), on_free_(std::move(on_free)), holders_(slots_.size()) {
  TUTTI_EXPECTS(slots_.size() >= 2 && slots_.size() <= kMostSlots, "a ring has 2 to 4096 slots");
  holders_.back() = held_once(0);
  newest_ = Newest{0, slots_.size() - 1, At::Again}.word();
}

// ---- the producer

Expected<void> SlotRing::check(std::size_t slot) const {
  if (slot < count()) return {};
  return invalid_input(fmt::format("there is no slot {}; the ring has {}, from 0", slot, count()));
}

/// acquire: what jobs read of it was read before.
bool SlotRing::start_writing(std::size_t slot, std::uint64_t& found) {
  found = holders_[slot].load(std::memory_order_relaxed);
  return (found & kHolders) == kFree &&
         holders_[slot].compare_exchange_strong(found, kWriter, std::memory_order_acquire);
}

std::optional<std::size_t> SlotRing::begin() {
  const std::size_t from = from_.load(std::memory_order_relaxed);
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < count(); ++i) {
    const std::size_t slot = (from + i) % count();
    if (!start_writing(slot, found)) continue;
    from_.store((slot + 1) % count(), std::memory_order_relaxed);
    return slot;
  }
  return std::nullopt;
}

Expected<void> SlotRing::begin(std::size_t slot) {
  if (auto ok = check(slot); !ok) return ok;
  std::uint64_t found = 0;
  if (start_writing(slot, found)) return {};
  return invalid_input(fmt::format(
      "slot {} is not free: {}; begin one that is", slot,
      (found & kHolders) == kWriter ? "the producer has begun it" : "it is the newest one, or a job holds it"));
}

Expected<void> SlotRing::complete(std::size_t slot) {
  if (auto ok = check(slot); !ok) return ok;
  std::uint64_t found = kWriter;
  if (!holders_[slot].compare_exchange_strong(found, held_once(0), std::memory_order_relaxed))
    return invalid_input(
        fmt::format("slot {} is not being written: {}; begin it, write, and complete it once", slot,
                    (found & kHolders) == kFree ? "it is free" : "it is the newest one, or a job holds it"));
  // Tries again only where, at the same instant, a job takes a slot or gives one back, or another slot is complete.
  std::uint64_t word = newest_.load(std::memory_order_relaxed), next = 0;
  do {
    const std::uint64_t number = Newest::of(word).number + 1;
    holders_[slot].store(held_once(number), std::memory_order_relaxed);
    next = Newest{number, slot, At::Ring}.word();
  } while (!newest_.compare_exchange_weak(word, next, std::memory_order_acq_rel, std::memory_order_relaxed));
  if (const Newest before = Newest::of(word); before.at != At::Jobs) drop(before.slot);
  return {};
}

bool SlotRing::is_free(std::size_t slot) const {
  return slot < count() && (holders_[slot].load(std::memory_order_relaxed) & kHolders) == kFree;
}

// ---- a run

/// The newest slot is held by the ring, whose hold the job gets, or by jobs, which become one more. Where the last of
/// these gives it back just then, the ring has it, or has a newer one: the second turn gets that.
HeldSlot SlotRing::take() {
  for (;;) {
    const Newest newest = Newest::of(newest_.fetch_and(~std::uint64_t{3}, std::memory_order_acq_rel));
    if (newest.at != At::Jobs || hold_once_more(newest))
      return {*this, newest.slot, newest.number, newest.at == At::Ring};
  }
}

bool SlotRing::hold_once_more(const Newest& newest) {
  std::uint64_t found = holders_[newest.slot].load(std::memory_order_relaxed);
  const auto is_held = [&] { return found >> 16U == newest.number && (found & kHolders) != kFree; };
  while (is_held())
    if (holders_[newest.slot].compare_exchange_weak(found, found + 1, std::memory_order_acquire)) return true;
  return false;
}

void SlotRing::give_back(std::size_t slot, std::uint64_t number) {
  std::uint64_t taken = Newest{number, slot, At::Jobs}.word();
  const std::uint64_t again = Newest{number, slot, At::Again}.word();
  if (!newest_.compare_exchange_strong(taken, again, std::memory_order_acq_rel)) drop(slot);
}

void SlotRing::drop(std::size_t slot) {
  if ((holders_[slot].fetch_sub(1, std::memory_order_acq_rel) & kHolders) == 1 && on_free_) on_free_(slot);
}

}  // namespace tutti::internal
