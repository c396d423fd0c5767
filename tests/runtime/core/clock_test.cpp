#include "runtime/core/clock.hpp"

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

TEST(VirtualClock, JumpsToWhatIsWaitedFor) {
  VirtualClock clock;
  EXPECT_EQ(clock.now(), Duration{0});
  clock.wait_until(Duration{7});
  EXPECT_EQ(clock.now(), Duration{7});
  clock.wait_until(Duration::max());
  EXPECT_EQ(clock.now(), Duration::max());
}

TEST(VirtualClock, NeverGoesBack) {
  VirtualClock clock;
  clock.wait_until(Duration{7});
  for (const Duration past : {Duration{6}, Duration{7}, Duration{0}, Duration{-1}, Duration::min()}) {
    clock.wait_until(past);
    EXPECT_EQ(clock.now(), Duration{7});
  }
}

TEST(VirtualClock, StandsStillByItself) { EXPECT_FALSE(VirtualClock().runs_by_itself()); }

TEST(RealClock, NeverReturnsTooEarlyAndNeverGoesBack) {
  RealClock clock;
  EXPECT_TRUE(clock.runs_by_itself());
  Duration before = clock.now();
  EXPECT_GE(before, Duration{0});
  // Below and above the stretch that it spins for.
  for (const Duration ahead : {Duration{0}, Duration{1}, Duration{50'000}, Duration{300'000}, Duration{2'000'000}}) {
    clock.wait_until(before + ahead);
    EXPECT_GE(clock.now(), before + ahead);
    before = clock.now();
  }
  clock.wait_until(Duration{-1});
  EXPECT_GE(clock.now(), before);
}

TEST(RealClock, ThatSleepsIsNeverTooEarly) {
  RealClock clock(WaitKind::Block);
  for (const Duration ahead : {Duration{-1}, Duration{0}, Duration{1}, Duration{50'000}, Duration{2'000'000}}) {
    const Duration until = clock.now() + ahead;
    clock.wait_until(until);
    EXPECT_GE(clock.now(), until);
  }
}

TEST(Clocks, SayTheirNames) {
  EXPECT_EQ(VirtualClock().name(), "virtual");
  EXPECT_EQ(RealClock().name(), "real");
}

}  // namespace
}  // namespace tutti::internal
