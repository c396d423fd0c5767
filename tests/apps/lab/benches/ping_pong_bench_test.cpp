#include "apps/lab/benches/ping_pong_bench.hpp"

#include <chrono>
#include <deque>

#include <gtest/gtest.h>

#include "apps/lab/reports/ping_pong_report.hpp"

namespace tutti::internal {
namespace {

using std::chrono::microseconds;

/// Takes the given times, one a run, and notes what it is asked for.
class FakePingPong final : public PingPong {
 public:
  explicit FakePingPong(std::deque<Duration> times, std::uint64_t fresh = 1000)
      : times_(std::move(times)), fresh_(fresh) {}

  Expected<Duration> run(const PingPongRun& run) override {
    runs.push_back(run);
    if (times_.empty()) return machine_error("byte 3 is wrong");
    const Duration time = times_.front();
    times_.pop_front();
    return time;
  }
  [[nodiscard]] std::uint64_t most_fresh_rounds(Bytes) const override { return fresh_; }

  std::vector<PingPongRun> runs;

 private:
  std::deque<Duration> times_;
  std::uint64_t fresh_;
};

/// Median times of host, stream, by hand and kernel, us.
PingPongCase case_of(std::int64_t bytes, Duration kernel, std::array<double, 4> medians) {
  PingPongCase one;
  one.bytes = Bytes{bytes}, one.kernel = kernel;
  for (std::size_t m = 0; m < medians.size(); ++m)
    one.times[m].count = 3, one.times[m].median = medians[m], one.times[m].p99 = one.times[m].worst = 2 * medians[m];
  return one;
}

// 4 x 4^9 = 2^20.
TEST(PingPongSizes, AreEachFourTimesTheOneBefore) {
  const auto sizes = ping_pong_sizes(Bytes{4}, Bytes{1 << 20});
  ASSERT_EQ(sizes.size(), 10U);
  EXPECT_EQ(sizes[1], Bytes{16});
  EXPECT_EQ(sizes.back(), Bytes{1 << 20});
  EXPECT_EQ(ping_pong_sizes(Bytes{5}, Bytes{19}), std::vector{Bytes{5}});
}

// 4 checks, then 4 runs for warm-up, then 2 x 4 samples in turn: medians of (10, 12), (20, 22), (30, 32), (40, 42).
TEST(PingPongBench, ModesRunInTurnBehindChecksAndWarmUp) {
  std::deque<Duration> times(8, microseconds(500));
  for (const int sample : {0, 2})
    for (const int mode : {10, 20, 30, 40}) times.push_back(microseconds(mode + sample));
  FakePingPong ping_pong(times, 16);
  PingPongPlan plan;
  plan.sizes = {Bytes{64}}, plan.rounds = 50, plan.samples = 2, plan.checked = 100;
  const auto cases = measure_ping_pong(ping_pong, plan);
  ASSERT_TRUE(cases.has_value());
  ASSERT_EQ(cases->size(), 1U);
  for (const PingPongMode mode : kPingPongModes) {
    const SampleSummary& found = cases->front().of(mode);
    EXPECT_EQ(found.count, 2U);
    EXPECT_DOUBLE_EQ(found.worst, 12.0 + 10 * static_cast<int>(mode));
  }
  ASSERT_EQ(ping_pong.runs.size(), 16U);
  for (std::size_t i = 0; i < ping_pong.runs.size(); ++i) {
    const PingPongRun& run = ping_pong.runs[i];
    EXPECT_EQ(run.mode, kPingPongModes[i % 4]);
    EXPECT_EQ(run.bytes, Bytes{64});
    EXPECT_EQ(run.fresh, i < 4);
    EXPECT_EQ(run.rounds, i < 4 ? 16U : 50U);
  }
}

TEST(PingPongBench, EveryKernelHasEverySize) {
  FakePingPong ping_pong(std::deque<Duration>(48, microseconds(1)));
  PingPongPlan plan;
  plan.sizes = {Bytes{4}, Bytes{16}}, plan.kernels = {Duration{}, microseconds(5)}, plan.samples = 1;
  const auto cases = measure_ping_pong(ping_pong, plan);
  ASSERT_TRUE(cases.has_value());
  ASSERT_EQ(cases->size(), 4U);
  EXPECT_EQ((*cases)[1].bytes, Bytes{16});
  EXPECT_EQ((*cases)[1].kernel, Duration{});
  EXPECT_EQ((*cases)[2].bytes, Bytes{4});
  EXPECT_EQ((*cases)[2].kernel, microseconds(5));
}

TEST(PingPongBench, AFailedRunEndsIt) {
  FakePingPong ping_pong(std::deque<Duration>(5, microseconds(1)));
  PingPongPlan plan;
  plan.sizes = {Bytes{4}};
  const auto cases = measure_ping_pong(ping_pong, plan);
  ASSERT_FALSE(cases.has_value());
  EXPECT_EQ(cases.error().message, "byte 3 is wrong");
}

// By hand is no mode of the project.
TEST(PingPongCase, TheBestModeIsOneOfTheProject) {
  EXPECT_EQ(case_of(4, {}, {10, 20, 5, 30}).best(), PingPongMode::Host);
  EXPECT_EQ(case_of(4, {}, {10, 9, 5, 30}).best(), PingPongMode::Stream);
  EXPECT_EQ(case_of(4, {}, {10, 10, 5, 10}).best(), PingPongMode::Host);
  EXPECT_DOUBLE_EQ(case_of(4, {}, {10, 6, 5, 30}).ratio(PingPongMode::Stream, PingPongMode::ByHand), 1.2);
}

std::vector<PingPongCase> some_cases() {
  return {case_of(4, {}, {10, 12, 10, 20}), case_of(16, {}, {10, 12, 11, 20}), case_of(64, {}, {10, 9, 9, 20}),
          case_of(4, microseconds(5), {20, 21, 20, 12})};
}

TEST(PingPongCase, NeighboursWithOneBestModeAreARange) {
  const std::vector<PingPongWinner> expected{{PingPongMode::Host, Duration{}, Bytes{4}, Bytes{16}},
                                             {PingPongMode::Stream, Duration{}, Bytes{64}, Bytes{64}},
                                             {PingPongMode::Kernel, microseconds(5), Bytes{4}, Bytes{4}}};
  EXPECT_EQ(winners_of(some_cases()), expected);
  EXPECT_TRUE(winners_of({}).empty());
}

// 12 / 10, 12 / 11, 9 / 9, 21 / 20.
TEST(PingPongCase, TheWorstBesideByHandHasTheLargestRatio) {
  const auto cases = some_cases();
  EXPECT_EQ(worst_beside_by_hand(cases), cases.data());
  EXPECT_EQ(worst_beside_by_hand({}), nullptr);
}

PingPongRecord some_record() {
  PingPongRecord record{"m", {"gpu0", "gpu1"}, "Linux 6.1, 16 cores", "2026-11-26", {}, some_cases()};
  record.plan.samples = 3;
  return record;
}

TEST(PingPongReport, HasARowForEachModeAndSaysWhichIsBest) {
  EXPECT_EQ(ping_pong_text(some_record()), R"(size  kernel  mode     median us  99 % us  against host %  to by hand
4 B     none  host         10.00    20.00             100
4 B     none  stream       12.00    24.00             120        1.20
4 B     none  by hand      10.00    20.00             100
4 B     none  kernel       20.00    40.00             200
16 B    none  host         10.00    20.00             100
16 B    none  stream       12.00    24.00             120        1.09
16 B    none  by hand      11.00    22.00             110
16 B    none  kernel       20.00    40.00             200
64 B    none  host         10.00    20.00             100
64 B    none  stream        9.00    18.00              90        1.00
64 B    none  by hand       9.00    18.00              90
64 B    none  kernel       20.00    40.00             200
4 B     5 us  host         20.00    40.00             100
4 B     5 us  stream       21.00    42.00             105        1.05
4 B     5 us  by hand      20.00    40.00             100
4 B     5 us  kernel       12.00    24.00              60

round trips between gpu0 and gpu1: 3 runs of each mode in turn, each the mean of 1000 round trips; Linux 6.1, 16 cores, 2026-11-26
without a kernel, from 4 B to 16 B: host is best
without a kernel, at 64 B: stream is best
with a kernel of 5 us, at 4 B: kernel is best
stream takes at most 1.20 times as long as by hand (4 B, without a kernel); asked: 1.3
published [AGO17], between hosts with network cards: without a kernel host is best at small sizes, since an
operation of the GPU takes some 2.5 us more; with a kernel of 5 us kernel is best
)");
}

TEST(PingPongReport, TheJsonHasTheSame) {
  const Json json = ping_pong_json(some_record());
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["gpus"], Json({"gpu0", "gpu1"}));
  EXPECT_EQ(json["cases"].size(), 4U);
  const Json& last = json["cases"][3];
  EXPECT_EQ(last["bytes"], 4);
  EXPECT_EQ(last["kernel_us"], 5.0);
  EXPECT_EQ(last["best"], "kernel");
  const Json& stream = last["modes"][1];
  EXPECT_EQ(stream["mode"], "stream");
  EXPECT_EQ(stream["count"], 3);
  EXPECT_EQ(stream["median_us"], 21.0);
  EXPECT_EQ(stream["p99_us"], 42.0);
  EXPECT_DOUBLE_EQ(stream["against_host_percent"], 105.0);
  EXPECT_DOUBLE_EQ(stream["ratio_to_by_hand"], 1.05);
  EXPECT_FALSE(last["modes"][0].contains("ratio_to_by_hand"));
  EXPECT_EQ(json["best"].size(), 3U);
  EXPECT_EQ(json["best"][0], Json({{"kernel_us", 0.0}, {"from_bytes", 4}, {"to_bytes", 16}, {"mode", "host"}}));
  EXPECT_DOUBLE_EQ(json["worst_ratio_to_by_hand"], 1.2);
}

}  // namespace
}  // namespace tutti::internal
