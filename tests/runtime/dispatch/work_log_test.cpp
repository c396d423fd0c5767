#include "runtime/dispatch/work_log.hpp"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

// Work in [10, 20), [20, 25) and [40, 50): 25 in all; since 15: 5 + 5 + 10, since 45: 5.
TEST(WorkLog, CountsWhatLiesBehindAnInstant) {
  WorkLog log;
  EXPECT_EQ(log.since(Duration{0}), Duration{0});
  for (const auto& [from, to] : {std::pair(10, 20), {20, 25}, {30, 30}, {40, 50}})
    log.add(Duration{from}, Duration{to});
  EXPECT_EQ(log.total(), Duration{25});
  EXPECT_EQ(log.since(Duration{0}), Duration{25});
  EXPECT_EQ(log.since(Duration{15}), Duration{20});
  EXPECT_EQ(log.since(Duration{25}), Duration{10});
  EXPECT_EQ(log.since(Duration{45}), Duration{5});
  EXPECT_EQ(log.since(Duration{50}), Duration{0});
}

// A nanosecond of work in each of 3000 stretches; the last 1024 are known.
TEST(WorkLog, ForgetsWhatLiesFarBack) {
  WorkLog log;
  for (int i = 0; i < 3000; ++i) log.add(Duration{2 * i}, Duration{2 * i + 1});
  EXPECT_EQ(log.total(), Duration{3000});
  EXPECT_EQ(log.since(Duration{0}), Duration{WorkLog::kMost});
  EXPECT_EQ(log.since(Duration{2 * 2990}), Duration{10});
}

TEST(WorkLog, AgreesWithASlowOne) {
  test::Random random(3);
  for (int round = 0; round < 200; ++round) {
    WorkLog log;
    std::vector<char> works;
    while (works.size() < 300) {
      const std::size_t pause = random.below(10), work = random.below(10);
      works.insert(works.end(), pause, 0);
      log.add(Duration{static_cast<std::int64_t>(works.size())},
              Duration{static_cast<std::int64_t>(works.size() + work)});
      works.insert(works.end(), work, 1);
    }
    const std::size_t at = random.below(works.size());
    std::int64_t expected = 0;
    for (std::size_t i = at; i < works.size(); ++i) expected += works[i];
    ASSERT_EQ(log.since(Duration{static_cast<std::int64_t>(at)}), Duration{expected});
  }
}

}  // namespace
}  // namespace tutti::internal
