#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "sched/analyses/step_budget.hpp"
#include "sched/analyses/wide.hpp"

namespace tutti {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

// 7 / 3: 2 and 3; 6 / 3: 2 and 2; 0: 0 and 0.
TEST(WideArithmetic, DividesDownAndUp) {
  EXPECT_TRUE(floor_div(7, 3) == 2 && ceil_div(7, 3) == 3);
  EXPECT_TRUE(floor_div(6, 3) == 2 && ceil_div(6, 3) == 2);
  EXPECT_TRUE(floor_div(0, 3) == 0 && ceil_div(0, 3) == 0);
}

// (2^63 - 1) * 4 / (2^63 - 1) = 4, beyond the reach of a 64-bit division; one more needs a fifth.
TEST(WideArithmetic, DividesBeyond64Bits) {
  const Wide fourfold = Wide{kLargest} * 4;
  EXPECT_TRUE(floor_div(fourfold, kLargest) == 4);
  EXPECT_TRUE(ceil_div(fourfold, kLargest) == 4);
  EXPECT_TRUE(ceil_div(fourfold + 1, kLargest) == 5);
}

// 2^57 * 2^63 = 2^120, just too far; 2^57 * (2^63 - 1) is 2^57 less. With a count of 2^64: 2^64 * 2^55 = 2^119 fits,
// 2^64 * 2^56 does not.
TEST(WideArithmetic, StopsGrowingAtFar) {
  EXPECT_TRUE(work_of(Wide{1} << 57, kLargest) == kFar - (Wide{1} << 57));
  EXPECT_TRUE(work_of(Wide{1} << 64, std::int64_t{1} << 55) == Wide{1} << 119);
  EXPECT_TRUE(work_of(Wide{1} << 64, std::int64_t{1} << 56) == kFar);
  EXPECT_TRUE(work_of(kFar, kLargest) == kFar);
  EXPECT_TRUE(work_of(kFar, 0) == 0);
  EXPECT_TRUE(capped_sum(kFar, kFar) == kFar);
}

TEST(WideArithmetic, BecomesADurationOnlyWhereItFits) {
  EXPECT_EQ(to_duration(kLargest), Duration{kLargest});
  EXPECT_EQ(to_duration(Wide{kLargest} + 1), std::nullopt);
  EXPECT_EQ(to_duration(-3), Duration{-3});
}

TEST(StepBudget, SpendsWhatItHasAndNoMore) {
  StepBudget budget(5);
  EXPECT_TRUE(budget.spend(3));
  EXPECT_TRUE(budget.spend(2));
  EXPECT_FALSE(budget.spend(1));
}

}  // namespace
}  // namespace tutti
