#include "apps/lab/benches/stencil_bench.hpp"

#include <chrono>

#include <gtest/gtest.h>

#include "apps/lab/reports/stencil_report.hpp"
#include "model/control/exchange_yaml.hpp"

namespace tutti::internal {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

StencilSteps some_steps() {
  StencilSteps steps;
  steps.launch = microseconds(4), steps.synchronize = microseconds(4);
  steps.copy_calls = microseconds(4), steps.packed_calls = microseconds(2), steps.sent_calls = microseconds(3);
  steps.pack = microseconds(3), steps.inner = microseconds(20), steps.unpack = microseconds(3);
  steps.fused_pack = microseconds(4), steps.fused_inner = microseconds(22), steps.fused_unpack = microseconds(3);
  steps.message = microseconds(10), steps.event = microseconds(2);
  steps.fused_launch = microseconds(500), steps.fused_round = microseconds(6), steps.least_kernel = microseconds(2);
  steps.senders = 100, steps.unpackers = 4, steps.blocks = 105;
  return steps;
}

// One thread of the host for all GPUs: 3 launches of 4, copies of 4 and events of 2 and 3 us: 21 us. The GPU needs 3 +
// 20 + 3 and one event of 2 us: the message, 10 + 2 us, ends beside the inner work. That is 28 us, and the longer one.
TEST(StencilExchange, OnAStreamTheMessageIsBesideTheInnerWork) {
  const ExchangeSpec exchange = stencil_exchange({}, 2, some_steps(), 100);
  const auto times = exchange_times(exchange);
  EXPECT_DOUBLE_EQ(times.stream.cpu_ns, 100 * 21'000.0);
  EXPECT_DOUBLE_EQ(times.stream.gpu_ns, 100 * 28'000.0);
}

// The message of 30 us is 12 us longer than the inner work, with the event before it.
TEST(StencilExchange, OnAStreamALongMessageIsWaitedFor) {
  StencilSteps steps = some_steps();
  steps.message = microseconds(30);
  EXPECT_DOUBLE_EQ(exchange_times(stencil_exchange({}, 2, steps, 100)).stream.gpu_ns, 100 * (28'000.0 + 12'000));
}

// One launch of 500 us for each of two GPUs, once. On the blocks of the fused kernel, and without launches of their
// own, the parts take 2 + 20 + 1 us, and a round 6 us more. Packing ends at 8, when the message is there; 96 of the 100
// blocks that packed compute until 28, and the others have unpacked at 9.
TEST(StencilExchange, AFusedKernelIsLaunchedOnceForAllIterations) {
  const auto times = exchange_times(stencil_exchange({}, 2, some_steps(), 100));
  ASSERT_TRUE(times.kernel.has_value());
  EXPECT_DOUBLE_EQ(times.kernel->time.cpu_ns, 1'000'000.0);
  EXPECT_DOUBLE_EQ(times.kernel->sequence_ns, 29'000.0);
  EXPECT_DOUBLE_EQ(times.kernel->time.gpu_ns, 100 * 28'000.0);
}

// The host: launch 4, and pack 3 us until 7, wait 4 until 11; copies of 4 until 15; launch 4, inner from 19 to 39; the
// rest of the message, 10 - 4 = 6, until 25; it waits for the inner work until 39, and 4 until 43; launch 4, unpack
// until 50, wait until 54.
TEST(StencilExchange, TheHostWaitsThreeTimes) {
  const auto times = exchange_times(stencil_exchange({}, 2, some_steps(), 100));
  EXPECT_DOUBLE_EQ(times.host.time.cpu_ns, 100 * 54'000.0);
}

TEST(StencilExchange, IsAFileForAdvise) {
  for (const std::size_t gpus : {1U, 2U, 4U})
    for (const Duration inner : {Duration{}, Duration{microseconds(20)}}) {
      StencilSteps steps = some_steps();
      steps.inner = inner;
      const ExchangeSpec exchange = stencil_exchange({}, gpus, steps, 1000);
      const auto read = exchange_from(*parse_document(exchange_yaml(exchange), "written"));
      ASSERT_TRUE(read.has_value()) << read.error().message;
      EXPECT_EQ(*read, exchange);
    }
}

/// A case whose measured times are these factors of the predicted ones.
StencilCase case_with(const StencilSteps& steps, std::array<double, 3> factors) {
  StencilCase one;
  one.exchange = stencil_exchange({}, 2, steps, 100);
  one.advice = advise(one.exchange);
  for (std::size_t m = 0; m < factors.size(); ++m)
    one.times[m].median = factors[m] * *one.predicted_us(kControlModes[m]);
  return one;
}

// Errors of 0, 1/2 - 1 and 4/5 - 1: the median is 1/5. Host-driven times are the longest by far, so both signs are
// right.
TEST(StencilAgreement, CountsSignsAndTheMedianError) {
  const std::array cases{case_with(some_steps(), {1, 2, 1.25})};
  const StencilAgreement agreement = agreement_of(cases);
  EXPECT_EQ(agreement.gains, 2U);
  EXPECT_NEAR(agreement.median_error, 0.2, 1e-12);
  EXPECT_EQ(agreement.right, (cases[0].gain(ControlMode::Stream) > 0 ? 1U : 0U) + 1U);
  EXPECT_EQ(agreement_of({}), StencilAgreement{});
}

// A mode ten times as long as predicted loses what was predicted as a gain.
TEST(StencilAgreement, AGainThatIsNoneIsAWrongSign) {
  const std::array cases{case_with(some_steps(), {1, 10, 1})};
  EXPECT_EQ(agreement_of(cases).right, 1U);
}

TEST(StencilReport, SaysWhereABitDiffers) {
  std::array cases{case_with(some_steps(), {1, 1, 1})};
  cases[0].gpus = 2;
  cases[0].equal = {true, false, true};
  const Json json = stencil_json(cases, "m");
  EXPECT_EQ(json["cases"][0]["modes"][0]["equal"], true);
  EXPECT_EQ(json["cases"][0]["modes"][1]["equal"], false);
  EXPECT_EQ(json["gains_right"], 2);
  const std::string text = stencil_text(cases);
  EXPECT_EQ(text.find("NO"), text.rfind("NO"));
  EXPECT_NE(text.find("NO"), std::string::npos);
  EXPECT_NE(text.find("sign of the gain right in 2 of 2 cases; median error of a predicted time 0.0 %"),
            std::string::npos);
}

}  // namespace
}  // namespace tutti::internal
