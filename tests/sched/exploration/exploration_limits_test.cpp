#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sched/exploration/exploration.hpp"
#include "tests/support/job_timings.hpp"
#include "tests/support/largest.hpp"

namespace tutti::internal {
namespace {

using oracle::job;
using oracle::periodic;
using Jobs = std::vector<JobTiming>;
using Tasks = std::vector<TaskTiming>;

using test::kLargest;

TEST(ExplorationLimits, RefusesNumbersOutOfReachInWords) {
  const Duration far{kLargest};
  JobTiming late = job(0, 0, {0, 0}, {1, 1}, 10, 0);
  late.earliest = late.latest = late.deadline = far;
  JobTiming heavy = job(0, 1, {0, 1}, {1, 1}, 10, 0);
  heavy.most = far;
  for (const Jobs& jobs : {Jobs{late}, Jobs{heavy}, Jobs(3, heavy)}) {
    const Exploration found = explore(jobs);
    EXPECT_EQ(found.answer, Answer::Unknown);
    EXPECT_NE(found.reason.find("146 years"), std::string::npos) << found.reason;
  }
  // A deadline may be as far as it likes.
  JobTiming patient = job(0, 0, {0, 1}, {1, 2}, 10, 0);
  patient.deadline = far;
  EXPECT_EQ(explore(Jobs{patient}).answer, Answer::Schedulable);
  EXPECT_EQ(explore(Tasks{periodic(1, 4, 0, 1, 4), periodic(1, 4, kLargest, 1, 4)}, Policy::Edf).answer,
            Answer::Unknown);
}

// Coprime periods near 2^40: their product is beyond 2^62.
TEST(ExplorationLimits, RefusesHyperperiodsOutOfReachInWords) {
  const std::int64_t period = std::int64_t{1} << 40;
  const Exploration found = explore(Tasks{periodic(1, period, 0, 1, 9), periodic(1, period - 1, 0, 1, 9)}, Policy::Edf);
  EXPECT_EQ(found.answer, Answer::Unknown);
  EXPECT_NE(found.reason.find("hyperperiod is longer"), std::string::npos) << found.reason;
  const Exploration many = explore(Tasks{periodic(1, 3, 0, 1, 9), periodic(1, 1 << 30, 0, 1, 9)}, Policy::Edf);
  EXPECT_EQ(many.answer, Answer::Unknown);
  EXPECT_NE(many.reason.find("more than 1000000 jobs"), std::string::npos) << many.reason;
  const Exploration start = explore(Tasks{periodic(1, 3, 0, 1, 9), periodic(1, 3, 1 << 30, 1, 9)}, Policy::Edf);
  EXPECT_EQ(start.answer, Answer::Unknown);
  EXPECT_NE(start.reason.find("before the last task's offset"), std::string::npos) << start.reason;
}

TEST(ExplorationLimits, SaysWhenItsBudgetIsSpent) {
  Jobs jobs;
  for (int i = 0; i < 20; ++i) jobs.push_back(job(i, 0, {0, 50}, {1, 3}, 500, i));
  const Exploration found = explore(jobs, {.visits = 1000, .reduced_visits = 1000});
  EXPECT_EQ(found.answer, Answer::Unknown);
  EXPECT_NE(found.reason.find("too many schedules"), std::string::npos) << found.reason;
  for (JobTiming& each : jobs) each.latest = each.earliest, each.least = each.most;
  EXPECT_EQ(explore(jobs, {.visits = 19}).answer, Answer::Unknown);
  EXPECT_EQ(explore(jobs, {.visits = 20}).answer, Answer::Schedulable);
}

// 300 tasks that ask for 1.5 times the time that there is, and one that makes their hyperperiod 1,000 periods long: in
// the busy interval of each of 300,000 jobs are all later ones, which nobody waits for.
TEST(ExplorationLimits, IsSpentOnABusyIntervalWithoutAnEnd) {
  Tasks tasks(300, periodic(5, 1000, 0, 0, 1000));
  tasks.push_back(periodic(1, 1'000'000, 0, 0, 1'000'000));
  const Exploration found = explore(tasks, Policy::Edf, {.visits = 1'000'000, .reduced_visits = 0});
  EXPECT_NE(found.answer, Answer::Schedulable);
}

}  // namespace
}  // namespace tutti::internal
