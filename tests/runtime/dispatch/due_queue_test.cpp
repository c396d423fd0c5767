#include "runtime/dispatch/due_queue.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

TEST(DueQueue, HasNothingAtFirst) {
  EXPECT_EQ(DueQueue(0).earliest(), kNever);
  EXPECT_EQ(DueQueue(3).earliest(), kNever);
}

// 1 and 2 are due at 5, the first of them goes first; then 2 is moved behind 0, and 1 has none any more.
TEST(DueQueue, GivesTheEarliestAndTiesByOrder) {
  DueQueue due(3);
  due.set(2, Duration{5});
  due.set(1, Duration{5});
  due.set(0, Duration{7});
  EXPECT_EQ(due.first(), 1U);
  EXPECT_EQ(due.earliest(), Duration{5});
  due.set(2, Duration{9});
  due.set(1, kNever);
  EXPECT_EQ(due.first(), 0U);
  EXPECT_EQ(due.of(2), Duration{9});
}

TEST(DueQueue, AgreesWithASearch) {
  test::Random random(15);
  for (int round = 0; round < 50; ++round) {
    const std::size_t tasks = random.below(20) + 1;
    DueQueue due(tasks);
    std::vector<Duration> all(tasks, kNever);
    for (int step = 0; step < 200; ++step) {
      const std::size_t task = random.below(tasks);
      all[task] = random.one_in(5) ? kNever : Duration{random.between(0, 30)};
      due.set(task, all[task]);
      const auto earliest = std::ranges::min_element(all);
      ASSERT_EQ(due.earliest(), *earliest);
      if (*earliest != kNever) {
        ASSERT_EQ(due.first(), static_cast<std::size_t>(earliest - all.begin()));
      }
    }
  }
}

}  // namespace
}  // namespace tutti::internal
