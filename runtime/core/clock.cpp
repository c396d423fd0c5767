#include "runtime/core/clock.hpp"

#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>

#include <time.h>

namespace tutti::internal {
namespace {

void sleep_until(std::chrono::steady_clock::time_point at) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t ns = Duration{at.time_since_epoch()}.count();
  const timespec until{ns / kSecond, ns % kSecond};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
  }
}

/// Sleepers wake late, and waking them takes the caller's time, so such a stretch is spent awake.
constexpr Duration kAwake = std::chrono::microseconds{200};

}  // namespace

Duration VirtualClock::aside(Duration start, const std::function<void()>& work) {
  const Duration before = std::exchange(now_, start);
  work();
  return std::exchange(now_, before);
}

void RealClock::wait_until(Duration at) {
  const Duration spin = waiting_ == WaitKind::Block ? Duration{0} : kAwake;
  if (at - now() > spin) sleep_until(start_ + (at - spin));
  while (now() < at) std::this_thread::yield();
}

void RealClock::wait_until(Duration at, Waker& waker) {
  const bool sleeps = waiting_ == WaitKind::Block || !waker.is_urgent();
  const Duration spin = waiting_ == WaitKind::Block ? Duration{0} : kAwake;
  while (sleeps && !waker.changed() && at - now() > spin) waker.sleep_until(start_ + (at - spin));
  while (!waker.changed() && now() < at) std::this_thread::yield();
}

void RealClock::wait_for_call(Waker& waker) {
  const Duration asleep = now() + kAwake;
  while (waiting_ != WaitKind::Block && !waker.changed() && now() < asleep) std::this_thread::yield();
  if (!waker.changed()) Clock::wait_for_call(waker);
}

}  // namespace tutti::internal
