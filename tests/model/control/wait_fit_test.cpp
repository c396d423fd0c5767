#include "model/control/wait_fit.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "tests/model/control/exchange_texts.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

using test::kUs;
using test::Random;

constexpr std::size_t kPlantedPeriods = test::rounds(48U);

/// A GPU that looks at a word once a period, from `phase` on: it sees a word after that part of the period that is
/// left.
struct Poller {
  double min = 5 * kUs, period = 12 * kUs, amplitude = 12 * kUs, phase = 0, slope = 1 * kUs;  // ns
  double noise = 0;                                                                           // relative
  int outliers_in = 0;                                                                        // one of so many; 0: none

  [[nodiscard]] double exact(double sleep, int streams) const {
    const double turns = (sleep - phase) / period;
    return min + amplitude * (1 - (turns - std::floor(turns))) + slope * streams;
  }
  [[nodiscard]] Duration time(double sleep, int streams, Random& random) const {
    // Nearly normal: the sum of twelve uniform numbers has the variance 1.
    double normal = -6;
    for (int i = 0; i < 12; ++i) normal += random.real(0, 1);
    double ns = exact(sleep, streams) * (1 + noise * normal);
    if (outliers_in > 0 && random.one_in(static_cast<std::uint64_t>(outliers_in))) ns += random.real(20, 500) * kUs;
    return Duration{static_cast<std::int64_t>(std::max(1.0, std::round(ns)))};
  }
};

/// The sweep of the benchmark: 0 to 50 us in steps of 0.25 us.
std::vector<WaitSample> sweep(const Poller& poller, std::vector<int> streams, Random& random) {
  std::vector<WaitSample> samples;
  for (int step = 0; step <= 200; ++step)
    for (const int count : streams) {
      const Duration sleep{step * 250};
      samples.push_back({sleep, count, poller.time(static_cast<double>(sleep.count()), count, random)});
    }
  return samples;
}

// Published for a K40m: period 12 us, 1 us for each stream. Without noise the fit is exact, to the nanosecond that
// times are rounded to.
TEST(WaitFit, FindsThePublishedSawtooth) {
  Random random(1);
  const Poller poller{.phase = 3 * kUs};
  const auto samples = sweep(poller, {1, 2, 4, 8, 16, 32}, random);
  const WaitFit fit = fit_wait(samples).value();
  ASSERT_TRUE(fit.sawtooth);
  EXPECT_NEAR(fit.sawtooth->period_ns, 12 * kUs, 0.01 * 12 * kUs);
  EXPECT_NEAR(fit.sawtooth->amplitude_ns, 12 * kUs, 0.02 * 12 * kUs);
  EXPECT_FALSE(fit.sawtooth->rises);
  EXPECT_NEAR(*fit.slope_ns, kUs, 2);
  EXPECT_NEAR(fit.min_ns, 5 * kUs, 0.02 * 12 * kUs);
  // At dt = 3 us a tooth starts, so the whole period is left: 5 + 12 + 32.
  EXPECT_EQ(fit.worst_ns, 49 * kUs);
  for (const double sleep : {1.0, 7.3, 20.1, 41.7})
    EXPECT_NEAR(fit.at(sleep * kUs, 4), poller.exact(sleep * kUs, 4), 300);
}

TEST(WaitFit, RecoversAPlantedPeriodWithinFivePercent) {
  for (std::size_t seed = 0; seed < kPlantedPeriods; ++seed) {
    Random random(100 + seed);
    Poller poller;
    poller.min = random.real(1, 10) * kUs;
    poller.period = std::exp(random.real(std::log(2.0), std::log(40.0))) * kUs;
    poller.amplitude = random.real(0.3, 1) * poller.period;
    poller.phase = random.real(0, 1) * poller.period;
    poller.slope = random.real(0, 1.5) * kUs;
    poller.noise = random.real(0, 0.03);
    poller.outliers_in = random.one_in(2) ? 20 : 0;
    const WaitFit fit = fit_wait(sweep(poller, {1, 2, 4, 8}, random)).value();
    ASSERT_TRUE(fit.sawtooth) << "seed " << seed << ", period " << poller.period;
    EXPECT_NEAR(fit.sawtooth->period_ns / poller.period, 1, 0.05) << "seed " << seed << ", period " << poller.period;
    EXPECT_NEAR(fit.sawtooth->amplitude_ns / poller.amplitude, 1, 0.1)
        << "seed " << seed << ", period " << poller.period;
    EXPECT_NEAR(*fit.slope_ns, poller.slope, 0.06 * kUs) << "seed " << seed;
    EXPECT_NEAR(fit.min_ns, poller.min, 0.1 * poller.amplitude + 0.1 * kUs) << "seed " << seed;
    EXPECT_FALSE(fit.sawtooth->rises);
  }
}

// One stream, one sample a sleep, an outlier in each ten.
TEST(WaitFit, NeedsNoRepetitions) {
  for (std::size_t seed = 0; seed < kPlantedPeriods / 4; ++seed) {
    Random random(500 + seed);
    const Poller poller{.period = random.real(2, 40) * kUs, .amplitude = 2 * kUs, .noise = 0.01, .outliers_in = 10};
    const WaitFit fit = fit_wait(sweep(poller, {1}, random)).value();
    ASSERT_TRUE(fit.sawtooth) << "seed " << seed << ", period " << poller.period;
    EXPECT_NEAR(fit.sawtooth->period_ns / poller.period, 1, 0.05) << "seed " << seed << ", period " << poller.period;
    EXPECT_FALSE(fit.slope_ns);
    EXPECT_NEAR(fit.min_ns, poller.min + poller.slope, 0.5 * kUs);  // of one stream
  }
}

// Every third sample is an outlier, 20 to 500 us late: the medians of 21 repetitions are not. 201 x 2 x 21 samples.
TEST(WaitFit, RepetitionsCountByTheirMedian) {
  Random random(5);
  const Poller poller{.period = 17 * kUs, .amplitude = 6 * kUs, .noise = 0.01, .outliers_in = 3};
  std::vector<WaitSample> samples;
  for (int repetition = 0; repetition < 21; ++repetition)
    for (const WaitSample& sample : sweep(poller, {1, 4}, random)) samples.push_back(sample);
  const WaitFit fit = fit_wait(samples).value();
  ASSERT_TRUE(fit.sawtooth);
  EXPECT_NEAR(fit.sawtooth->period_ns, 17 * kUs, 0.02 * 17 * kUs);
  EXPECT_NEAR(*fit.slope_ns, kUs, 0.05 * kUs);
  EXPECT_GT(fit.worst_ns, 400 * kUs);  // it is of all samples
}

TEST(WaitFit, ATimeThatRisesAlongAToothIsOneToo) {
  std::vector<WaitSample> samples;
  for (int step = 0; step <= 200; ++step)
    samples.push_back({Duration{step * 250}, 1, Duration{5'000 + (step * 250) % 8'000 / 2}});
  const WaitFit fit = fit_wait(samples).value();
  ASSERT_TRUE(fit.sawtooth);
  EXPECT_TRUE(fit.sawtooth->rises);
  EXPECT_NEAR(fit.sawtooth->period_ns, 8 * kUs, 0.01 * 8 * kUs);
  EXPECT_NEAR(fit.sawtooth->amplitude_ns, 4 * kUs, 0.1 * 4 * kUs);
  EXPECT_NEAR(fit.at(6'100, 1), 8'050, 100);
}

TEST(WaitFit, SaysWhereThereIsNoSawtooth) {
  for (std::size_t seed = 0; seed < kPlantedPeriods; ++seed) {
    Random random(900 + seed);
    Poller poller;
    poller.min = random.real(1, 10) * kUs;
    poller.amplitude = 0;
    poller.slope = random.real(0, 1.5) * kUs;
    poller.noise = random.real(0, 0.03);
    poller.outliers_in = random.one_in(2) ? 20 : 0;
    const WaitFit fit = fit_wait(sweep(poller, {1, 2, 4, 8}, random)).value();
    EXPECT_FALSE(fit.sawtooth) << "seed " << seed << ", amplitude " << fit.sawtooth->amplitude_ns;
    EXPECT_NEAR(fit.min_ns, poller.min, 0.02 * poller.min + 0.02 * kUs) << "seed " << seed;
    EXPECT_NEAR(*fit.slope_ns, poller.slope, 0.05 * kUs) << "seed " << seed;
  }
}

TEST(WaitFit, NoiseIsThatOfTheSamples) {
  Random random(3);
  const Poller poller{.min = 20 * kUs, .amplitude = 4 * kUs, .slope = 0, .noise = 0.01};
  const WaitFit fit = fit_wait(sweep(poller, {1, 2, 4}, random)).value();
  EXPECT_NEAR(fit.noise_ns, 0.01 * 22 * kUs, 0.002 * 22 * kUs);  // of 20 to 24 us
}

TEST(WaitFit, RefusesSamplesThatCannotBeFitted) {
  Random random(4);
  const auto good = sweep({}, {1}, random);
  const auto error = [](std::vector<WaitSample> samples) {
    const auto fit = fit_wait(samples);
    return fit ? "fine" : fit.error().message;
  };
  EXPECT_EQ(error(good), "fine");
  EXPECT_EQ(error({good.begin(), good.begin() + 15}), "the samples have 15 different sleeps; a fit needs at least 16");
  EXPECT_EQ(error({}), "the samples have 0 different sleeps; a fit needs at least 16");
  auto bad = good;
  bad[3].time = Duration{0};
  EXPECT_EQ(
      error(bad),
      "sample 3 has a sleep of 750 ns, 1 streams and a time of 0 ns; a sleep is not negative, there is a stream, and "
      "a time is above 0");
  bad = good;
  bad[0].sleep = Duration{-1};
  EXPECT_NE(error(bad), "fine");
  bad = good;
  bad[0].streams = 0;
  EXPECT_NE(error(bad), "fine");
}

}  // namespace
}  // namespace tutti::internal
