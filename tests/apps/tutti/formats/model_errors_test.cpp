#include "apps/tutti/formats/model_errors.hpp"

#include <utility>

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

RecordedJob ran(std::uint32_t task, std::int64_t start, std::int64_t finish, std::uint32_t partition = 0) {
  RecordedJob job{.partition = partition, .entry = {.task = TaskId(task)}};
  job.entry.start = Duration{start};
  job.entry.finish = Duration{finish};
  return job;
}

ModelErrors of_two_tasks() { return ModelErrors({Duration{100}, Duration{50}}); }

// Planned 100: 102 is 2 % longer, 94 is 6 % shorter, 101 is 1 % longer. The mean is -3 % / 3.
TEST(ModelErrors, AreSharesOfThePlannedLength) {
  ModelErrors errors = of_two_tasks();
  EXPECT_FALSE(errors.of_tasks()[0].mean());
  EXPECT_FALSE(errors.of_tasks()[0].worst());
  for (const auto& [start, finish] : {std::pair(0, 102), std::pair(200, 294), std::pair(300, 401)})
    errors.see(ran(0, start, finish));
  EXPECT_NEAR(errors.of_tasks()[0].mean().value(), -0.01, 1e-12);
  EXPECT_NEAR(errors.of_tasks()[0].worst().value(), -0.06, 1e-12);
  EXPECT_FALSE(errors.of_tasks()[1].mean());
}

TEST(ModelErrors, OfJobsAsPlannedAreZero) {
  ModelErrors errors = of_two_tasks();
  errors.see(ran(1, 7, 57));
  EXPECT_EQ(errors.of_tasks()[1].mean(), 0.0);
  EXPECT_EQ(errors.of_tasks()[1].worst(), 0.0);
}

// A job from 0 to 150 has one from 40 to 90 in it, which ends first: it is longer than planned by the other, and the
// other is as planned. One that starts where it ends is behind it.
TEST(ModelErrors, LeaveOutJobsThatOthersInterrupted) {
  ModelErrors errors = of_two_tasks();
  errors.see(ran(1, 40, 90));
  errors.see(ran(0, 0, 150));
  EXPECT_FALSE(errors.of_tasks()[0].mean());
  EXPECT_EQ(errors.of_tasks()[1].mean(), 0.0);
  errors.see(ran(0, 150, 250));
  EXPECT_EQ(errors.of_tasks()[0].mean(), 0.0);
}

TEST(ModelErrors, CompareJobsOfOnePartitionAlone) {
  ModelErrors errors = of_two_tasks();
  errors.see(ran(1, 40, 90, 1));
  errors.see(ran(0, 0, 110, 0));
  EXPECT_NEAR(errors.of_tasks()[0].mean().value(), 0.1, 1e-12);
}

TEST(ModelErrors, AreOfJobsThatCompleted) {
  ModelErrors errors = of_two_tasks();
  RecordedJob job = ran(0, 0, 30);
  job.entry.verdict = JobVerdict::Aborted;
  errors.see(job);
  job.entry.start.reset();
  errors.see(job);
  EXPECT_FALSE(errors.of_tasks()[0].mean());
}

TEST(ModelErrors, NeedAPlan) {
  for (const auto predicted : {std::optional<Duration>{}, std::optional(Duration{0})}) {
    ModelError error(predicted);
    error.add(Duration{5});
    EXPECT_FALSE(error.mean());
    EXPECT_FALSE(error.worst());
  }
}

}  // namespace
}  // namespace tutti::internal
