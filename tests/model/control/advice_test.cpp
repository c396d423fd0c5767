#include "model/control/advice.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>

#include <gtest/gtest.h>

#include "tests/model/control/exchange_texts.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

using test::kSmallExchange;
using test::kUs;
using test::make_exchange;
using test::Random;

constexpr std::size_t kRandomExchanges = test::rounds(5000U);

// The times are those of the tests of TimeModels: host 500 us, stream 450, kernel 250.
// C1: 2 + 1 + 2 + 1 + 2 < 10 + 5 + 20 + 4 + 6. C2: 10 (5 + 4) <= 10 (50 - 36).
TEST(Advice, HasEveryConditionWithItsNumbers) {
  const Advice advice = advise(make_exchange(kSmallExchange));
  EXPECT_EQ(advice.mode, ControlMode::Kernel);
  EXPECT_FALSE(advice.reason);
  EXPECT_EQ(advice.condition(ConditionKind::C1), (Condition{ConditionKind::C1, 8 * kUs, 45 * kUs, true}));
  EXPECT_EQ(advice.condition(ConditionKind::C2), (Condition{ConditionKind::C2, 90 * kUs, 140 * kUs, true}));
  EXPECT_EQ(advice.condition(ConditionKind::Compute), (Condition{ConditionKind::Compute, 36 * kUs, 36 * kUs, true}));
  EXPECT_EQ(advice.condition(ConditionKind::C3), (Condition{ConditionKind::C3, 1, 0, true}));
  EXPECT_EQ(advice.condition(ConditionKind::Known), (Condition{ConditionKind::Known, 3, 3, true}));
  EXPECT_NEAR(*advice.gain(ControlMode::Stream), 0.1, 1e-12);
  EXPECT_NEAR(*advice.gain(ControlMode::Kernel), 0.5, 1e-12);
  EXPECT_EQ(*advice.gain(ControlMode::Host), 0);
}

TEST(Advice, IsStreamWithoutAFusedKernel) {
  ExchangeSpec spec = make_exchange(kSmallExchange);
  spec.fused.reset();
  const Advice advice = advise(spec);
  EXPECT_EQ(advice.mode, ControlMode::Stream);
  EXPECT_FALSE(advice.gain(ControlMode::Kernel));
}

// A fifth of the program at half the time: a tenth of the program.
TEST(Advice, TheProgramGainsItsShare) {
  ExchangeSpec spec = make_exchange(kSmallExchange);
  spec.share = 0.2;
  EXPECT_NEAR(*advise(spec).program_gain(ControlMode::Kernel), 0.1, 1e-12);
}

TEST(Advice, IsHostWhereARequirementFails) {
  struct Case {
    ConditionKind kind;
    std::function<void(ExchangeSpec&)> spoil;
  };
  const std::array cases{
      Case{ConditionKind::Known, [](ExchangeSpec& spec) { spec.known.sizes = false; }},
      Case{ConditionKind::Known, [](ExchangeSpec& spec) { spec.known.peers = false; }},
      Case{ConditionKind::Known, [](ExchangeSpec& spec) { spec.known.pointers = false; }},
      Case{ConditionKind::NoHostSynchronization, [](ExchangeSpec& spec) { spec.host_synchronization = true; }},
      Case{ConditionKind::AsynchronousCalls, [](ExchangeSpec& spec) { spec.asynchronous_calls = false; }},
      Case{ConditionKind::C3, [](ExchangeSpec& spec) { spec.sends.clear(), spec.receives.clear(); }}};
  for (const Case& each : cases) {
    ExchangeSpec spec = make_exchange(kSmallExchange);
    each.spoil(spec);
    const Advice advice = advise(spec);
    EXPECT_EQ(advice.mode, ControlMode::Host);
    EXPECT_EQ(advice.reason, each.kind);
    EXPECT_FALSE(advice.condition(each.kind).holds);
    EXPECT_TRUE(is_required(each.kind));
    EXPECT_TRUE(advice.gain(ControlMode::Kernel));  // the times are still predicted
  }
}

// A stream that takes 40 us for the send has 10 (40 + 4) = 440 us of messages for 140 us of idle GPU.
TEST(Advice, IsHostWhereMessagesDoNotFitIntoIdleTime) {
  ExchangeSpec spec = make_exchange(kSmallExchange);
  spec.fused.reset();
  spec.sends[0].send.stream = Duration{40'000};
  const Advice advice = advise(spec);
  EXPECT_EQ(advice.mode, ControlMode::Host);
  EXPECT_EQ(advice.reason, ConditionKind::C2);
  EXPECT_EQ(advice.condition(ConditionKind::C2).left, 440 * kUs);
  EXPECT_LT(*advice.gain(ControlMode::Stream), 0);
}

// Enqueueing is the longer side here, 8 us against 5, but the host no longer waits three times: 8 us in place of 16.
// Launch 2, run 1, wait 1 more; send 1; ...
TEST(Advice, IsByTimesWhereTheCpuIsTheLongerSide) {
  const Advice advice =
      advise(make_exchange("iterations: 1\nsynchronize_call: 2 us\n"
                           "sends: [{launch: 2 us, run: 1 us, enqueue: 1 us, send: 1 us}]\n"
                           "inner: [{launch: 2 us, run: 1 us}]\n"
                           "receives: [{enqueue: 1 us, wait: 1 us, launch: 2 us, run: 1 us}]\n"));
  EXPECT_EQ(advice.mode, ControlMode::Stream);
  EXPECT_FALSE(advice.condition(ConditionKind::C1).holds);
  EXPECT_TRUE(advice.times.stream.is_cpu_longer());
  EXPECT_DOUBLE_EQ(advice.times.stream.total_ns(), 8 * kUs);
}

ExchangeSpec random_exchange(Random& random) {
  const auto time = [&](int most) { return Duration{random.between(0, most * 1000)}; };
  const auto step = [&](int most) {
    StepTime drawn{time(most)};
    if (random.one_in(3)) drawn.stream = time(most);
    if (random.one_in(3)) drawn.kernel = time(most);
    return drawn;
  };
  ExchangeSpec spec;
  spec.iterations = random.between(1, 100);
  const int scale = random.between(1, 40);
  for (int i = random.between(0, 2); i > 0; --i)
    spec.sends.push_back({time(5), step(scale), time(5), step(10), random.between(1, 40), random.between(1, 3)});
  for (int i = random.between(0, 2); i > 0; --i)
    spec.inner.push_back({time(5), step(scale), random.between(1, 40), random.between(1, 3)});
  for (int i = random.between(0, 2); i > 0; --i)
    spec.receives.push_back({time(5), step(10), time(5), step(scale), random.between(1, 40), random.between(1, 3)});
  if (random.one_in(4)) {
    spec.synchronization = time(scale);
  } else {
    spec.synchronize_call = time(5);
  }
  if (random.one_in(4)) spec.idle = time(scale);
  if (random.one_in(2)) spec.fused = FusedKernelSpec{time(5), random.between(1, 8), random.between(2, 8)};
  if (random.one_in(8)) spec.known.sizes = false;
  return spec;
}

// The theorem at `advise`, and what the words of the answer promise.
TEST(Advice, FollowsFromConditionsAndTimes) {
  Random random(18);
  std::array<int, 3> answers{};
  int implied = 0;
  for (std::size_t round = 0; round < kRandomExchanges; ++round) {
    const ExchangeSpec spec = random_exchange(random);
    const Advice advice = advise(spec);
    ++answers[static_cast<std::size_t>(advice.mode)];
    const double host = advice.times.host.time.total_ns(), chosen = advice.times.of(advice.mode)->total_ns();
    const auto holds = [&](ConditionKind kind) { return advice.condition(kind).holds; };
    if (holds(ConditionKind::C1) && holds(ConditionKind::Compute) && holds(ConditionKind::C2)) {
      ++implied;
      EXPECT_LE(advice.times.stream.total_ns(), host * (1 + 1e-12));
    }
    EXPECT_EQ(advice.times.stream.is_cpu_longer() || advice.times.stream.cpu_ns == advice.times.stream.gpu_ns,
              !holds(ConditionKind::C1));
    const bool possible = std::ranges::all_of(
        advice.conditions, [](const Condition& each) { return each.holds || !is_required(each.kind); });
    if (advice.mode != ControlMode::Host) {
      EXPECT_TRUE(possible);
      EXPECT_LT(chosen, (1 - kLeastModeGain) * host);
      EXPECT_FALSE(advice.reason);
    } else {
      if (possible) {
        EXPECT_GE(advice.times.stream.total_ns(), (1 - kLeastModeGain) * host);
      }
      EXPECT_EQ(advice.reason.has_value(), !std::ranges::all_of(advice.conditions, &Condition::holds));
    }
    // No possible mode is `kLeastModeGain` shorter than the chosen one.
    if (const auto kernel = advice.times.of(ControlMode::Kernel); kernel && possible) {
      EXPECT_GE(kernel->total_ns(), (1 - kLeastModeGain) * chosen * (1 - 1e-12));
      EXPECT_GE(advice.times.kernel->overlap_ns, 0);
      EXPECT_LE(advice.times.kernel->overlap_ns, advice.times.kernel->sequence_ns);
    }
  }
  for (const int count : answers) EXPECT_GT(count, 0);
  EXPECT_GT(implied, 0);
}

}  // namespace
}  // namespace tutti::internal
