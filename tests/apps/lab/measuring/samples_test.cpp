#include "apps/lab/measuring/samples.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// 1, 2, 3, 4, 90 us: the sum is 100. Quantiles lie between neighbours: 99 % is at place 3.96, 4 + 0.96 x 86; 99.9 % at
// 3.996.
TEST(SampleSummary, HasAverageQuantilesAndWorst) {
  const std::vector<Duration> times{microseconds{4}, microseconds{1}, microseconds{90}, microseconds{3},
                                    microseconds{2}};
  const SampleSummary summary = summarize_samples(times);
  EXPECT_EQ(summary.count, 5U);
  EXPECT_DOUBLE_EQ(summary.average, 20);
  EXPECT_DOUBLE_EQ(summary.median, 3);
  EXPECT_NEAR(summary.p99, 4 + 0.96 * 86, 1e-9);
  EXPECT_NEAR(summary.p999, 4 + 0.996 * 86, 1e-9);
  EXPECT_DOUBLE_EQ(summary.worst, 90);
  EXPECT_EQ(summarize_samples({}), SampleSummary{});
}

// 1000 samples may take 300 us each, 300 ms in all; ten are taken however long they take.
TEST(SampleLimit, IsReachedByCountOrByTime) {
  const SampleLimit limit = SampleLimit::wanting(1000);
  EXPECT_FALSE(limit.reached(999, milliseconds{299}));
  EXPECT_TRUE(limit.reached(1000, milliseconds{1}));
  EXPECT_TRUE(limit.reached(10, milliseconds{300}));
  EXPECT_FALSE(limit.reached(9, milliseconds{10'000}));
  EXPECT_TRUE(SampleLimit::wanting(3).reached(3, milliseconds{0}));
}

// In 4 parts: 250, 500, 750 and 1000 samples within 75, 150, 225 and 300 ms; of ten at least 3, 5, 8 and 10.
TEST(SampleLimit, GrowsPartByPart) {
  const SampleLimit limit = SampleLimit::wanting(1000);
  const SampleLimit first = limit.after(1, 4), third = limit.after(3, 4), last = limit.after(4, 4);
  EXPECT_EQ(first.most, 250U);
  EXPECT_EQ(first.least, 3U);
  EXPECT_EQ(first.time, milliseconds{75});
  EXPECT_EQ(third.least, 8U);
  EXPECT_EQ(third.time, milliseconds{225});
  EXPECT_EQ(last.most, limit.most);
  EXPECT_EQ(last.least, limit.least);
  EXPECT_EQ(last.time, limit.time);
}

TEST(DoubledSizes, StopAtOrBelowTheLargest) {
  EXPECT_EQ(doubled_sizes(Bytes{4}, Bytes{33}), (std::vector<Bytes>{Bytes{4}, Bytes{8}, Bytes{16}, Bytes{32}}));
  EXPECT_EQ(doubled_sizes(Bytes{3}, Bytes{3}), std::vector<Bytes>{Bytes{3}});
  EXPECT_EQ(doubled_sizes(Bytes{4}, Bytes{256LL << 20}).size(), 27U);
}

}  // namespace
}  // namespace tutti::internal
