#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "model/base/step_budget.hpp"
#include "model/base/wide.hpp"
#include "sched/analyses/divisor.hpp"
#include "tests/support/largest.hpp"
#include "tests/support/task_timings.hpp"

namespace tutti::internal {
namespace {

using test::kLargest;

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

// Against the division itself, at multiples and beside them, for numbers of every magnitude.
TEST(Divisor, DividesAsDivisionDoes) {
  oracle::Dice dice(64);
  for (int round = 0; round < 20'000; ++round) {
    const std::int64_t number = std::max<std::int64_t>(1, dice.roll(0, kLargest - 1) >> dice.roll(0, 62));
    const Divisor<std::int64_t> divisor(number);
    const std::int64_t any = dice.roll(0, kLargest - 1) >> dice.roll(0, 62);
    const std::int64_t multiple = any - any % number;
    for (const std::int64_t dividend : {any, multiple, std::max<std::int64_t>(multiple - 1, 0), kLargest}) {
      ASSERT_EQ(divisor.floor(dividend), dividend / number) << dividend << " / " << number;
      ASSERT_EQ(ceil_div(dividend, divisor), dividend / number + (dividend % number == 0 ? 0 : 1));
    }
  }
}

// 2^39 is too large, in any place; so is a job that is ready only after its deadline.
TEST(Divisor, TakesSmallNumbersOnly) {
  EXPECT_TRUE(fits_64_bits({}));
  EXPECT_TRUE(fits_64_bits(std::vector{oracle::timing(kSmall - 1, kSmall - 1, kSmall - 1, kSmall - 1)}));
  for (const TaskTiming& task :
       {oracle::timing(kSmall, 1, 1), oracle::timing(1, kSmall, 1), oracle::timing(1, 1, kSmall),
        oracle::timing(1, 1, kSmall - 1, kSmall), oracle::timing(1, 5, 5, 6), oracle::timing(1, kLargest, 1, kLargest)})
    EXPECT_FALSE(fits_64_bits(std::vector{oracle::timing(1, 4, 4), task}));
}

TEST(StepBudget, SpendsWhatItHasAndNoMore) {
  StepBudget budget(5);
  EXPECT_TRUE(budget.spend(3));
  EXPECT_TRUE(budget.spend(2));
  EXPECT_FALSE(budget.spend(1));
}

}  // namespace
}  // namespace tutti::internal
