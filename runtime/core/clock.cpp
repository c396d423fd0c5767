#include "runtime/core/clock.hpp"

#include <chrono>
#include <cstdint>
#include <thread>

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

}  // namespace

void RealClock::wait_until(Duration at) {
  const Duration spin =
      waiting_ == WaitKind::Block ? Duration{0} : std::chrono::microseconds{200};  // sleepers wake late
  if (at - now() > spin) sleep_until(start_ + (at - spin));
  while (now() < at) std::this_thread::yield();
}

}  // namespace tutti::internal
