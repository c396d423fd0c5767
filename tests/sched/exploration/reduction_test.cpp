#include "sched/exploration/reduction.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sched/exploration/exploration.hpp"
#include "sched/exploration/schedule_search.hpp"
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

constexpr std::int64_t kEnough = 10'000'000;

ReducedSearch reduced(JobSequence sequence) {
  StepBudget budget(kEnough);
  return search_reduced(sequence, budget);
}

ReducedSearch bounded(JobSequence sequence) {
  StepBudget budget(kEnough);
  return bound_all(sequence, budget);
}

/// Job sets in which many jobs are ready at once, at loads from light to too heavy.
Jobs jittered_jobs(Dice& dice) {
  const std::int64_t count = dice.roll(2, 9);
  const std::int64_t span = dice.roll(2, 5 * count);
  const std::int64_t jitter = dice.roll(0, 8);
  const std::int64_t cost = dice.roll(1, 6);
  const std::int64_t slack = dice.roll(0, 4 * count);
  const std::int64_t policy = dice.roll(0, 2);
  Jobs jobs;
  for (std::int64_t i = 0; i < count; ++i) {
    JobTiming& made = jobs.emplace_back();
    made.earliest = Duration{dice.roll(0, span)};
    made.latest = made.earliest + Duration{std::max<std::int64_t>(0, dice.roll(-2, jitter))};
    made.most = Duration{dice.roll(0, cost)};
    made.least = Duration{dice.roll(0, made.most.count())};
    made.deadline = made.latest + made.most + Duration{dice.roll(0, slack)};
    made.priority = policy == 0 ? made.deadline.count() : dice.roll(0, policy == 1 ? 2 : 20);
    made.task = dice.roll(0, 2);
    made.id = i;
  }
  return jobs;
}

/// Periodic sets with offsets and jitter up to the period.
Tasks jittered_tasks(Dice& dice) {
  constexpr std::int64_t kPeriods[] = {4, 6, 8, 12, 24};
  Tasks tasks;
  for (std::int64_t count = dice.roll(1, 4); count > 0; --count) {
    const std::int64_t period = kPeriods[dice.roll(0, 4)];
    const std::int64_t wcet = dice.roll(0, 3);
    const std::int64_t jitter = dice.roll(0, 2) == 0 ? 0 : dice.roll(0, period / 2);
    const std::int64_t offset = dice.roll(0, 9);
    const std::int64_t deadline = dice.roll(wcet + 2, 2 * period + 4);
    tasks.push_back(periodic(wcet, period, offset, dice.roll(0, wcet), deadline, jitter));
  }
  return tasks;
}

/// Each range of the exact search lies in that of the bounds.
void expect_inside(const SearchResult& exact, const SearchResult& bounds) {
  ASSERT_GE(bounds.finishes.size(), exact.finishes.size());
  for (std::size_t i = 0; i < exact.finishes.size(); ++i) {
    ASSERT_LE(bounds.finishes[i].first, exact.finishes[i].first) << i;
    ASSERT_GE(bounds.finishes[i].last, exact.finishes[i].last) << i;
  }
}

/// The set of jobs that run next from the start on, whatever their order.
std::vector<std::uint32_t> reduction_at_start(const Jobs& jobs) {
  JobSequence sequence(jobs);
  StepBudget budget(kEnough);
  StateLevel level;
  level.add_root();
  NextJobs next(sequence);
  Reduction reduction(sequence, budget);
  std::vector<NextJob> seeds;
  next.find(level[0], level.finished(0));
  next.for_each([&](const NextJob& each) { return seeds.push_back(each), true; });
  EXPECT_EQ(reduction.find(level[0], level.finished(0), seeds, 100), Reduction::Result::Closed);
  return reduction.positions();
}

// Two jobs of 2 to 3, released from 0 to 1: they may start from 0 on, and the second at 1 + 3 = 4 at the latest. A
// third of lowest priority finds the machine idle before 1 alone, where one of the two is surely there; a more urgent
// one may come between the two until 4.
TEST(Reduction, HoldsTheJobsThatMayComeBetween) {
  const JobTiming first = job(0, 0, {0, 1}, {2, 3}, 99, 1);
  const JobTiming second = job(1, 0, {0, 1}, {2, 3}, 99, 2);
  using Positions = std::vector<std::uint32_t>;
  EXPECT_EQ(reduction_at_start({first, second, job(2, 0, {1, 9}, {1, 1}, 99, 3)}), (Positions{0, 1}));
  EXPECT_EQ(reduction_at_start({first, second, job(2, 0, {0, 9}, {1, 1}, 99, 3)}), (Positions{0, 1, 2}));
  EXPECT_EQ(reduction_at_start({first, second, job(2, 0, {5, 9}, {1, 1}, 99, 0)}), (Positions{0, 1}));
  EXPECT_EQ(reduction_at_start({first, second, job(2, 0, {4, 9}, {1, 1}, 99, 0)}), (Positions{0, 1, 2}));
  // Of equal priority the smaller task goes first.
  EXPECT_EQ(reduction_at_start({first, second, job(2, 0, {4, 9}, {1, 1}, 99, 2)}), (Positions{0, 1}));
  EXPECT_EQ(reduction_at_start({first, second, job(0, 1, {4, 9}, {1, 1}, 99, 2)}), (Positions{0, 1, 2}));
}

// Three jobs of 1 to 2, released from 0 to 2, and one far behind: one edge for the six orders, one for the last. The
// first in priority waits at most for one that started just before 2: it is over before 2 + 2 + 2. The second waits for
// both: before 8. The third is the last of 2 + 2 + 2 + 2.
TEST(Reduction, FollowsThreeJobsByOneEdge) {
  Jobs jobs;
  for (int i = 0; i < 3; ++i) jobs.push_back(job(i, 0, {0, 2}, {1, 2}, 8, i));
  jobs.push_back(job(3, 0, {20, 21}, {1, 1}, 22, 0));
  const ReducedSearch search = reduced(JobSequence(jobs));
  ASSERT_EQ(search.result.end, SearchEnd::AllInTime);
  EXPECT_FALSE(search.result.exact);
  EXPECT_EQ(search.result.states, 3U);
  const Exploration found = explore(jobs, {.visits = 1});
  ASSERT_EQ(found.answer, Answer::Schedulable);
  EXPECT_FALSE(found.exact);
  const auto range = [](int best, int worst) { return ResponseRange{Duration{best}, Duration{worst}}; };
  EXPECT_EQ(found.responses, (std::vector{range(1, 6), range(1, 8), range(1, 8), range(1, 2)}));
  EXPECT_TRUE(explore(jobs).exact);
  EXPECT_EQ(explore(jobs).responses, found.responses);
  // Due 1 ns earlier each, a run that is late is found, not a bound that is.
  for (JobTiming& each : jobs) each.deadline -= Duration{1};
  const Exploration late = explore(jobs, {.visits = 1});
  ASSERT_EQ(late.answer, Answer::NotSchedulable);
  EXPECT_TRUE(late.exact);
  EXPECT_GT(late.late_run.back().finish, late.late_run.back().due);
}

// 30 tasks with half a period of jitter: every job of a hyperperiod may run before or behind many others.
TEST(Reduction, ReachesThirtyTasksWithHalfAPeriodOfJitter) {
  constexpr std::int64_t kPeriods[] = {1000, 2000, 5000, 10'000};
  Tasks tasks;
  for (std::int64_t i = 0; i < 30; ++i) {
    const std::int64_t period = kPeriods[i % 4];
    tasks.push_back(periodic(40, period, 0, 20, period + period / 2, period / 2));  // 0.54 in all
  }
  const ExplorationLimits few{.visits = 100'000};
  const Exploration found = explore(tasks, Policy::Edf, few);
  ASSERT_EQ(found.answer, Answer::Schedulable) << found.reason;
  EXPECT_FALSE(found.exact);
  EXPECT_EQ(explore(tasks, Policy::Edf, {.visits = 100'000, .reduced_visits = 0}).answer, Answer::Unknown);
  for (TaskTiming& task : tasks) task.deadline = task.jitter + Duration{300};
  const Exploration late = explore(tasks, Policy::Edf, few);
  ASSERT_EQ(late.answer, Answer::NotSchedulable);
  EXPECT_FALSE(late.late_run.empty());
}

/// The run happens: replayed with its releases and costs it does the same, and its last job is late.
void expect_to_happen(const std::vector<SearchedRun>& run, const JobSequence& sequence, const Jobs& jobs) {
  std::vector<HalfNs> releases;
  std::vector<HalfNs> costs;
  for (const JobTiming& job : jobs) {
    releases.push_back(2 * job.latest.count());
    costs.push_back(2 * job.most.count());
  }
  // A job that has not run by the end is released behind it, or as late as it can be.
  for (const SearchedRun& played : run) {
    const SequencedJob& job = sequence[played.position];
    ASSERT_TRUE(job.earliest <= played.release && played.release <= job.latest && played.release <= played.start);
    ASSERT_TRUE(job.least <= played.finish - played.start && played.finish - played.start <= job.most);
    releases[job.source] = played.release;
    costs[job.source] = played.finish - played.start;
  }
  const std::vector<HalfNs> finishes = oracle::naive_schedule(jobs, releases, costs);
  for (const SearchedRun& played : run) ASSERT_EQ(finishes[sequence[played.position].source], played.finish);
  ASSERT_GT(run.back().finish, sequence[run.back().position].due);
}

/// How often each search said what.
struct Tally {
  int in_time = 0, late = 0;
  int reduced_in_time = 0, bounded_in_time = 0, played_late = 0;
  int tight = 0, jobs = 0;
};

// The exact search is held against every schedule elsewhere.
TEST(Reduction, NeverContradictsTheExactSearch) {
  Dice dice(41);
  Tally tally;
  for (int round = 0; round < test::rounds(10'000); ++round) {
    const Jobs jobs = jittered_jobs(dice);
    SCOPED_TRACE(::testing::PrintToString(jobs));
    JobSequence sequence(jobs);
    const SearchResult exact = search_graph(sequence, StepBudget(kEnough));
    ASSERT_TRUE(exact.end == SearchEnd::AllInTime || exact.end == SearchEnd::Late);
    const bool in_time = exact.end == SearchEnd::AllInTime;
    const ReducedSearch one_edge = reduced(sequence);
    const ReducedSearch all = bounded(sequence);
    for (const ReducedSearch* search : {&one_edge, &all}) {
      if (search->result.end != SearchEnd::AllInTime) continue;
      ASSERT_TRUE(in_time);
      expect_inside(exact, search->result);
      if (HasFatalFailure()) return;
    }
    ++(in_time ? tally.in_time : tally.late);
    tally.reduced_in_time += one_edge.result.end == SearchEnd::AllInTime ? 1 : 0;
    tally.bounded_in_time += all.result.end == SearchEnd::AllInTime ? 1 : 0;
    std::vector<LateSuspect> suspects = one_edge.suspects;
    suspects.insert(suspects.end(), all.suspects.begin(), all.suspects.end());
    const std::vector<SearchedRun> played = play_suspects(sequence, suspects);
    if (played.empty()) continue;
    ++tally.played_late;
    expect_to_happen(played, sequence, jobs);
    if (HasFatalFailure()) return;
  }
  // Nearly all that is in time is shown to be, and nearly all that is late is played.
  EXPECT_GE(tally.in_time, test::rounds(4'000));
  EXPECT_GE(tally.late, test::rounds(4'000));
  EXPECT_GE(100 * tally.reduced_in_time, 99 * tally.in_time);
  EXPECT_GE(100 * tally.bounded_in_time, 90 * tally.in_time);
  EXPECT_GE(100 * tally.played_late, 90 * tally.late);
}

TEST(Reduction, NeverContradictsTheExactSearchOfPeriodicTasks) {
  constexpr int kRounds = test::kSanitized ? 25 : 1'500;
  Dice dice(42);
  Tally tally;
  for (int round = 0; round < kRounds; ++round) {
    const Tasks tasks = jittered_tasks(dice);
    for (const Policy policy : {Policy::Edf, Policy::Rm}) {
      SCOPED_TRACE(std::string(to_string(policy)) + " " + ::testing::PrintToString(tasks));
      const auto repetition = repetition_of(tasks, 1000);
      ASSERT_TRUE(repetition.has_value());
      const auto ask = [&](std::int64_t reduced_visits) {
        return explore(tasks, policy, {.visits = reduced_visits == 0 ? kEnough : 1, .reduced_visits = reduced_visits});
      };
      const Exploration exact = ask(0);
      if (exact.answer == Answer::Unknown) continue;
      JobSequence sequence(tasks, policy, *repetition);
      const bool in_time = exact.answer == Answer::Schedulable;
      ++(in_time ? tally.in_time : tally.late);
      StepBudget budget(1'000'000);
      const ReducedSearch one_edge = search_reduced(sequence, budget);
      const ReducedSearch all = bounded(JobSequence(tasks, policy, *repetition));
      for (const ReducedSearch* search : {&one_edge, &all}) {
        if (search->result.end != SearchEnd::AllInTime) continue;
        ASSERT_TRUE(in_time);
        ++(search == &all ? tally.bounded_in_time : tally.reduced_in_time);
      }
      const Exploration found = ask(1'000'000);
      if (found.answer == Answer::Unknown || found.exact) {
        ASSERT_TRUE(found.answer == Answer::Unknown || found.answer == exact.answer);
        tally.played_late += found.answer == Answer::NotSchedulable ? 1 : 0;
        continue;
      }
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        ASSERT_LE(found.responses[i].best, exact.responses[i].best);
        ASSERT_GE(found.responses[i].worst, exact.responses[i].worst);
        tally.tight += found.responses[i].worst == exact.responses[i].worst ? 1 : 0;
        ++tally.jobs;
      }
    }
  }
  EXPECT_GE(tally.in_time, 4 * kRounds / 3);
  EXPECT_GE(100 * tally.reduced_in_time, 90 * tally.in_time);
  EXPECT_GE(100 * tally.bounded_in_time, 80 * tally.in_time);
  EXPECT_GE(100 * tally.played_late, 50 * tally.late);
  EXPECT_GE(100 * tally.tight, 90 * tally.jobs);
}

}  // namespace
}  // namespace tutti::internal
