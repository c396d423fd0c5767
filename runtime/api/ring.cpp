#include "runtime/api/ring.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/api/handles.hpp"
#include "runtime/dispatch/slot_ring.hpp"

namespace tutti {

Expected<Ring> Ring::make(std::vector<std::span<std::byte>> slots, OnFree on_free) {
  constexpr std::size_t kFewest = 3, kMost = internal::SlotRing::kMostSlots;  // for a job, the newest, the producer
  if (slots.size() < kFewest || slots.size() > kMost)
    return internal::invalid_input(fmt::format(
        "a ring of {} slots; give {} to {}, two more than jobs that can be alive", slots.size(), kFewest, kMost));
  const auto empty = std::ranges::find_if(slots, [](std::span<std::byte> slot) { return slot.data() == nullptr; });
  if (empty != slots.end())
    return internal::invalid_input(
        fmt::format("slot {} of a ring has no memory; give each slot its own", empty - slots.begin()));
  return Ring(std::make_shared<internal::SlotRing>(std::move(slots), std::move(on_free)));
}

std::size_t Ring::size() const { return state_ ? state_->count() : 0; }

std::optional<std::size_t> Ring::begin() const { return state_ ? state_->begin() : std::nullopt; }

Expected<void> Ring::begin(std::size_t slot) const {
  return state_ ? state_->begin(slot) : internal::empty_handle("ring");
}

Expected<void> Ring::complete(std::size_t slot) const {
  return state_ ? state_->complete(slot) : internal::empty_handle("ring");
}

bool Ring::is_free(std::size_t slot) const { return state_ && state_->is_free(slot); }

}  // namespace tutti
