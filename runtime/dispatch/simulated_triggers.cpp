#include "runtime/dispatch/simulated_triggers.hpp"

#include <algorithm>

#include "runtime/dispatch/drawn_jitter.hpp"

namespace tutti::internal {

void SimulatedTriggers::begin(const Clock& /*clock*/, Duration epoch, Waker& /*waker*/) {
  regular_ = epoch;
  number_ = 0;
  next_ = epoch;
  again_ = false;
  find_next();
}

/// Triggers come in their order: one that is late holds up those behind it.
void SimulatedTriggers::find_next() {
  const Duration last = next_;
  while (regular_ <= kNever - period_ - jitter_) {
    const TriggerFault fault = faults_ ? faults_(number_) : TriggerFault{};
    const Duration came = regular_ + drawn_jitter(jitter_, seed_, number_) + fault.by;
    ++number_;
    regular_ += period_;
    if (fault.missing) continue;
    again_ = fault.doubled;
    next_ = std::max(last, came);
    return;
  }
  next_ = kNever;
}

std::optional<Duration> SimulatedTriggers::take(Duration now) {
  if (next_ > now || next_ == kNever) return std::nullopt;
  const Duration at = next_;
  if (again_) {
    again_ = false;
  } else {
    find_next();
  }
  return at;
}

}  // namespace tutti::internal
