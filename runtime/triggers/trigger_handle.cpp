#include "runtime/triggers/trigger_handle.hpp"

#include <algorithm>

namespace tutti::internal {

bool TriggerHandle::fire(TimePoint at) {
  const std::lock_guard lock(firing_);
  if (waker_ == nullptr) return false;  // no run waits for it
  const bool waits = came_.push(std::move(at));
  if (!waits) lost_.fetch_add(1, std::memory_order_relaxed);
  waker_->wake();
  return waits;
}

bool TriggerHandle::has_run() {
  const std::lock_guard lock(firing_);
  return waker_ != nullptr;
}

void TriggerHandle::begin(const Clock& clock, Duration /*epoch*/, Waker& waker) {
  const std::lock_guard lock(firing_);
  is_real_ = clock.runs_by_itself();
  for (TimePoint at; came_.pop(at);) {
  }
  lost_ = 0;
  waker_ = &waker;
}

void TriggerHandle::end() noexcept {
  const std::lock_guard lock(firing_);
  waker_ = nullptr;
}

std::optional<Duration> TriggerHandle::take(Duration now) {
  TimePoint at;
  if (!came_.pop(at)) return std::nullopt;
  if (!is_real_) return now;
  return now - std::max(Duration{std::chrono::steady_clock::now() - at}, Duration{0});
}

}  // namespace tutti::internal
