#include "runtime/core/waker.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/core/clock.hpp"
#include "runtime/core/spsc_ring.hpp"

namespace tutti::internal {
namespace {

constexpr Duration kAnHour = std::chrono::hours{1};

/// A word in a file of shared memory.
class SharedWord {
 public:
  explicit SharedWord(std::uint32_t value) : file_(memfd_create("word", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(file_, sizeof value), 0);
    word_ = static_cast<std::atomic<std::uint32_t>*>(
        mmap(nullptr, sizeof value, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0));
    *word_ = value;
  }
  SharedWord(const SharedWord&) = delete;
  SharedWord& operator=(const SharedWord&) = delete;
  ~SharedWord() {
    munmap(word_, sizeof *word_);
    close(file_);
  }

  [[nodiscard]] std::atomic<std::uint32_t>& word() const { return *word_; }
  [[nodiscard]] int file() const { return file_; }

 private:
  int file_;
  std::atomic<std::uint32_t>* word_ = nullptr;
};

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
  const SharedWord shared(5);
  Waker waker;
  waker.watch(shared.word(), shared.file());
  waker.look();
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds{300};
  waker.sleep_until(until);
  EXPECT_GE(std::chrono::steady_clock::now(), until);
}

// A word of another process: with a wake-up, and stored by somebody who wakes nobody.
TEST(Waker, WatchesWords) {
  for (const bool wakes : {true, false}) {
    const SharedWord shared(7);
    RealClock clock(WaitKind::Block);
    Waker waker;
    waker.watch(shared.word(), shared.file());
    for (int i = 0; i < 20; ++i) {
      waker.look();
      EXPECT_FALSE(waker.changed());
      std::thread other([&] {
        if (wakes)
          EXPECT_TRUE(add_and_wake(shared.word()));
        else
          ++shared.word();
      });
      clock.wait_until(clock.now() + kAnHour, waker);
      EXPECT_TRUE(waker.changed());
      other.join();
    }
  }
}

// The process would be killed if it touched the memory itself.
TEST(Waker, OutlivesAWordThatIsShortened) {
  const SharedWord shared(7);
  Waker waker;
  waker.watch(shared.word(), shared.file());
  EXPECT_EQ(read_word(shared.file()), 7U);
  EXPECT_TRUE(add_and_wake(shared.word()));
  EXPECT_EQ(read_word(shared.file()), 8U);
  ASSERT_EQ(ftruncate(shared.file(), 0), 0);
  EXPECT_EQ(read_word(shared.file()), std::nullopt);
  EXPECT_FALSE(add_and_wake(shared.word()));
  EXPECT_TRUE(waker.changed());
  waker.look();
  waker.sleep_until(std::chrono::steady_clock::now() + std::chrono::microseconds{300});
  EXPECT_FALSE(waker.changed());
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
