#include "runtime/host/lateness.hpp"

#include <atomic>
#include <chrono>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

/// A clock on which each wait returns late by the next of these times, and in time where none is left.
class LateClock final : public Clock {
 public:
  explicit LateClock(std::vector<Duration> late) : late_(std::move(late)) {}

  [[nodiscard]] std::string_view name() const override { return "late"; }
  [[nodiscard]] Duration now() const override { return now_; }
  void wait_until(Duration at) override {
    if (at > now_) now_ = at;
    if (next_ < late_.size()) now_ += late_[next_++];
  }
  [[nodiscard]] bool runs_by_itself() const override { return false; }

 private:
  std::vector<Duration> late_;
  std::size_t next_ = 0;
  Duration now_ = 5ms;
};

TEST(Lateness, IsMeasuredFromInstantsOfAFixedPeriod) {
  LateClock clock({10us, 0us, 300us});
  EXPECT_EQ(measure_lateness(clock, 4ms), (std::vector<Duration>{10us, 0us, 300us, 0us}));
}

// Held up for 2.5 ms at its first instant, a thread is late by 1.5 and 0.5 ms at the next two.
TEST(Lateness, CountsInstantsThatHavePassed) {
  LateClock clock({2500us});
  EXPECT_EQ(measure_lateness(clock, 5ms), (std::vector<Duration>{2500us, 1500us, 500us, 0us, 0us}));
}

TEST(Lateness, EndsWhenItIsInterrupted) {
  const std::atomic<bool> interrupted{true};
  LateClock clock({});
  EXPECT_TRUE(measure_lateness(clock, 1h, &interrupted).empty());
}

// 1 to 1000 us: rank 0.5 x 999 lies between 500 and 501 us, 0.99 x 999 = 989.01 a hundredth above 990 us,
// 0.999 x 999 = 998.001 a thousandth above 999 us.
TEST(Lateness, HasQuantiles) {
  std::vector<Duration> late;
  for (int us = 1000; us >= 1; --us) late.emplace_back(us * 1us);
  const WakeLateness found = summarize_lateness(late);
  EXPECT_EQ(found.instants, 1000U);
  EXPECT_EQ(found.median, 500500ns);
  EXPECT_EQ(found.p99, 990010ns);
  EXPECT_EQ(found.p999, 999001ns);
  EXPECT_EQ(found.worst, 1000us);
  EXPECT_EQ(summarize_lateness({}), WakeLateness{});
}

TEST(Lateness, WorstIsThatOfAnyThread) {
  EXPECT_EQ(worst_of({}), std::nullopt);
  EXPECT_EQ(worst_of({WakeLateness{}}), std::nullopt);
  EXPECT_EQ(worst_of({summarize_lateness({3us}), summarize_lateness({7us, 1us})}), Duration{7us});
}

TEST(LatenessTest, HasAThreadForEachCore) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  const auto found = test_lateness({.length = 20ms, .cores = cores});
  ASSERT_EQ(found.size(), cores.size());
  for (std::size_t i = 0; i < cores.size(); ++i) {
    EXPECT_EQ(found[i].core, cores[i]);
    EXPECT_EQ(found[i].instants, 20U);
    EXPECT_TRUE(found[i].notes.empty());
  }
  cpu_set_t after;
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&allowed, &after));
}

TEST(LatenessTest, HasOneThreadWhereNoCoreIsNamed) {
  const auto found = test_lateness({.length = 10ms});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].core, std::nullopt);
  EXPECT_EQ(found[0].instants, 10U);
}

TEST(LatenessTest, SaysWhichCoreItCannotUse) {
  for (const int core : {-1, CPU_SETSIZE, CPU_SETSIZE - 1}) {
    const auto found = test_lateness({.length = 10ms, .cores = {core}});
    ASSERT_EQ(found[0].notes.size(), 1U) << core;
    EXPECT_NE(found[0].notes[0].find("cannot be kept on core " + std::to_string(core)), std::string::npos);
  }
}

}  // namespace
}  // namespace tutti::internal
