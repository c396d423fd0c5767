#include "sched/exploration/job_set.hpp"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

TaskTiming task_at(std::int64_t wcet, std::int64_t period, std::int64_t deadline, std::int64_t offset = 0,
                   std::int64_t best_case = 0, std::int64_t jitter = 0) {
  return {Duration{wcet},   Duration{period},    Duration{deadline}, Duration{jitter}, 0,
          Duration{offset}, Duration{best_case}, Arrivals::Periodic};
}

// a at 1, 5, 9, ...; b at 0, 6, 12, ...: 0 b, 1 a, 5 a, 6 b, 9 a, 12 b, 13 a.
TEST(JobSet, ExpandsInTheOrderOfArrivals) {
  const std::vector<TaskTiming> tasks{task_at(2, 4, 3, 1, 1, 2), task_at(1, 6, 6)};
  const auto jobs = expand(tasks, Policy::Edf, 7);
  ASSERT_EQ(jobs.size(), 7U);
  EXPECT_EQ(jobs[0], (JobTiming{Duration{0}, Duration{0}, Duration{0}, Duration{1}, Duration{6}, 6, 1, 0}));
  EXPECT_EQ(jobs[1], (JobTiming{Duration{1}, Duration{3}, Duration{1}, Duration{2}, Duration{4}, 4, 0, 0}));
  EXPECT_EQ(jobs[2], (JobTiming{Duration{5}, Duration{7}, Duration{1}, Duration{2}, Duration{8}, 8, 0, 1}));
  EXPECT_EQ(jobs[6].earliest, Duration{13});
  EXPECT_EQ(jobs[6].id, 3);
}

// Both arrive at 0: the earlier in the file stands first.
TEST(JobSet, GivesPrioritiesByPolicy) {
  const std::vector<TaskTiming> tasks{task_at(1, 10, 7), task_at(1, 5, 9)};
  for (const auto& [policy, first, second] : {std::tuple{Policy::Edf, 7, 9}, {Policy::Rm, 10, 5}, {Policy::Dm, 7, 9}}) {
    const auto jobs = expand(tasks, policy, 3);
    EXPECT_EQ(jobs[0].priority, first);
    EXPECT_EQ(jobs[1].priority, second);
    EXPECT_EQ(jobs[2].priority, policy == Policy::Edf ? 14 : second);  // of the second task, at 5
  }
}

TEST(JobSet, OfNoTasksIsEmpty) { EXPECT_TRUE(expand({}, Policy::Edf, 5).empty()); }

// lcm(4, 6) = 12: 3 + 2 jobs. Before the offset of 7: 0 and 4 of the first.
TEST(JobSet, KnowsHowItRepeats) {
  const std::vector<TaskTiming> tasks{task_at(1, 4, 4), task_at(1, 6, 6, 7)};
  const auto repetition = repetition_of(tasks, 100);
  ASSERT_TRUE(repetition.has_value());
  EXPECT_EQ(repetition->hyperperiod, Duration{12});
  EXPECT_EQ(repetition->per_round, 5U);
  EXPECT_EQ(repetition->startup, 2U);
  EXPECT_FALSE(repetition_of(tasks, 4).has_value());
}

// The last arrival in reach is the largest multiple of the period below 2^62: 0, 1 and 2 times it, then none.
TEST(JobSet, EndsWhereTimesLeaveWhatIsInReach) {
  const std::int64_t third = kTimeInReach.count() / 2;
  const std::vector<TaskTiming> tasks{task_at(1, third, third)};
  ASSERT_TRUE(in_reach(tasks));
  EXPECT_EQ(expand(tasks, Policy::Edf, 10).size(), 3U);
  EXPECT_FALSE(in_reach(std::vector{task_at(1, std::numeric_limits<std::int64_t>::max(), 1)}));
}

}  // namespace
}  // namespace tutti::internal
