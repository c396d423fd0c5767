#include "sched/tasks/ready_queue.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/task_timings.hpp"

namespace tutti::internal {
namespace {

ReadyJob job(std::size_t task, std::uint64_t index, std::int64_t deadline, std::int64_t period, std::int64_t relative) {
  return {TaskId(task), index, Duration{0}, Duration{deadline}, Duration{period}, Duration{relative}};
}

std::vector<std::size_t> order(Policy policy, const std::vector<ReadyJob>& jobs) {
  ReadyQueue queue(policy, jobs.size());
  for (const ReadyJob& job : jobs) queue.push(job);
  std::vector<std::size_t> tasks;
  while (!queue.empty()) tasks.push_back(queue.pop().task.index());
  return tasks;
}

// Task 0 is the first by relative deadline, 1 by period, 2 by absolute deadline.
TEST(ReadyQueue, ServesByThePolicysUrgency) {
  const std::vector<ReadyJob> jobs{job(0, 0, 30, 20, 5), job(1, 0, 20, 10, 15), job(2, 0, 10, 30, 10)};
  EXPECT_EQ(order(Policy::Edf, jobs), (std::vector<std::size_t>{2, 1, 0}));
  EXPECT_EQ(order(Policy::Rm, jobs), (std::vector<std::size_t>{1, 0, 2}));
  EXPECT_EQ(order(Policy::Dm, jobs), (std::vector<std::size_t>{0, 2, 1}));
}

// Given 3, 1, 2, whatever their times.
TEST(ReadyQueue, ServesGivenPrioritiesSmallestFirst) {
  std::vector<ReadyJob> jobs{job(0, 0, 1, 1, 1), job(1, 0, 3, 3, 3), job(2, 0, 2, 2, 2)};
  jobs[0].priority = 3;
  jobs[1].priority = 1;
  jobs[2].priority = 2;
  EXPECT_EQ(order(Policy::Given, jobs), (std::vector<std::size_t>{1, 2, 0}));
}

TEST(ReadyQueue, BreaksTiesByTaskThenByJob) {
  for (const Policy policy : {Policy::Edf, Policy::Rm, Policy::Dm, Policy::Given}) {
    ReadyQueue queue(policy, 4);
    const std::vector<ReadyJob> sorted{job(0, 3, 10, 10, 10), job(0, 4, 10, 10, 10), job(1, 0, 10, 10, 10),
                                       job(1, 7, 10, 10, 10)};
    for (const std::size_t i : {3U, 1U, 0U, 2U}) queue.push(sorted[i]);
    for (const ReadyJob& expected : sorted) EXPECT_EQ(queue.pop(), expected);
  }
}

// Pushes and pops in random order against a vector that is sorted anew each time.
TEST(ReadyQueue, AgreesWithASortedVector) {
  for (const Policy policy : {Policy::Edf, Policy::Rm, Policy::Dm}) {
    oracle::Dice dice(5);
    const auto key = [&](const ReadyJob& job) {
      const Duration first = policy == Policy::Edf  ? job.deadline
                             : policy == Policy::Rm ? job.period
                                                    : job.relative_deadline;
      return std::tuple(first, job.task, job.index);
    };
    constexpr std::size_t kRoom = 40;
    ReadyQueue queue(policy, kRoom);
    std::vector<ReadyJob> slow;
    for (std::uint64_t round = 0; round < 20'000; ++round) {
      if (slow.size() < kRoom && (slow.empty() || dice.roll(0, 1) == 0)) {
        slow.push_back(
            job(static_cast<std::size_t>(dice.roll(0, 5)), round, dice.roll(0, 9), dice.roll(0, 9), dice.roll(0, 9)));
        queue.push(slow.back());
        std::sort(slow.begin(), slow.end(), [&](const ReadyJob& a, const ReadyJob& b) { return key(a) < key(b); });
      } else {
        ASSERT_EQ(queue.pop(), slow.front());
        slow.erase(slow.begin());
      }
      ASSERT_EQ(queue.size(), slow.size());
      ASSERT_EQ(queue.empty(), slow.empty());
    }
  }
}

TEST(ReadyQueueDeath, TooManyJobsAndTooFewAreBugs) {
  ReadyQueue queue(Policy::Edf, 1);
  EXPECT_DEATH(queue.pop(), "there is a job to take");
  queue.push(job(0, 0, 1, 1, 1));
  EXPECT_DEATH(queue.push(job(0, 1, 1, 1, 1)), "room for every job");
}

}  // namespace
}  // namespace tutti::internal
