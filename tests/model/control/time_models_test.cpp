#include "model/control/time_models.hpp"

#include <gtest/gtest.h>

#include "tests/model/control/exchange_texts.hpp"

namespace tutti::internal {
namespace {

using test::kSmallExchange;
using test::kUs;
using test::make_exchange;

// One iteration, host | GPU, in us: launch 0..2 | A 2..12; the host waits until 12 and 1 more, 13; sends until 18;
// launch until 20 | B 20..40; waits for the message until 24, for the GPU until 41; launch until 43 | C 43..49; waits
// until 50. Waits: 11 + 17 + 7 = 35, three of them. GPU: 36 of 50 us busy, 14 idle.
TEST(TimeModels, AHostDrivenIterationIsPlayed) {
  const HostDrivenTime host = host_driven_time(make_exchange(kSmallExchange));
  EXPECT_DOUBLE_EQ(host.time.cpu_ns, 10 * 50 * kUs);
  EXPECT_DOUBLE_EQ(host.synchronization_ns, 35 * kUs / 3);
  EXPECT_DOUBLE_EQ(host.idle_ns, 10 * 14 * kUs);
  EXPECT_DOUBLE_EQ(host.time.gpu_ns, 10 * 50 * kUs);
}

// Model (1) with TH_sync = 5: 10 (2 + 5 + 5 + 2 + 4 + 5 + 2 + 5) = 300; with T_idle / R = 7: 10 (36 + 7) = 430.
TEST(TimeModels, MeasuredWaitsAndIdleTimeAreTakenAsTheyAre) {
  ExchangeSpec spec = make_exchange(kSmallExchange);
  spec.synchronize_call.reset();
  spec.synchronization = Duration{5'000};
  spec.idle = Duration{7'000};
  const HostDrivenTime host = host_driven_time(spec);
  EXPECT_DOUBLE_EQ(host.time.cpu_ns, 300 * kUs);
  EXPECT_DOUBLE_EQ(host.time.gpu_ns, 430 * kUs);
  EXPECT_DOUBLE_EQ(host.time.total_ns(), 430 * kUs);
  EXPECT_FALSE(host.time.is_cpu_longer());
}

// Model (2): CPU 10 (2 + 1 + 2 + 1 + 2) = 80; GPU 10 (10 + 5 + 20 + 4 + 6) = 450.
TEST(TimeModels, OnStreamTheHostOnlyEnqueues) {
  EXPECT_EQ(on_stream_time(make_exchange(kSmallExchange)), (ModeTime{80 * kUs, 450 * kUs}));
}

// 16 slots hold all 8 blocks: A 0..10, send until 15, message at 19, C until 25; B 0..20 beside them. So 45 us
// become 25.
TEST(TimeModels, AFusedKernelOverlapsItsGroups) {
  const auto fused = kernel_initiated_time(make_exchange(kSmallExchange));
  ASSERT_TRUE(fused);
  EXPECT_DOUBLE_EQ(fused->sequence_ns, 45 * kUs);
  EXPECT_DOUBLE_EQ(fused->overlap_ns, 20 * kUs);
  EXPECT_EQ(fused->time, (ModeTime{30 * kUs, 250 * kUs}));
}

TEST(TimeModels, WithoutAFusedKernelThereIsNoThirdTime) {
  ExchangeSpec spec = make_exchange(kSmallExchange);
  spec.fused.reset();
  EXPECT_FALSE(kernel_initiated_time(spec));
  EXPECT_FALSE(exchange_times(spec).of(ControlMode::Kernel));
}

// 100 blocks on 10 slots fill all of them ten times: each takes a tenth of the task's 50 us. Five blocks take 50 us
// each.
TEST(TimeModels, ATaskOfMoreBlocksThanSlotsFillsAllSlots) {
  ExchangeSpec spec;
  spec.fused = FusedKernelSpec{.sms = 5, .blocks_per_sm = 2};
  spec.inner = {{.run = {Duration{50'000}}, .blocks = 100}, {.run = {Duration{50'000}}, .blocks = 5, .times = 2}};
  EXPECT_EQ(fused_blocks(spec).inner, (std::vector<TaskBlocks>{{100, 5 * kUs}, {5, 50 * kUs}, {5, 50 * kUs}}));
}

// 11 blocks on 10 slots need two rounds of 45 us, although the task alone takes 50: no overlap, and no loss.
TEST(TimeModels, OverlapIsNeverNegative) {
  ExchangeSpec spec;
  spec.fused = FusedKernelSpec{.sms = 5, .blocks_per_sm = 2};
  spec.inner = {{.run = {Duration{50'000}}, .blocks = 11}};
  EXPECT_EQ(kernel_initiated_time(spec)->overlap_ns, 0);
  EXPECT_EQ(kernel_initiated_time(spec)->time.gpu_ns, 50 * kUs);
}

// Each mode has its own times; what is left out is as in the mode before.
TEST(TimeModels, EachModeHasItsOwnTimes) {
  const ExchangeSpec spec = make_exchange(
      "iterations: 1\n"
      "sends: [{launch: 0, run: {host: 10 us, stream: 11 us, kernel: 12 us}, enqueue: 0, send: {host: 5 us, stream: 7 "
      "us}}]\n");
  EXPECT_EQ(sums_of(spec, ControlMode::Host).run_ns, 10 * kUs);
  EXPECT_EQ(sums_of(spec, ControlMode::Host).message_ns, 5 * kUs);
  EXPECT_EQ(on_stream_time(spec).gpu_ns, 18 * kUs);
  EXPECT_EQ(sums_of(spec, ControlMode::Kernel).run_ns, 12 * kUs);
  EXPECT_EQ(sums_of(spec, ControlMode::Kernel).message_ns, 7 * kUs);
}

// `times: 3` is three tasks, in every model.
TEST(TimeModels, RepeatedTasksAreTasksOfTheirOwn) {
  ExchangeSpec repeated = make_exchange(kSmallExchange), written = repeated;
  repeated.sends[0].times = repeated.inner[0].times = repeated.receives[0].times = 3;
  written.sends.assign(3, written.sends[0]);
  written.inner.assign(3, written.inner[0]);
  written.receives.assign(3, written.receives[0]);
  EXPECT_EQ(exchange_times(repeated), exchange_times(written));
  EXPECT_EQ(sums_of(repeated, ControlMode::Host), sums_of(written, ControlMode::Host));
}

}  // namespace
}  // namespace tutti::internal
