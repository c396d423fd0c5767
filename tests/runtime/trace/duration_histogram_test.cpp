// Quantiles in bounded memory, beside a slow oracle that keeps and sorts all values.
#include "runtime/trace/duration_histogram.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "tests/runtime/trace/random_entries.hpp"

namespace tutti::internal {
namespace {

DurationHistogram of(const std::vector<std::int64_t>& values) {
  DurationHistogram histogram;
  for (const std::int64_t value : values) histogram.add(Duration{value});
  return histogram;
}

/// The smallest value that `permille` of 1000 values do not exceed.
Duration slow_quantile(std::vector<Duration> values, std::uint64_t permille) {
  std::ranges::sort(values);
  std::size_t count = 0;
  while (count * 1000 < permille * values.size()) ++count;
  return values[count - 1];
}

TEST(DurationHistogram, OfNoneHasQuantile0) {
  EXPECT_EQ(DurationHistogram().quantile(500), Duration{0});
  EXPECT_EQ(DurationHistogram().count(), 0U);
}

// 1 to 100: half of them are at most 50, 99 % at most 99, and only 100 is not below 100.
TEST(DurationHistogram, IsExactBelow128) {
  std::vector<std::int64_t> values(100);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(i) + 1;
  const DurationHistogram histogram = of(values);
  EXPECT_EQ(histogram.quantile(500), Duration{50});
  EXPECT_EQ(histogram.quantile(990), Duration{99});
  EXPECT_EQ(histogram.quantile(999), Duration{100});
  EXPECT_EQ(histogram.quantile(1), Duration{1});
}

// From 128 on a bucket is 2 wide: 128 and 129 share one. From 256 on it is 4 wide: 256 to 259.
TEST(DurationHistogram, RoundsUpToTheEndOfABucket) {
  EXPECT_EQ(of({128, 1000}).quantile(500), Duration{129});
  EXPECT_EQ(of({256, 1000}).quantile(500), Duration{259});
  EXPECT_EQ(of({260, 1000}).quantile(500), Duration{263});
  EXPECT_EQ(of({256}).quantile(500), Duration{256}) << "never above the largest value";
}

TEST(DurationHistogram, KeepsTheLargestOfThoseThatAreTooLong) {
  const std::int64_t longest = DurationHistogram::kLongest.count();
  EXPECT_EQ(of({5, longest - 1}).quantile(999), Duration{longest - 1});
  EXPECT_EQ(of({5, longest + 7, 3 * longest}).quantile(999), Duration{3 * longest});
  EXPECT_EQ(of({-5}).quantile(500), Duration{0});
}

// 10 + 100 + 1000 = 1110 ns. 1000 ns lie in a bucket of 8 from 1000 to 1007.
TEST(DurationHistogram, CountsThoseUpToATime) {
  DurationHistogram times;
  for (const std::int64_t ns : {10, 100, 1000}) times.add(Duration{ns});
  EXPECT_EQ(times.total(), Duration{1110});
  EXPECT_EQ(times.at_most(Duration{9}), 0U);
  EXPECT_EQ(times.at_most(Duration{10}), 1U);
  EXPECT_EQ(times.at_most(Duration{999}), 2U);
  EXPECT_EQ(times.at_most(Duration{1000}), 3U);
  times.merge(times);
  EXPECT_EQ(times.at_most(Duration{150}), 4U);
  EXPECT_EQ(times.total(), Duration{2220});
}

TEST(DurationHistogram, IsAtMostA64thAboveTheSlowOracle) {
  for (std::uint64_t seed = 0; seed < test::rounds(std::uint64_t{300}); ++seed) {
    test::Random random(seed);
    std::vector<Duration> values(1 + random.below(seed % 10 == 0 ? 20'000 : 300));
    DurationHistogram histogram, halves[2];
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = std::min(test::random_time(random), DurationHistogram::kLongest - Duration{1});
      histogram.add(values[i]);
      halves[i % 2].add(values[i]);
    }
    for (const std::uint64_t permille : {1, 500, 900, 990, 999, 1000}) {
      const Duration exact = slow_quantile(values, permille);
      EXPECT_GE(histogram.quantile(permille), exact) << seed;
      EXPECT_LE(histogram.quantile(permille) - exact, exact / 64) << seed;
    }
    EXPECT_EQ(histogram.largest(), std::ranges::max(values));
    halves[0].merge(halves[1]);
    EXPECT_EQ(halves[0], histogram) << seed;
  }
}

}  // namespace
}  // namespace tutti::internal
