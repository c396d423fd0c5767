#include "apps/lab/fits/measurement.hpp"

#include <set>

#include <gtest/gtest.h>

#include "apps/lab/fits/measurement_plan.hpp"
#include "model/sharing/compile_machine.hpp"
#include "model/sharing/rate_residual.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

// Streams as bits: gpu0 h2d 1, gpu0 d2h 2, gpu1 h2d 4, gpu1 d2h 8.
PortSet bits(std::uint64_t ports) { return PortSet::of_bits(ports); }

Measurements measured(std::vector<MeasuredRates> rates) {
  Measurements measurements;
  measurements.rates = std::move(rates);
  return measurements;
}

TEST(Measurement, RepetitionsBecomeTheirMedianAndTheirLowest) {
  const auto result = clean(measured({{bits(1), {50}, "a"}, {bits(1), {54}, "b"}, {bits(1), {53}, "c"}}));
  ASSERT_EQ(result.combinations.size(), 1U);
  EXPECT_EQ(result.combinations[0].rates, std::vector{53.0});
  EXPECT_EQ(result.combinations[0].lowest, std::vector{50.0});
  EXPECT_EQ(result.combinations[0].repetitions, 3);
  EXPECT_TRUE(result.left_out.empty());
}

// 50, 54 and 53 deviate from their median by 3/53, 1/53 and 0; four fifths of the way between the first and the last of
// them, in order, are 0.6 of the way from 1/53 to 3/53. What was measured twice says nothing.
TEST(Measurement, SpreadIsWhatFourOfFiveRepetitionsKeepTo) {
  const std::vector<MeasuredRates> twice{{bits(4), {50}, "d"}, {bits(4), {90}, "e"}};
  EXPECT_EQ(spread_of(measured(twice)), 0);
  std::vector<MeasuredRates> rates{{bits(1), {50}, "a"}, {bits(1), {54}, "b"}, {bits(1), {53}, "c"}};
  rates.insert(rates.end(), twice.begin(), twice.end());
  EXPECT_DOUBLE_EQ(spread_of(measured(rates)), (1 + 0.6 * 2) / 53);
}

// 40 and 52 are 6 from their median 46, more than an eighth of it.
TEST(Measurement, LeavesOutRepetitionsThatContradictEachOther) {
  const auto result =
      clean(measured({{bits(1), {40}, "steady_state[0]"}, {bits(1), {52}, "steady_state[1]"}, {bits(4), {50}, "c"}}));
  EXPECT_EQ(result.combinations.size(), 1U);
  ASSERT_EQ(result.doubtful.size(), 1U);
  EXPECT_EQ(result.doubtful[0].lowest, std::vector{40.0});
  EXPECT_EQ(result.left_out,
            std::vector<std::string>{
                "steady_state[1]: h2d 0 was measured 2 times, from 40.0 to 52.0 GB/s; measure it again"});
}

TEST(Measurement, LeavesOutWhatIsFasterThanItsLink) {
  const auto result = clean(measured({{bits(1), {50}, "a"}, {bits(5), {80, 50}, "b"}}));
  EXPECT_EQ(result.combinations.size(), 1U);
  EXPECT_EQ(result.left_out,
            std::vector<std::string>{
                "b: h2d 0 runs at 80.0 GB/s in h2d 0 1, more than its link carries alone (50.0); measure it again"});
}

// One run in three disturbed: the other two agree.
TEST(Measurement, OneDisturbedRepetitionDoesNotMatter) {
  const auto result = clean(measured({{bits(1), {50}, "a"}, {bits(1), {20}, "b"}, {bits(1), {51}, "c"}}));
  ASSERT_EQ(result.combinations.size(), 1U);
  EXPECT_EQ(result.combinations[0].rates, std::vector{50.0});
  EXPECT_EQ(result.combinations[0].lowest, std::vector{20.0});
}

TEST(Measurement, DoubtsARateAloneThatAllCorunnersExceed) {
  const auto result = clean(
      measured({{bits(1), {30}, "alone"}, {bits(5), {50, 50}, ""}, {bits(3), {50, 50}, ""}, {bits(9), {50, 50}, ""}}));
  EXPECT_EQ(result.combinations.size(), 3U);
  EXPECT_EQ(result.left_out,
            std::vector<std::string>{
                "alone: h2d 0 runs at 30.0 GB/s alone and faster in most combinations; measure it again"});
}

// 1 MB at 50 GB/s takes 20 us; in 100 us it would move at 10.
TEST(Measurement, LeavesOutBatchesThatCannotBe) {
  Measurements measurements = measured({{bits(1), {50}, "a"}});
  measurements.batches.push_back({{{{0, Direction::HostToDevice}, 1e6, 10e3}}, "batch"});
  measurements.batches.push_back({{{{0, Direction::HostToDevice}, 1e6, 100e3}}, "slow"});
  measurements.batches.push_back({{{{0, Direction::HostToDevice}, 1e6, 21e3}}, "fine"});
  const auto result = clean(measurements);
  ASSERT_EQ(result.batches.size(), 1U);
  EXPECT_EQ(result.batches[0].place, "fine");
  EXPECT_EQ(result.left_out.size(), 2U);
}

TEST(Measurement, CountsGpus) {
  EXPECT_EQ(measured({{bits(1), {50}, ""}}).gpus(), 1U);
  EXPECT_EQ(measured({{bits(2), {50}, ""}, {bits(8), {50}, ""}}).gpus(), 2U);
  EXPECT_EQ(measured({{bits(16), {50}, ""}}).gpus(), 3U);
}

TEST(Measurement, NamesStreamsByDirection) {
  EXPECT_EQ(ports_text(bits(1 | 2 | 8 | 64)), "h2d 0 3, d2h 0 1");
  EXPECT_EQ(rates_text(bits(1 | 2 | 8 | 64), {1, 2, 3, 4}), "1.0 4.0, 2.0 3.0");
  EXPECT_EQ(rates_text(bits(2), {2}), "2.0");
}

// ---- what to measure

Topology machine_of(int count) { return test::star(200, std::vector<double>(static_cast<std::size_t>(count), 50)); }

TEST(MeasurementPlan, StaysInItsTime) {
  EXPECT_LT(plan_measurements(machine_of(4)).value().total(), std::chrono::seconds(60));
  EXPECT_LT(plan_measurements(machine_of(8)).value().total(), std::chrono::minutes(4));
}

// 2n streams alone and n(2n - 1) pairs; and how many GPUs go up, down and both ways: C(n + 3, 3) - 1 classes.
TEST(MeasurementPlan, HasEveryStreamEveryPairAndEveryClass) {
  for (const int n : {1, 2, 4, 8}) {
    const auto plan = plan_measurements(machine_of(n)).value();
    std::size_t small = 0;
    std::set<std::vector<int>> classes;
    std::set<PortSet> different;
    for (const PortSet& streams : plan.combinations) {
      small += streams.size() <= 2 ? 1 : 0;
      std::vector<int> numbers(4);
      for (int gpu = 0; gpu < n; ++gpu) ++numbers[state_of(streams, static_cast<std::uint32_t>(gpu))];
      classes.insert(numbers);
      different.insert(streams);
    }
    EXPECT_GE(small, static_cast<std::size_t>(2 * n + n * (2 * n - 1)));
    EXPECT_EQ(classes.size(), static_cast<std::size_t>((n + 3) * (n + 2) * (n + 1) / 6 - 1));
    EXPECT_EQ(different.size(), plan.combinations.size());
  }
}

TEST(MeasurementPlan, RefusesMachinesThatItCannotServe) {
  EXPECT_EQ(plan_measurements(machine_of(9)).error().message, "9 GPUs; a calibration serves 8 at most");
}

}  // namespace
}  // namespace tutti::internal
