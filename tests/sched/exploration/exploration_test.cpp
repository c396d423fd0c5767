#include "sched/exploration/exploration.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/every_schedule.hpp"
#include "tests/support/job_timings.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

using oracle::Dice;
using oracle::job;
using oracle::periodic;
using Jobs = std::vector<JobTiming>;
using Tasks = std::vector<TaskTiming>;

constexpr Policy kPolicies[] = {Policy::Edf, Policy::Rm, Policy::Dm};

/// [NB17] figure 1: nine jobs of three tasks of periods 10, 30 and 60.
Jobs figure1(std::array<int, 9> priorities) {
  Jobs jobs;
  for (int i = 0; i < 6; ++i) jobs.push_back(job(1, i + 1, {10 * i, 10 * i}, {1, 2}, 10 * (i + 1), 0));
  jobs.push_back(job(2, 7, {0, 0}, {7, 8}, 30, 0));
  jobs.push_back(job(2, 8, {30, 30}, {7, 7}, 60, 0));
  jobs.push_back(job(3, 9, {0, 0}, {3, 13}, 60, 0));
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].priority = priorities[i];
  return jobs;
}

// Figures 1 (a, b): under EDF the long job starts at 8 or 9 at the earliest (1 + 7, 1 + 8), before the second short one
// arrives at 10, and ends at 22: that one ends at 24 > 20.
TEST(Exploration, FindsThePublishedMissUnderEdf) {
  const Exploration found = explore(figure1({10, 20, 30, 40, 50, 60, 30, 60, 60}));
  ASSERT_EQ(found.answer, Answer::NotSchedulable);
  ASSERT_FALSE(found.late_run.empty());
  EXPECT_EQ(found.late_run.back().source, 1U);
  EXPECT_EQ(found.late_run.back().due, 2 * 20);
  EXPECT_TRUE(found.responses.empty());
}

// Figure 1 (c): with the long job before the middle one every deadline holds.
TEST(Exploration, FindsThePublishedFixedPrioritiesInTime) {
  const Jobs jobs = figure1({1, 2, 3, 4, 5, 6, 8, 9, 7});
  const Exploration found = explore(jobs);
  ASSERT_EQ(found.answer, Answer::Schedulable) << found.reason;
  EXPECT_EQ(found.jobs, 9U);
  EXPECT_TRUE(found.late_run.empty());
  // Short 1..2, long 3..13 (from 1 or 2): 4 to 15; then the middle one, or the second short one first from 10 on.
  EXPECT_EQ(found.responses[0], (ResponseRange{Duration{1}, Duration{2}}));
  EXPECT_EQ(found.responses[8], (ResponseRange{Duration{4}, Duration{15}}));
}

// Tasks (5, 24), (3, 24), (5, 8) with offsets 4, 1, 1 under EDF. At full cost: c 1-6, b 6-9, c 9-14, a 14-19, c 19-24,
// all in time, and then it starts again at 25. With b one shorter the machine is free at 8, where only a is there:
// a 8-13, c 13-18 > 17.
TEST(Exploration, FindsThatAJobThatEndsEarlyMakesAnotherLate) {
  Tasks tasks{periodic(5, 24, 4, 5, 24), periodic(3, 24, 1, 3, 24), periodic(5, 8, 1, 5, 8)};
  const Exploration full = explore(tasks, Policy::Edf);
  ASSERT_EQ(full.answer, Answer::Schedulable);
  EXPECT_EQ(full.responses[0].worst, Duration{15});  // 19 - 4
  EXPECT_EQ(full.responses[1].worst, Duration{8});   // 9 - 1
  EXPECT_EQ(full.responses[2].worst, Duration{7});   // 24 - 17
  tasks[1].best_case = Duration{2};
  const Exploration shorter = explore(tasks, Policy::Edf);
  ASSERT_EQ(shorter.answer, Answer::NotSchedulable);
  const auto name = [](const ExecutedJob& job) { return "abc"[job.source] + std::to_string(job.number); };
  EXPECT_EQ(describe_late_run(shorter.late_run, name),
            "c1 arrives at 9 ns, is due at 17 ns and ends at 18 ns: c0 runs from 1 ns to 6 ns, b0 to 8 ns (1 ns less "
            "than its longest), a0 to 13 ns, then it does");
}

// The blocker of 5 may start at any time before 3, where the other is surely there: that one ends before 3 + 5 + 2.
// Due at 10 it is in time; due at 9 it ends at 9.5, say. In whole ns alone the blocker starts at 2, and 9 would hold.
TEST(Exploration, TakesTimeAsDense) {
  Jobs jobs{job(0, 0, {3, 3}, {2, 2}, 10, 0), job(1, 0, {0, 4}, {5, 5}, 30, 1)};
  const Exploration fits = explore(jobs);
  ASSERT_EQ(fits.answer, Answer::Schedulable);
  EXPECT_EQ(fits.responses[0], (ResponseRange{Duration{2}, Duration{7}}));
  jobs[0].deadline = Duration{9};
  EXPECT_EQ(explore(jobs).answer, Answer::NotSchedulable);
  jobs[1].latest = Duration{2};
  EXPECT_EQ(explore(jobs).answer, Answer::Schedulable);
}

TEST(Exploration, SaysThatAnEmptySetIsSchedulable) {
  EXPECT_EQ(explore(Jobs{}).answer, Answer::Schedulable);
  EXPECT_EQ(explore(Tasks{}, Policy::Edf).answer, Answer::Schedulable);
}

// Equal priorities: the smaller task goes first, then the smaller id, wherever they stand.
TEST(Exploration, BreaksTiesByTaskAndId) {
  const Jobs jobs{job(2, 0, {0, 0}, {1, 1}, 9, 5), job(1, 8, {0, 0}, {1, 1}, 9, 5), job(1, 7, {0, 0}, {1, 1}, 9, 5)};
  const Exploration found = explore(jobs);
  ASSERT_EQ(found.answer, Answer::Schedulable);
  EXPECT_EQ(found.responses[2].worst, Duration{1});
  EXPECT_EQ(found.responses[1].worst, Duration{2});
  EXPECT_EQ(found.responses[0].worst, Duration{3});
}

/// Ties, late releases, costs of 0 and deadlines at which one ns decides.
Jobs random_jobs(Dice& dice, std::int64_t count, bool fixed) {
  Jobs jobs;
  for (std::int64_t i = 0; i < count; ++i) {
    JobTiming& made = jobs.emplace_back();
    made.earliest = Duration{dice.roll(0, fixed ? 3 * count : 8)};
    made.latest = made.earliest + Duration{fixed ? 0 : std::max<std::int64_t>(0, dice.roll(-2, 3))};
    made.most = Duration{dice.roll(0, 4)};
    made.least = fixed ? made.most : std::max(Duration{0}, made.most - Duration{dice.roll(0, 2)});
    made.deadline = made.latest + made.most + Duration{dice.roll(0, fixed ? 12 : 8)};
    made.task = dice.roll(0, 2);
    made.id = i;
  }
  const bool edf = dice.roll(0, 1) == 0;
  for (JobTiming& made : jobs) made.priority = edf ? made.deadline.count() : dice.roll(0, 2);
  return jobs;
}

/// What the finishes of the oracle say about a job.
ResponseRange response_in(const oracle::EverySchedule& truth, const Jobs& jobs, std::size_t i) {
  const HalfNs arrival = 2 * jobs[i].earliest.count();
  return {Duration{(truth.first_finish[i] - arrival) / 2}, Duration{(truth.last_finish[i] - arrival + 1) / 2}};
}

/// The run happens, and its last job is late: replayed with its releases and costs it does the same.
/// @param run  sources are positions in `jobs`
void expect_to_be_late(const std::vector<ExecutedJob>& run, const Jobs& jobs) {
  ASSERT_FALSE(run.empty());
  std::vector<HalfNs> releases;
  std::vector<HalfNs> costs;
  for (const JobTiming& job : jobs) {
    releases.push_back(2 * job.latest.count());
    costs.push_back(2 * job.most.count());
  }
  for (const ExecutedJob& executed : run) {
    const JobTiming& job = jobs[executed.source];
    ASSERT_EQ(executed.arrival, 2 * job.earliest.count());
    ASSERT_EQ(executed.due, 2 * job.deadline.count());
    releases[executed.source] = executed.release;
    ASSERT_TRUE(executed.release >= 2 * job.earliest.count() && executed.release <= 2 * job.latest.count());
    ASSERT_TRUE(executed.release <= executed.start);
    if (executed.finish == kNotYetRun) continue;
    costs[executed.source] = executed.finish - executed.start;
    ASSERT_GE(executed.finish - executed.start, 2 * job.least.count());
    ASSERT_LE(executed.finish - executed.start, 2 * job.most.count());
  }
  const ExecutedJob& late = run.back();
  const HalfNs finish = oracle::naive_schedule(jobs, releases, costs)[late.source];
  if (late.finish == kNotYetRun) {
    ASSERT_GT(late.start, late.due);
    ASSERT_GE(finish, late.start);
  } else {
    ASSERT_GT(late.finish, late.due);
    ASSERT_EQ(finish, late.finish);
  }
}

// The oracle knows no intervals; it tries every release and every cost.
TEST(Exploration, AgreesWithEverySchedule) {
  Dice dice(7);
  int in_time = 0;
  int late = 0;
  for (int round = 0; round < 1500; ++round) {
    const Jobs jobs = random_jobs(dice, dice.roll(2, 8), false);
    SCOPED_TRACE(::testing::PrintToString(jobs));
    const oracle::EverySchedule truth = oracle::play_every_schedule(jobs);
    ASSERT_TRUE(truth.complete);
    const Exploration found = explore(jobs);
    ASSERT_EQ(found.answer, truth.missed ? Answer::NotSchedulable : Answer::Schedulable);
    ++(truth.missed ? late : in_time);
    if (truth.missed) {
      expect_to_be_late(found.late_run, jobs);
    } else {
      for (std::size_t i = 0; i < jobs.size(); ++i) ASSERT_EQ(found.responses[i], response_in(truth, jobs, i)) << i;
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(in_time, 100);
  EXPECT_GE(late, 100);
}

// One schedule: what a look at every job at every step says.
TEST(Exploration, AgreesWithANaiveScheduleWhereNothingVaries) {
  Dice dice(8);
  int in_time = 0;
  for (int round = 0; round < 400; ++round) {
    const Jobs jobs = random_jobs(dice, dice.roll(1, 40), true);
    SCOPED_TRACE(::testing::PrintToString(jobs));
    std::vector<HalfNs> releases;
    std::vector<HalfNs> costs;
    for (const JobTiming& job : jobs) {
      releases.push_back(2 * job.earliest.count());
      costs.push_back(2 * job.most.count());
    }
    const std::vector<HalfNs> finishes = oracle::naive_schedule(jobs, releases, costs);
    bool missed = false;
    for (std::size_t i = 0; i < jobs.size(); ++i) missed = missed || finishes[i] > 2 * jobs[i].deadline.count();
    const Exploration found = explore(jobs);
    ASSERT_EQ(found.answer, missed ? Answer::NotSchedulable : Answer::Schedulable);
    if (missed) {
      expect_to_be_late(found.late_run, jobs);
      continue;
    }
    ++in_time;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const Duration response = Duration{finishes[i] / 2} - jobs[i].earliest;
      ASSERT_EQ(found.responses[i], (ResponseRange{response, response}));
    }
  }
  EXPECT_GE(in_time, 50);
}

/// Small sets whose deadlines are near what can be kept.
Tasks random_tasks(Dice& dice, bool fixed) {
  constexpr std::int64_t kPeriods[] = {3, 4, 6, 8, 12};
  Tasks tasks;
  for (std::int64_t count = dice.roll(1, 3); count > 0; --count) {
    const std::int64_t period = kPeriods[dice.roll(0, 4)];
    const std::int64_t wcet = dice.roll(0, 3);
    const std::int64_t best_case = fixed ? wcet : std::max<std::int64_t>(0, wcet - dice.roll(0, 2));
    const std::int64_t jitter = fixed ? 0 : std::max<std::int64_t>(0, dice.roll(-2, 2));
    tasks.push_back(periodic(wcet, period, dice.roll(0, 9), best_case, dice.roll(wcet + 2, 2 * period + 2), jitter));
  }
  return tasks;
}

/// What the oracle says about the worst response of each task, over the jobs of which it saw the end.
std::vector<std::int64_t> worst_responses(const oracle::EverySchedule& truth, const Jobs& jobs, std::size_t tasks) {
  std::vector<std::int64_t> worst(tasks, -1);
  for (std::size_t i = 0; i < jobs.size(); ++i)
    if (truth.last_finish[i] >= 0)
      worst[static_cast<std::size_t>(jobs[i].task)] = std::max(
          worst[static_cast<std::size_t>(jobs[i].task)], (truth.last_finish[i] + 1) / 2 - jobs[i].earliest.count());
  return worst;
}

/// A run of tasks, with positions among the jobs in place of tasks and numbers.
std::vector<ExecutedJob> as_positions(std::vector<ExecutedJob> run, const Jobs& jobs) {
  for (ExecutedJob& executed : run) {
    const auto same = std::ranges::find_if(jobs, [&](const JobTiming& job) {
      return job.task == static_cast<std::int64_t>(executed.source) &&
             job.id == static_cast<std::int64_t>(executed.number);
    });
    executed.source = static_cast<std::size_t>(same - jobs.begin());
  }
  return run;
}

/// The oracle over five hyperperiods behind the last offset, against the exploration that knows when to stop.
void expect_agreement(const Tasks& tasks, Policy policy, int& in_time, int& late) {
  const auto repetition = repetition_of(tasks, 1000);
  ASSERT_TRUE(repetition.has_value());
  const Jobs jobs = expand(tasks, policy, repetition->startup + 6 * repetition->per_round);
  const HalfNs until = 2 * (9 + 5 * repetition->hyperperiod.count());
  const oracle::EverySchedule truth = oracle::play_every_schedule(jobs, until);
  if (!truth.complete) return;
  const Exploration found = explore(tasks, policy);
  ASSERT_NE(found.answer, Answer::Unknown) << found.reason;
  if (found.answer == Answer::NotSchedulable) {
    if (found.late_run.back().start > until) return;  // U > 1, by little
    ASSERT_TRUE(truth.missed);
    expect_to_be_late(as_positions(found.late_run, jobs), jobs);
    ++late;
    return;
  }
  ++in_time;
  ASSERT_FALSE(truth.missed);
  const std::vector<std::int64_t> worst = worst_responses(truth, jobs, tasks.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) ASSERT_EQ(found.responses[i].worst.count(), worst[i]);
}

TEST(Exploration, AgreesWithEveryScheduleOfPeriodicTasks) {
  Dice dice(9);
  int in_time = 0;
  int late = 0;
  for (int round = 0; round < test::rounds(250); ++round) {
    const Tasks tasks = random_tasks(dice, round % 3 == 0);
    for (const Policy policy : kPolicies) {
      SCOPED_TRACE(std::string(to_string(policy)) + " " + ::testing::PrintToString(tasks));
      expect_agreement(tasks, policy, in_time, late);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GE(in_time, test::rounds(100));
  EXPECT_GE(late, test::rounds(100));
}

// (2, 4) from 0 and (2, 4) from 3 fill all of the time; the first alone leaves the machine idle from 2 to 3, once.
// After that they never wait: the response of the first stays at 2 until 4, where the second still runs from 3 to 5. By
// hand: a 0-2, b 3-5, a 5-7 (arrived at 4), b 7-9, a 9-11 (arrived at 8), ...: a responds in 3, b in 2.
TEST(Exploration, LooksBeyondTheStart) {
  const Tasks tasks{periodic(2, 4, 0, 2, 3), periodic(2, 4, 3, 2, 4)};
  const Exploration found = explore(tasks, Policy::Edf);
  ASSERT_EQ(found.answer, Answer::Schedulable);
  EXPECT_EQ(found.responses[0], (ResponseRange{Duration{2}, Duration{3}}));
  EXPECT_EQ(found.responses[1], (ResponseRange{Duration{2}, Duration{2}}));
}

// The first task takes all of the time, so that the second, of no cost, waits for ever under RM.
TEST(Exploration, FindsAJobThatNeverRuns) {
  for (const std::int64_t best_case : {4, 3}) {
    const Tasks tasks{periodic(4, 4, 0, best_case, 8), periodic(0, 8, 0, 0, 8)};
    const Exploration found = explore(tasks, Policy::Rm);
    ASSERT_EQ(found.answer, Answer::NotSchedulable);
    EXPECT_EQ(found.late_run.back().source, 1U);
    EXPECT_EQ(found.late_run.back().finish, kNotYetRun);
  }
}

// Equal sets from every order of the file: the jobs are sorted by their releases, ties by their ids.
TEST(Exploration, DoesNotDependOnTheOrderOfTheFile) {
  Dice dice(10);
  for (int round = 0; round < 100; ++round) {
    Jobs jobs = random_jobs(dice, 7, round % 2 == 0);
    const Exploration found = explore(jobs);
    std::vector<std::size_t> order{6, 3, 0, 5, 1, 4, 2};
    Jobs mixed;
    for (const std::size_t i : order) mixed.push_back(jobs[i]);
    const Exploration again = explore(mixed);
    ASSERT_EQ(found.answer, again.answer);
    if (found.answer != Answer::Schedulable) continue;
    for (std::size_t i = 0; i < order.size(); ++i) ASSERT_EQ(again.responses[i], found.responses[order[i]]);
  }
}

// 200 jobs behind one of low priority, whose window of finished jobs is longer than a machine word: it waits for all.
TEST(Exploration, KeepsLongWindowsOfFinishedJobs) {
  Jobs jobs{job(0, 0, {0, 0}, {1, 1}, 1000, 9)};
  for (int i = 0; i < 200; ++i) jobs.push_back(job(1, i, {2 * i, 2 * i + 1}, {1, 3}, 1000, 1));
  jobs[1].latest = Duration{0};
  const Exploration found = explore(jobs);
  ASSERT_EQ(found.answer, Answer::Schedulable);
  EXPECT_EQ(found.responses[0], (ResponseRange{Duration{2}, Duration{601}}));
  for (JobTiming& each : jobs) each.least = each.most, each.latest = each.earliest;
  // 200 jobs of 3 from 0 on, then the one.
  EXPECT_EQ(explore(jobs).responses[0], (ResponseRange{Duration{601}, Duration{601}}));
}

}  // namespace
}  // namespace tutti::internal
