#include "sched/whatif/scenario.hpp"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/largest.hpp"
#include "tests/support/random.hpp"
#include "tests/support/task_timings.hpp"

namespace tutti::internal {
namespace {

using oracle::Dice;
using oracle::implicit;
using oracle::timing;
using Tasks = std::vector<TaskTiming>;

constexpr Policy kAllPolicies[] = {Policy::Edf, Policy::Rm, Policy::Dm, Policy::Given};

ScenarioJob job(std::size_t task, std::int64_t arrival, std::int64_t ready, std::int64_t takes) {
  return {TaskId{task}, Duration{arrival}, Duration{ready}, Duration{takes}};
}

std::vector<Verdict> verdicts(const Tasks& tasks, Policy policy) {
  std::vector<Verdict> verdicts;
  for (const Analysis& analysis : analyses())
    if (analysis.applies(tasks, policy)) verdicts.push_back(analysis.decide(tasks, policy));
  return verdicts;
}

bool is_refused(const std::vector<Verdict>& verdicts) {
  return std::ranges::any_of(verdicts, [](const Verdict& v) { return v.answer == Answer::NotSchedulable; });
}

// (4, 10) starts at 0, (1, 4) arrives at 1 and waits until 4: done at 5 = 1 + 4, in time. Taking 5 it is done at 6 > 5.
TEST(Scenario, MissesWhereTheBlockerIsOneTickTooLong) {
  const Tasks tasks{implicit(1, 4), implicit(5, 10)};
  const auto late = first_miss(tasks, Policy::Edf, {{job(1, 0, 0, 5), job(0, 1, 1, 1)}});
  EXPECT_EQ(late, (Miss{TaskId{0u}, 0, Duration{6}, Duration{5}}));
  EXPECT_FALSE(first_miss(tasks, Policy::Edf, {{job(1, 0, 0, 4), job(0, 1, 1, 1)}}).has_value());
}

// The second job of task 0 arrives at 4, is ready at 6 behind 0 .. 9 of task 1, due at 8.
TEST(Scenario, CountsTheJobsOfATaskAndItsReadiness) {
  const Tasks tasks{timing(1, 4, 4, 2), implicit(3, 20)};
  const auto late = first_miss(tasks, Policy::Rm, {{job(0, 0, 0, 1), job(0, 4, 6, 1), job(1, 5, 5, 4)}});
  EXPECT_EQ(late, (Miss{TaskId{0u}, 1, Duration{10}, Duration{8}}));
}

// (5, 24), (3, 24), (5, 8): in 8 the third needs 5, blocked by 5. The blocker starts at 0, the third is ready at 1 and
// done at 10, due at 9.
TEST(Scenario, ShowsWhatTheWitnessSays) {
  const Tasks tasks{implicit(5, 24), implicit(3, 24), implicit(5, 8)};
  const auto shown = counter_example(tasks, Policy::Edf, verdicts(tasks, Policy::Edf));
  EXPECT_EQ(shown, (Scenario{{job(0, 0, 0, 5), job(2, 1, 1, 5)}}));
}

// J = 3 > D = 2: arrived at 0, ready at 3, too late already.
TEST(Scenario, ShowsAJobThatIsReadyAfterItsDeadline) {
  const Tasks tasks{timing(1, 10, 2, 3)};
  for (const Policy policy : kAllPolicies) {
    const auto shown = counter_example(tasks, policy, verdicts(tasks, policy));
    EXPECT_EQ(shown, (Scenario{{job(0, 0, 3, 1)}})) << to_string(policy);
  }
}

// (2, 3) below (2, 4) blocks 2, and 2 + 2 > 3 needs a start less than 1 ns before: 0 to 2, ready at 1, 2 to 4 = 1 + 3.
TEST(Scenario, IsNotThereWhereOnlyAFractionOfATickWouldDo) {
  const Tasks tasks{timing(2, 8, 3), implicit(2, 9)};
  EXPECT_TRUE(is_refused(verdicts(tasks, Policy::Edf)));
  EXPECT_FALSE(counter_example(tasks, Policy::Edf, verdicts(tasks, Policy::Edf)).has_value());
}

TaskTiming in_regions(TaskTiming task, const std::vector<std::int64_t>& regions) {
  std::vector<Duration> each;
  for (const std::int64_t region : regions) each.emplace_back(region);
  task.regions = JobRegions::of(std::move(each));
  return task;
}

// l (2 + 4 + 1, 20) was ready at 0; h (2, 5) at 3, when its second region has just begun, until 6: 6 to 8, due at 8, in
// time. With a second region of 5 it ends at 9; had l come with h, h would go before it.
TEST(Scenario, CountsTheTimeUntilTheNextPart) {
  const Tasks tasks{implicit(2, 5), in_regions(implicit(7, 20), {2, 4, 1})};
  const Tasks longer{implicit(2, 5), in_regions(implicit(8, 20), {2, 5, 1})};
  for (const Policy policy : {Policy::Edf, Policy::Rm}) {
    EXPECT_FALSE(first_miss(tasks, policy, {{job(1, 0, 0, 7), job(0, 3, 3, 2)}}).has_value());
    EXPECT_EQ(first_miss(longer, policy, {{job(1, 0, 0, 8), job(0, 3, 3, 2)}}),
              (Miss{TaskId{0u}, 0, Duration{9}, Duration{8}}));
    EXPECT_FALSE(first_miss(longer, policy, {{job(0, 0, 0, 2), job(1, 0, 0, 8)}}).has_value());
  }
}

// Of l's 2 + 3 + 1, 4 are over in its second region: h, ready at 3, goes before the third, which takes nothing: 4 to 5,
// due at 5. When 5 are over, h ends at 6.
TEST(Scenario, EndsAJobOfPartsWhenItsTimeIsOver) {
  const Tasks tasks{implicit(1, 2), in_regions(timing(6, 20, 5), {2, 3, 1})};
  EXPECT_FALSE(first_miss(tasks, Policy::Rm, {{job(1, 0, 0, 4), job(0, 3, 3, 1)}}).has_value());
  EXPECT_EQ(first_miss(tasks, Policy::Rm, {{job(1, 0, 0, 5), job(0, 3, 3, 1)}}),
            (Miss{TaskId{0u}, 0, Duration{6}, Duration{5}}));
}

// The longest region, of 6, is the second; l comes 2 before it begins, which is 1 before h (2, 5): 8 to 10, due at 8.
TEST(Scenario, LetsTheBlockerComeToItsLongestPart) {
  const Tasks tasks{implicit(2, 5), in_regions(implicit(9, 30), {2, 6, 1})};
  for (const Policy policy : {Policy::Edf, Policy::Rm}) {
    const auto shown = counter_example(tasks, policy, verdicts(tasks, policy));
    EXPECT_EQ(shown, (Scenario{{job(1, 0, 0, 9), job(0, 3, 3, 2)}}));
    EXPECT_EQ(first_miss(tasks, policy, *shown), (Miss{TaskId{0u}, 0, Duration{10}, Duration{8}}));
  }
}

// h (30, D = 35) cannot wait for the 20 of l (9 + 20 + 9, D = 40). To be there, l comes 10 before h and is due at 40,
// before h, which is due at 45: so h waits for the last 9, too: 38 to 68.
TEST(Scenario, MissesAlsoWhereTheBlockerIsDueFirst) {
  const Tasks tasks{timing(30, 100, 35), in_regions(timing(38, 100, 40), {9, 20, 9})};
  const auto shown = counter_example(tasks, Policy::Edf, verdicts(tasks, Policy::Edf));
  EXPECT_EQ(shown, (Scenario{{job(1, 0, 0, 38), job(0, 10, 10, 30)}}));
  EXPECT_EQ(first_miss(tasks, Policy::Edf, *shown), (Miss{TaskId{0u}, 0, Duration{68}, Duration{45}}));
}

// h (1, 5) waits for a region of 2^62, behind one of 2^61. A region of 2^63 - 2 behind one of 1 would end beyond all
// time.
TEST(Scenario, DoesNotWrapNearTheLargestNumbers) {
  using test::kLargest;
  constexpr std::int64_t kPart = std::int64_t{1} << 61;
  const Tasks tasks{implicit(1, 5), in_regions(implicit(3 * kPart + 9, kLargest), {kPart, 2 * kPart, 9})};
  const Tasks longer{implicit(1, 5), in_regions(implicit(kLargest, kLargest), {1, kLargest - 1})};
  for (const Policy policy : {Policy::Edf, Policy::Rm}) {
    if (test::kSanitized && policy == Policy::Rm) continue;  // it takes seconds
    const auto shown = counter_example(tasks, policy, verdicts(tasks, policy));
    EXPECT_EQ(shown, (Scenario{{job(1, 0, 0, 3 * kPart + 9), job(0, kPart + 1, kPart + 1, 1)}}));
    EXPECT_EQ(first_miss(tasks, policy, *shown), (Miss{TaskId{0u}, 0, Duration{3 * kPart + 1}, Duration{kPart + 6}}));
    EXPECT_FALSE(counter_example(longer, policy, verdicts(longer, policy)).has_value());
  }
}

// Nobody knows where in the job the longest region is.
TEST(Scenario, IsNotThereWhereThePartsAreNotKnown) {
  Tasks tasks{implicit(2, 5), implicit(9, 30)};
  tasks[1].regions = JobRegions{Duration{6}, Duration{1}};
  EXPECT_TRUE(is_refused(verdicts(tasks, Policy::Edf)));
  EXPECT_FALSE(counter_example(tasks, Policy::Edf, verdicts(tasks, Policy::Edf)).has_value());
}

TEST(Scenario, IsNotThereForASetThatHolds) {
  const Tasks tasks{implicit(1, 4), implicit(3, 10)};
  EXPECT_FALSE(counter_example(tasks, Policy::Edf, verdicts(tasks, Policy::Edf)).has_value());
}

/// Each job at least a period behind the one before, ready within its jitter, and no longer than its Wcet.
void expect_allowed(const Tasks& tasks, const Scenario& scenario) {
  std::vector<const ScenarioJob*> last(tasks.size(), nullptr);
  for (const ScenarioJob& job : scenario.jobs) {
    const TaskTiming& task = tasks[job.task.index()];
    EXPECT_GE(job.arrival, Duration{0});
    EXPECT_LE(job.ready - job.arrival, task.jitter);
    EXPECT_GE(job.ready, job.arrival);
    EXPECT_LE(job.takes, task.wcet);
    const ScenarioJob* before = std::exchange(last[job.task.index()], &job);
    if (before != nullptr) {
      EXPECT_GE(job.arrival - before->arrival, task.period);
    }
  }
}

/// Up to four regions for most tasks, of whole tens.
void cut_at_random(Tasks& tasks, Dice& dice) {
  for (TaskTiming& task : tasks) {
    std::vector<std::int64_t> regions;
    for (std::int64_t rest = task.wcet.count() / 10; rest > 0; rest -= regions.back() / 10)
      regions.push_back(10 * (regions.size() == 3 ? rest : dice.roll(1, rest)));
    if (regions.size() > 1) task = in_regions(task, regions);
  }
}

// Times in tens, so that a blocker that starts 1 ns before costs no whole unit: every refusal is shown. In every other
// set jobs fall into regions.
TEST(Scenario, ShowsEveryRefusalOfRandomSets) {
  Dice dice(5);
  int refused = 0;
  int in_regions = 0;
  for (int round = 0; round < 1200; ++round) {
    Tasks tasks = oracle::random_timings(
        dice,
        {.tasks_max = 4, .wcet_max = 5, .period_max = 12, .deadline_max = 20, .jitter_max = round % 4 < 2 ? 0 : 4});
    for (TaskTiming& task : tasks)
      for (Duration* time : {&task.wcet, &task.period, &task.deadline, &task.jitter}) *time *= 10;
    if (round % 2 == 1) cut_at_random(tasks, dice);
    for (const Policy policy : kAllPolicies) {
      const auto said = verdicts(tasks, policy);
      const auto shown = counter_example(tasks, policy, said);
      ASSERT_EQ(shown.has_value(), is_refused(said)) << ::testing::PrintToString(tasks) << to_string(policy);
      if (!shown) continue;
      ++refused;
      in_regions += std::ranges::any_of(tasks, [](const TaskTiming& task) { return task.regions.has_value(); });
      expect_allowed(tasks, *shown);
      EXPECT_TRUE(first_miss(tasks, policy, *shown).has_value());
    }
  }
  EXPECT_GT(refused, 400);
  EXPECT_GT(in_regions, 200);
}

}  // namespace
}  // namespace tutti::internal
