#include "runtime/triggers/simulated_triggers.hpp"

#include <algorithm>
#include <utility>

#include "runtime/triggers/drawn_jitter.hpp"

namespace tutti::internal {

void SimulatedTriggers::begin(const Clock& /*clock*/, Duration epoch, Waker& /*waker*/) {
  regular_ = epoch;
  next_ = epoch;
  find_next();
}

/// The device has gone on meanwhile.
void SimulatedTriggers::resume(const Clock& /*clock*/, Duration now, Waker& /*waker*/) {
  while (next_ < now) find_next();
}

/// Triggers come in their order: one that is late holds up those behind it.
void SimulatedTriggers::find_next() {
  if (regular_ > kNever - period_ - jitter_) {
    next_ = kNever;
    return;
  }
  fault_ = faults_ ? faults_(number_, regular_) : TriggerFault{};
  next_ = std::max(next_, regular_ + drawn_jitter(jitter_, seed_, number_) + fault_.by);
  ++number_;
  regular_ += period_;
}

std::optional<Duration> SimulatedTriggers::take(Duration now) {
  while (next_ <= now && next_ != kNever) {
    const Duration at = next_;
    const bool comes = !fault_.missing;
    if (!std::exchange(fault_.doubled, false)) find_next();
    if (comes) return at;
  }
  return std::nullopt;
}

}  // namespace tutti::internal
