#include "runtime/core/clock.hpp"

#include <thread>

namespace tutti::internal {

void RealClock::wait_until(Duration at) {
  constexpr Duration kSpin = std::chrono::microseconds{200};
  if (at - now() > kSpin) std::this_thread::sleep_until(start_ + (at - kSpin));
  while (now() < at) std::this_thread::yield();
}

}  // namespace tutti::internal
