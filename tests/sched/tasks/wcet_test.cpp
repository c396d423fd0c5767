#include "sched/tasks/wcet.hpp"

#include <gtest/gtest.h>

#include "tests/support/largest.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

using test::kLargest;

std::int64_t bound(std::int64_t length, double relative, std::int64_t absolute) {
  return batch_wcet(Duration{length}, {relative, Duration{absolute}}).bound().count();
}

TEST(BatchWcet, IsTheLengthWithoutAMargin) {
  for (const std::int64_t length :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{44'800'000}, std::int64_t{1} << 53, kLargest - 1}) {
    EXPECT_EQ(bound(length, 0, 0), length);
  }
}

// 1000 x 1.05 + 7 = 1057; 101 x 1.05 = 106.05, up to 107; 1 x 1.001 + 1 = 2.001, up to 3.
TEST(BatchWcet, AddsBothMarginsAndRoundsUp) {
  EXPECT_EQ(bound(1000, 0.05, 7), 1057);
  EXPECT_EQ(bound(101, 0.05, 0), 107);
  EXPECT_EQ(bound(1, 0.001, 1), 3);
  EXPECT_EQ(bound(0, 0.05, 7), 7);
  EXPECT_EQ(bound(0, 10, 0), 0);
}

// 0.1, 0.3 and 0.7 are no doubles: 10^9 x 1.1 = 1.1e9 costs no nanosecond more. 25 ms x 1.1 = 27.5 ms.
TEST(BatchWcet, TakesDecimalMarginsAsTheyAreWritten) {
  EXPECT_EQ(bound(1'000'000'000, 0.1, 0), 1'100'000'000);
  EXPECT_EQ(bound(1'000'000'000, 0.3, 0), 1'300'000'000);
  EXPECT_EQ(bound(1'000'000'000, 0.7, 0), 1'700'000'000);
  EXPECT_EQ(bound(25'000'000, 0.1, 0), 27'500'000);
}

// 0.1 is 7205759403792794 / 2^56, so a tenth of 2^61 + 1 is 2^5 x 7205759403792794 + 0.1 = 230584300921369408.1, up to
// ...409; with 2^61 + 1 = 2305843009213693953 that is 2536427310135063362. 64 digits of a `long double` would lose the
// 0.1.
TEST(BatchWcet, RoundsTheLongestTimesUpAsWell) {
  EXPECT_EQ(bound((std::int64_t{1} << 61) + 1, 0.1, 0), 2'536'427'310'135'063'362);
  EXPECT_EQ(bound(std::int64_t{1} << 61, 0x1p-62, 0), (std::int64_t{1} << 61) + 1);
  EXPECT_EQ(bound(1, 1e-30, 0), 1);
}

// 2 x (2^63 - 1) is beyond 64 bits, and so is 2^63 - 1 + 1.
TEST(BatchWcet, SaturatesAtTheLongestDuration) {
  EXPECT_EQ(bound(kLargest, 1, 0), kLargest);
  EXPECT_EQ(bound(kLargest, 0, 1), kLargest);
  EXPECT_EQ(bound(1000, 0, kLargest), kLargest);
  EXPECT_EQ(bound(1000, 1e300, kLargest), kLargest);
  EXPECT_EQ(bound(0, 0, kLargest), kLargest);
}

/// 500 bytes/ns usually, never below 250; 10 ns before every batch; 10 % and 3 ns of margin.
Topology plain_machine(const std::string& further_costs = "") {
  return test::make_machine(R"(  vertices:
    mem0: {kind: memory}
    gpu0: {kind: gpu}
  links:
    - {from: mem0, to: gpu0, bandwidth: {nominal: 500 GB/s, guaranteed: 250 GB/s}, back: 100 GB/s}
  setup: {batch: 10 ns)" + further_costs +
                            R"(}
  margin: {relative: 0.1, absolute: 3 ns}
)");
}

Batch there(const Topology& machine) {
  return test::make_batch(machine, "  - {from: mem0, to: gpu0, size: 100 kB, kernel: {time: 20 ns, worst: 90 ns}}\n");
}

Batch back(const Topology& machine) { return test::make_batch(machine, "  - {from: gpu0, to: mem0, size: 20 kB}\n"); }

Task job_of(std::vector<JobStep> steps) {
  Task task;
  task.name = "t";
  task.period = task.deadline = Duration{10'000};
  task.steps = std::move(steps);
  return task;
}

// 100 kB / 250 = 400 ns, the kernel's worst 90, set-up 10: 500. x 1.1 = 550, + 3 = 553.
// Nominal it would be 200 + 20 + 10 = 230.
TEST(JobBound, TakesGuaranteedBandwidthsAndWorstKernels) {
  const Topology m = plain_machine();
  const JobBound bound = bound_job(job_of({there(m)}), m, planners().front());
  EXPECT_EQ(bound.wcet.bound(), Duration{553});
  ASSERT_EQ(bound.plans.size(), 1U);
  ASSERT_EQ(bound.plans[0].size(), 1U);
  EXPECT_EQ(bound.plans[0][0].timeline.latency, Duration{500});
}

// 553 as above; 37 on the host, without margin; 20 kB / 100 = 200, + 10 = 210, x 1.1 = 231, + 3 = 234. In all 824.
TEST(JobBound, AddsBatchesAndHostSteps) {
  const Topology m = plain_machine();
  const JobBound bound = bound_job(job_of({there(m), HostStep{Duration{37}}, back(m)}), m, planners().front());
  EXPECT_EQ(bound.wcet.bound(), Duration{824});
  ASSERT_EQ(bound.plans.size(), 2U);
  EXPECT_EQ(bound.plans[1][0].timeline.latency, Duration{210});
}

// 553 and 234 as above. Host steps in front go with the first batch, those behind one with that.
TEST(JobBound, FallsIntoPartsThatBatchesBegin) {
  const Topology m = plain_machine();
  const auto regions = [&](std::vector<JobStep> steps) {
    return bound_job(job_of(std::move(steps)), m, planners().front()).regions;
  };
  using Regions = std::vector<Duration>;
  const HostStep host{Duration{37}};
  EXPECT_EQ(regions({there(m), host, back(m)}), (Regions{Duration{590}, Duration{234}}));
  EXPECT_EQ(regions({host, there(m), back(m), host, host}), (Regions{Duration{590}, Duration{308}}));
  EXPECT_EQ(regions({host, host}), (Regions{Duration{74}}));
  Task task = job_of({there(m), back(m)});
  task.declared_wcet = Duration{1234};
  EXPECT_EQ(bound_job(task, m, planners().front()).regions, (Regions{Duration{1234}}));
}

// 553 and 234 as above, and twice 8 for dispatching: 803. The job is held up once, by 100: 903. Where others may come
// between its regions each of them may be held up: 661 + 342 = 1003. A job without batches is not.
TEST(JobBound, AddsWhatDispatchingCostsAndWhatHoldsAJobUp) {
  const Topology m =
      plain_machine(", dispatch: {nominal: 5 ns, guaranteed: 8 ns}, job: {nominal: 0, guaranteed: 100 ns}");
  const JobBound bound = bound_job(job_of({there(m), back(m)}), m, planners().front());
  EXPECT_EQ(bound.wcet.bound(), Duration{903});
  EXPECT_EQ(bound.regions, (std::vector<Duration>{Duration{661}, Duration{342}}));
  EXPECT_EQ(wcet_of(bound, Preemption::None), bound.wcet);
  EXPECT_EQ(wcet_of(bound, Preemption::BetweenBatches).bound(), Duration{1003});
  EXPECT_EQ(bound_job(job_of({HostStep{Duration{37}}}), m, planners().front()).wcet.bound(), Duration{37});
}

TEST(JobBound, TakesADeclaredWcetAsItIs) {
  Task task = job_of({});
  task.declared_wcet = Duration{1234};
  EXPECT_EQ(bound_job(task, std::nullopt, planners().front()).wcet.bound(), Duration{1234});
  EXPECT_EQ(bound_job(task, plain_machine(), planners().front()).wcet.bound(), Duration{1234});
  task.declared_wcet = Duration{0};
  EXPECT_EQ(bound_job(task, plain_machine(), planners().front()).wcet.bound(), Duration{0});
}

TEST(JobBound, SaturatesToo) {
  const Task task = job_of({HostStep{Duration{kLargest}}, HostStep{Duration{kLargest}}, HostStep{Duration{1}}});
  EXPECT_EQ(bound_job(task, std::nullopt, planners().front()).wcet.bound(), Duration{kLargest});
}

TEST(JobBoundDeath, BatchesWithoutAMachineAreABug) {
  const Task task = job_of({there(plain_machine())});
  EXPECT_DEATH((void)bound_job(task, std::nullopt, planners().front()), "comes with its machine");
}

}  // namespace
}  // namespace tutti::internal
