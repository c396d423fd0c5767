#include "runtime/core/waker.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "runtime/core/clock.hpp"
#include "runtime/core/spsc_ring.hpp"

namespace tutti::internal {
namespace {

constexpr Duration kAnHour = std::chrono::hours{1};

TEST(Waker, RemembersCallsSinceTheLastLook) {
  Waker waker;
  waker.look();
  EXPECT_FALSE(waker.changed());
  waker.wake();
  EXPECT_TRUE(waker.changed());
  waker.look();
  EXPECT_FALSE(waker.changed());
}

// Each way of waiting ends long before its instant: a thread wakes it while it waits, or did so before.
TEST(Waker, EndsTheWaitOfARealClock) {
  for (const WaitKind waiting : {WaitKind::Spin, WaitKind::Yield, WaitKind::Block}) {
    for (const bool urgent : {false, true}) {
      RealClock clock(waiting);
      Waker waker;
      if (urgent) waker.be_urgent();
      for (int i = 0; i < 20; ++i) {
        waker.look();
        std::thread other([&] { waker.wake(); });
        clock.wait_until(clock.now() + kAnHour, waker);
        EXPECT_TRUE(waker.changed());
        other.join();
      }
    }
  }
}

TEST(Waker, LetsAClockWaitWhereNobodyCalls) {
  for (const WaitKind waiting : {WaitKind::Spin, WaitKind::Block}) {
    RealClock clock(waiting);
    Waker waker;
    waker.look();
    const Duration until = clock.now() + Duration{400'000};
    clock.wait_until(until, waker);
    EXPECT_GE(clock.now(), until);
    EXPECT_FALSE(waker.changed());
  }
}

// With a word beside its own, too: it does not return at once.
TEST(Waker, SleepsUntilTheInstant) {
  std::atomic<std::uint32_t> word{5};
  Waker waker;
  waker.watch(word);
  waker.look();
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds{300};
  waker.sleep_until(until);
  EXPECT_GE(std::chrono::steady_clock::now(), until);
}

// A word of another process: with a wake-up, and stored by somebody who wakes nobody.
TEST(Waker, WatchesWords) {
  for (const bool wakes : {true, false}) {
    std::atomic<std::uint32_t> word = 7;
    RealClock clock(WaitKind::Block);
    Waker waker;
    waker.watch(word);
    for (int i = 0; i < 20; ++i) {
      waker.look();
      EXPECT_FALSE(waker.changed());
      std::thread other([&] {
        ++word;
        if (wakes) wake_sleepers_on(word);
      });
      clock.wait_until(clock.now() + kAnHour, waker);
      EXPECT_TRUE(waker.changed());
      other.join();
    }
  }
}

TEST(VirtualClock, DoesTheWorkOfAnotherThreadAside) {
  VirtualClock clock;
  clock.wait_until(Duration{100});
  const Duration ended = clock.aside(Duration{130}, [&] {
    EXPECT_EQ(clock.now(), Duration{130});
    clock.wait_until(Duration{180});
  });
  EXPECT_EQ(ended, Duration{180});
  EXPECT_EQ(clock.now(), Duration{100});
}

TEST(SpscRing, KeepsOrderAndRefusesWhatFindsNoRoom) {
  SpscRing<std::unique_ptr<int>> ring(3);  // has room for 4
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(ring.push(std::make_unique<int>(i)));
  auto more = std::make_unique<int>(4);
  EXPECT_FALSE(ring.push(std::move(more)));
  ASSERT_NE(more, nullptr);
  for (int i = 0; i < 4; ++i) {
    std::unique_ptr<int> value;
    ASSERT_TRUE(ring.pop(value));
    EXPECT_EQ(*value, i);
  }
  EXPECT_TRUE(ring.empty());
  EXPECT_FALSE(ring.pop(more));
}

TEST(SpscRing, PassesEverythingFromThreadToThread) {
  SpscRing<int> ring(8);
  constexpr int kAll = 20'000;
  std::thread other([&] {
    for (int i = 0; i < kAll;) {
      int value = i;
      if (ring.push(std::move(value)))
        ++i;
      else
        std::this_thread::yield();
    }
  });
  for (int i = 0; i < kAll;) {
    int value = -1;
    if (!ring.pop(value)) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_EQ(value, i++);
  }
  other.join();
}

}  // namespace
}  // namespace tutti::internal
