#include "sched/scenario.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "tests/support/task_timings.hpp"

namespace tutti {
namespace {

using oracle::Dice;
using oracle::implicit;
using oracle::timing;
using Tasks = std::vector<TaskTiming>;

constexpr Policy kPolicies[] = {Policy::Edf, Policy::Rm, Policy::Dm, Policy::Given};

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
  for (const Policy policy : kPolicies) {
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

// Times in tens, so that a blocker that starts 1 ns before costs no whole unit: every refusal is shown.
TEST(Scenario, ShowsEveryRefusalOfRandomSets) {
  Dice dice(5);
  int refused = 0;
  for (int round = 0; round < 600; ++round) {
    Tasks tasks = oracle::random_timings(
        dice,
        {.tasks_max = 4, .wcet_max = 5, .period_max = 12, .deadline_max = 20, .jitter_max = round % 2 == 0 ? 0 : 4});
    for (TaskTiming& task : tasks)
      for (Duration* time : {&task.wcet, &task.period, &task.deadline, &task.jitter}) *time *= 10;
    for (const Policy policy : kPolicies) {
      const auto said = verdicts(tasks, policy);
      const auto shown = counter_example(tasks, policy, said);
      ASSERT_EQ(shown.has_value(), is_refused(said)) << ::testing::PrintToString(tasks) << to_string(policy);
      if (!shown) continue;
      ++refused;
      expect_allowed(tasks, *shown);
      EXPECT_TRUE(first_miss(tasks, policy, *shown).has_value());
    }
  }
  EXPECT_GT(refused, 200);
}

}  // namespace
}  // namespace tutti
