#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "tests/runtime/task_runs.hpp"
#include "tests/support/largest.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

using test::first_jobs;
using test::task;
using test::with_deadline;
using test::with_offset;

using Counts = std::vector<std::uint64_t>;

using test::kLargest;

Counts jobs(const std::vector<Task>& tasks, const RunOptions& options = {}) {
  return jobs_per_task({{}, Policy::Edf, tasks}, options).value();
}

RunOptions arrivals_before(std::int64_t end) {
  RunOptions options;
  options.arrivals_before = Duration{end};
  return options;
}

// lcm(4, 6) = 12: 3 and 2 arrivals; 12 itself belongs to the next hyperperiod.
TEST(JobsPerTask, CoversOneHyperperiod) {
  EXPECT_EQ(jobs({task("a", 1, 4), task("b", 1, 6)}), (Counts{3, 2}));
  EXPECT_EQ(jobs({task("a", 1, 7)}), (Counts{1}));
}

// One hyperperiod of 12 behind the last offset, 5: before 17. a arrives at 0, 4, 8, 12, 16; b at 5, 11.
TEST(JobsPerTask, CountsTheHyperperiodFromTheLastOffset) {
  EXPECT_EQ(jobs({task("a", 1, 4), with_offset(task("b", 1, 6), 5)}), (Counts{5, 2}));
}

// 1 ns against 1 s has 10^9 arrivals; the default stops at 1000: at 0 both arrive, then a alone.
TEST(JobsPerTask, StopsAtAThousandByDefault) {
  EXPECT_EQ(jobs({task("a", 0, 1), task("b", 1, 1'000'000'000)}), (Counts{999, 1}));
}

// By arrival, ties by the order of the file: a0 b0 a4 b6 a8 | a12.
TEST(JobsPerTask, TakesTheFirstArrivals) {
  const std::vector<Task> tasks{task("a", 1, 4), task("b", 1, 6)};
  EXPECT_EQ(jobs(tasks, first_jobs(0)), (Counts{0, 0}));
  EXPECT_EQ(jobs(tasks, first_jobs(1)), (Counts{1, 0}));
  EXPECT_EQ(jobs(tasks, first_jobs(2)), (Counts{1, 1}));
  EXPECT_EQ(jobs(tasks, first_jobs(5)), (Counts{3, 2}));
  EXPECT_EQ(jobs(tasks, first_jobs(6)), (Counts{4, 2}));
}

TEST(JobsPerTask, TakesTheArrivalsBeforeAnInstant) {
  const std::vector<Task> tasks{task("a", 1, 4), with_offset(task("b", 1, 6), 3)};  // a: 0 4 8; b: 3 9
  EXPECT_EQ(jobs(tasks, arrivals_before(0)), (Counts{0, 0}));
  EXPECT_EQ(jobs(tasks, arrivals_before(3)), (Counts{1, 0}));
  EXPECT_EQ(jobs(tasks, arrivals_before(4)), (Counts{1, 1}));
  EXPECT_EQ(jobs(tasks, arrivals_before(9)), (Counts{3, 1}));
  EXPECT_EQ(jobs(tasks, arrivals_before(10)), (Counts{3, 2}));
}

TEST(JobsPerTask, KeepsToBothLimits) {
  RunOptions options = arrivals_before(100);
  options.jobs = 3;
  EXPECT_EQ(jobs({task("a", 1, 10)}, options), (Counts{3}));
  options.jobs = 30;
  EXPECT_EQ(jobs({task("a", 1, 10)}, options), (Counts{10}));
}

TEST(JobsPerTask, RefusesMoreRecordsThanItCanKeep) {
  const TaskSet set{{}, Policy::Edf, {task("a", 0, 1)}};
  const std::array options{arrivals_before(static_cast<std::int64_t>(kMostJobs) + 1), first_jobs(kMostJobs + 1),
                           first_jobs(~std::uint64_t{0})};
  for (std::size_t i = 0; i < test::rounds(options.size()); ++i) {
    const auto refused = jobs_per_task(set, options[i]);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::InvalidInput);
  }
  if (!test::kSanitized) {
    EXPECT_EQ(jobs_per_task(set, first_jobs(kMostJobs)).value(), (Counts{kMostJobs}));
  }
}

// The least common multiple of these primes is about 10^36.
TEST(JobsPerTask, TakesHyperperiodsBeyondAllTime) {
  const Counts counts =
      jobs({task("a", 1, 999'999'999'989), task("b", 1, 999'999'999'961), task("c", 1, 999'999'999'959)});
  EXPECT_EQ(counts[0] + counts[1] + counts[2], kDefaultJobs);
}

// The first job whose deadline lies beyond all time, 2^63 - 1 ns or 292 years, ends the run; where it was asked for
// there is none. a and b at 0, a at 2^62 - 1 (due 2^63 - 2); the third of a at 2^63 - 2 would be due too late.
TEST(JobsPerTask, EndsWithTime) {
  EXPECT_EQ(jobs({task("a", 1, kLargest)}), (Counts{1}));
  EXPECT_EQ(jobs({task("a", 1, kLargest)}, first_jobs(1)), (Counts{1}));
  EXPECT_EQ(jobs({task("a", 1, kLargest / 2), task("b", 1, kLargest - 1)}), (Counts{2, 1}));
  EXPECT_EQ(jobs({with_offset(task("a", 1, 10), kLargest)}), (Counts{0}));
  EXPECT_EQ(jobs({with_offset(task("a", 1, 10), kLargest - 15)}), (Counts{1}));
}

TEST(JobsPerTask, RefusesJobsThatAreDueBeyondAllTime) {
  const TaskSet set{{}, Policy::Edf, {task("a", 1, 10), with_deadline(task("far", 1, 15), kLargest)}};
  for (const RunOptions& options : {first_jobs(4), arrivals_before(20)}) {
    const auto refused = jobs_per_task(set, options);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(
        refused.error().message,
        "job 1 of task 'far' would be due more than 292 years (2^63 ns) after the start; ask for less with --jobs "
        "or --for");
  }
}

}  // namespace
}  // namespace tutti::internal
