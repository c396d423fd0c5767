#include "sched/analyses/utilization.hpp"

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "model/base/random.hpp"
#include "tests/support/largest.hpp"
#include "tests/support/task_timings.hpp"

namespace tutti::internal {
namespace {

using oracle::implicit;

using test::kLargest;

std::strong_ordering against_one(const std::vector<TaskTiming>& tasks) {
  return utilization_sum(tasks).compare_with_one();
}

// 1/2 + 1/4 + 1/4 = 1; each is a whole number of 2^-64, so fixed point decides.
TEST(Utilization, IsExactlyOneForHalvesAndQuarters) {
  EXPECT_EQ(against_one({implicit(1, 2), implicit(1, 4), implicit(2, 8)}), std::strong_ordering::equal);
}

// 3 * 1/3 = 1, and 1/3 has no finite binary fraction.
TEST(Utilization, IsExactlyOneForThirds) {
  EXPECT_EQ(against_one({implicit(1, 3), implicit(1, 3), implicit(1, 3)}), std::strong_ordering::equal);
}

// 10/24 = 0.4167: less. 25/24: more.
TEST(Utilization, IsComparedFarFromOneToo) {
  EXPECT_EQ(against_one({implicit(10, 24)}), std::strong_ordering::less);
  EXPECT_EQ(against_one({implicit(25, 24)}), std::strong_ordering::greater);
  EXPECT_EQ(against_one({}), std::strong_ordering::less);
}

// With M = 2^63 - 1:
//   1/M     + (M-1)/M     = 1
//   1/(M-1) + (M-1)/M     = 1 + 1/(M-1) - 1/M = 1 + 1/(M (M-1))     2^-126 too much
//   1/M     + (M-2)/(M-1) = 1 + 1/M - 1/(M-1) = 1 - 1/(M (M-1))     2^-126 below
TEST(Utilization, DiffersFromOneByTwoToTheMinus126) {
  EXPECT_EQ(against_one({implicit(1, kLargest), implicit(kLargest - 1, kLargest)}), std::strong_ordering::equal);
  EXPECT_EQ(against_one({implicit(1, kLargest - 1), implicit(kLargest - 1, kLargest)}), std::strong_ordering::greater);
  EXPECT_EQ(against_one({implicit(1, kLargest), implicit(kLargest - 2, kLargest - 1)}), std::strong_ordering::less);
}

// 1/(1*2) + 1/(2*3) + ... + 1/(999*1000) + 1/1000 = 1: a thousand different periods, whose common multiple has hundreds
// of digits. One ns more on the longest period is too much, one period longer by 1 is less.
TEST(Utilization, IsExactlyOneForATelescopeOfAThousandPeriods) {
  std::vector<TaskTiming> tasks;
  for (std::int64_t k = 1; k < 1000; ++k) tasks.push_back(implicit(1, k * (k + 1)));
  tasks.push_back(implicit(1, 1000));
  EXPECT_EQ(against_one(tasks), std::strong_ordering::equal);
  EXPECT_TRUE(utilization_at_most_one(tasks));
  tasks.push_back(implicit(1, kLargest));
  EXPECT_EQ(against_one(tasks), std::strong_ordering::greater);
  EXPECT_FALSE(utilization_at_most_one(tasks));
  tasks.pop_back();
  tasks[500].period += Duration{1};
  EXPECT_EQ(against_one(tasks), std::strong_ordering::less);
}

// Periods up to 24 have the common multiple 5354228880, so 64-bit integers decide: sum of C * 5354228880 / T against
// it. The last wcet of each set is the one nearest to 1, so that a large part of the sets is exactly 1.
TEST(Utilization, AgreesWithACommonMultipleOfSmallPeriods) {
  constexpr std::int64_t kCommon = 5354228880;
  Random random{7};
  std::array<int, 3> seen{};  // less, equal, greater
  for (int round = 0; round < 20000; ++round) {
    std::vector<TaskTiming> tasks;
    std::int64_t sum = 0;
    const auto add = [&](std::int64_t wcet, std::int64_t period) {
      tasks.push_back(implicit(wcet, period));
      sum += wcet * (kCommon / period);
    };
    for (std::int64_t left = random.between(1, 5); left > 0; --left) {
      const std::int64_t period = random.between(1, 24);
      add(random.between(0, static_cast<int>(period) / 3), period);
    }
    const std::int64_t period = random.between(1, 24);
    add(std::max<std::int64_t>(0, kCommon - sum) / (kCommon / period) + random.between(0, 1), period);
    ASSERT_EQ(against_one(tasks), sum <=> kCommon) << "round " << round;
    ++seen[static_cast<std::size_t>(1 + (sum > kCommon) - (sum < kCommon))];
  }
  for (const int count : seen) EXPECT_GT(count, 500);
}

// C / T = 2^63 - 1 each: a thousand of them exceed 128 bits of 2^-64, and still are only "more than 1".
TEST(Utilization, DoesNotWrapFarAboveOne) {
  EXPECT_EQ(against_one(std::vector(1000, implicit(kLargest, 1))), std::strong_ordering::greater);
}

// 1/4: 3/4 is left, 3 * 2^62 in units of 2^-64, exactly. 2/3: 2^64 / 3 is rounded down and up. At 1 at most 1 unit per
// fraction is in doubt, far above it nothing.
TEST(Utilization, SlackLiesBetweenItsBounds) {
  const UnsignedWide quarter = UnsignedWide{1} << 62;
  const UtilizationSum one_quarter = utilization_sum(std::array{implicit(1, 4)});
  EXPECT_TRUE(one_quarter.slack() == 3 * quarter && one_quarter.most_slack() == 3 * quarter);
  const UtilizationSum two_thirds = utilization_sum(std::array{implicit(2, 3)});
  EXPECT_TRUE(two_thirds.slack() == 4 * quarter / 3 && two_thirds.most_slack() == 4 * quarter / 3 + 1);
  const UtilizationSum one = utilization_sum(std::array{implicit(1, 3), implicit(2, 3)});
  EXPECT_TRUE(one.slack() == 0 && one.most_slack() == 1);
  const UtilizationSum two = utilization_sum(std::array{implicit(2, 1)});
  EXPECT_TRUE(two.slack() == 0 && two.most_slack() == 0);
}

// 1/4 + 1/8 = 0.375.
TEST(Utilization, IsPrintedAsADouble) {
  EXPECT_DOUBLE_EQ(utilization(std::array{implicit(1, 4), implicit(1, 8)}), 0.375);
  EXPECT_EQ(utilization(std::vector<TaskTiming>{}), 0.0);
}

}  // namespace
}  // namespace tutti::internal
