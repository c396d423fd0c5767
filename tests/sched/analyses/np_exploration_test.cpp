#include "sched/analyses/np_exploration.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "sched/admission/admission.hpp"
#include "tests/support/task_timings.hpp"

namespace tutti::internal {
namespace {

using Tasks = std::vector<TaskTiming>;
using oracle::Dice;

constexpr Policy kExploredPolicies[] = {Policy::Edf, Policy::Rm, Policy::Dm};

TaskTiming strictly(TaskTiming task, std::int64_t offset, std::int64_t best_case) {
  task.offset = Duration{offset};
  task.best_case = Duration{best_case};
  task.arrivals = Arrivals::Periodic;
  return task;
}

const Analysis& row() { return *std::ranges::find(analyses(), kNpExploration, &Analysis::name); }

// The set of the issue; the numbers are worked out in exploration_test.
TEST(NpExploration, NamesTheLateJobAndWhatRanBeforeIt) {
  Tasks tasks{strictly(oracle::implicit(5, 24), 4, 5), strictly(oracle::implicit(3, 24), 1, 3),
              strictly(oracle::implicit(5, 8), 1, 5)};
  const Verdict full = np_exploration(tasks, Policy::Edf);
  EXPECT_EQ(full.answer, Answer::Schedulable);
  ASSERT_EQ(full.worst_response.size(), 3U);
  EXPECT_EQ(full.worst_response[0], Duration{15});
  tasks[1].best_case = Duration{0};  // as where nothing is declared
  const Verdict refused = np_exploration(tasks, Policy::Edf);
  EXPECT_EQ(refused.answer, Answer::NotSchedulable);
  EXPECT_TRUE(refused.reason.starts_with("job 1 of task 2 arrives at 9 ns, is due at 17 ns and ends at "))
      << refused.reason;
  ASSERT_FALSE(refused.late_run.empty());
  EXPECT_EQ(refused.late_run.back().source, 2U);
  EXPECT_TRUE(refused.worst_response.empty());
}

TEST(NpExploration, AppliesToStrictlyPeriodicSetsAlone) {
  const TaskTiming task = oracle::implicit(1, 4);
  EXPECT_FALSE(row().applies(Tasks{task}, Policy::Edf));
  EXPECT_FALSE(row().applies(Tasks{}, Policy::Edf));
  EXPECT_TRUE(row().applies(Tasks{strictly(task, 0, 0)}, Policy::Edf));
  TaskTiming late = strictly(task, 0, 0);
  late.jitter = Duration{4};
  EXPECT_TRUE(row().applies(Tasks{late}, Policy::Edf));
  late.jitter = Duration{5};  // its jobs could become ready in another order
  EXPECT_FALSE(row().applies(Tasks{late}, Policy::Edf));
}

// (5, 10) and (5, 10) half a period apart, D = 5: sporadic arrivals could meet, these never do.
TEST(NpExploration, DecidesWhereTheTestsForSporadicArrivalsCannot) {
  const Tasks tasks{strictly(oracle::timing(5, 10, 5), 0, 5), strictly(oracle::timing(5, 10, 5), 5, 5)};
  for (const Policy policy : kExploredPolicies) {
    for (const Analysis& analysis : analyses()) {
      if (!analysis.applies(tasks, policy)) continue;
      const Verdict verdict = ask(analysis, tasks, policy);
      EXPECT_EQ(verdict.answer, analysis.name == kNpExploration ? Answer::Schedulable : Answer::Unknown);
      EXPECT_FALSE(verdict.witness.has_value());
      EXPECT_EQ(verdict.reason.empty(), verdict.answer == Answer::Schedulable);
      EXPECT_EQ(verdict.exactness == Exactness::Exact, analysis.name == kNpExploration);
    }
  }
}

// What sporadic arrivals cannot miss, strictly periodic ones with any offsets and costs cannot either, nor respond
// later; and what is late here is late there.
TEST(NpExploration, NeverContradictsTheTestsForSporadicArrivals) {
  Dice dice(11);
  int proofs = 0;
  int refusals = 0;
  for (int round = 0; round < 300; ++round) {
    Tasks tasks = oracle::random_timings(dice, {.tasks_max = 4, .deadline_max = 16, .jitter_max = 2});
    for (TaskTiming& task : tasks) task = strictly(task, dice.roll(0, 12), dice.roll(0, task.wcet.count()));
    for (const Policy policy : kExploredPolicies) {
      SCOPED_TRACE(std::string(to_string(policy)) + " " + ::testing::PrintToString(tasks));
      const Verdict verdict = np_exploration(tasks, policy);
      for (const Analysis& analysis : analyses()) {
        if (analysis.name == kNpExploration || !analysis.applies(tasks, policy)) continue;
        const Verdict other = ask(analysis, tasks, policy);
        if (other.answer == Answer::Schedulable) {
          ++proofs;
          ASSERT_EQ(verdict.answer, Answer::Schedulable);
          for (std::size_t i = 0; i < other.worst_response.size(); ++i)
            ASSERT_LE(*verdict.worst_response[i], *other.worst_response[i]);
        }
        if (other.answer == Answer::NotSchedulable) {
          ++refusals;
          ASSERT_NE(verdict.answer, Answer::Schedulable);
        }
      }
    }
  }
  EXPECT_GE(proofs, 100);
  EXPECT_GE(refusals, 100);
}

TEST(NpExploration, GivesUpInWords) {
  Tasks tasks{strictly(oracle::implicit(1, (std::int64_t{1} << 40)), 0, 0),
              strictly(oracle::implicit(1, (std::int64_t{1} << 40) - 1), 0, 0)};
  const Verdict verdict = np_exploration(tasks, Policy::Edf);
  EXPECT_EQ(verdict.answer, Answer::Unknown);
  EXPECT_FALSE(verdict.reason.empty());
}

Task declared(std::string name, std::int64_t wcet, std::int64_t period, std::int64_t offset, std::int64_t best_case) {
  Task task;
  task.name = std::move(name);
  task.period = task.deadline = Duration{period};
  task.offset = Duration{offset};
  task.best_case = Duration{best_case};
  task.declared_wcet = Duration{wcet};
  return task;
}

TEST(NpExploration, DecidesAdmission) {
  TaskSet set{{},
              Policy::Edf,
              {declared("a", 5, 24, 4, 5), declared("b", 3, 24, 1, 9), declared("c", 5, 8, 1, 5)},
              Arrivals::Periodic};
  const AdmissionController controller(planners().front());
  const AdmissionVerdict admitted = controller.decide(set);
  EXPECT_EQ(admitted.answer, Answer::Schedulable);  // the best case of b counts as its wcet, 3
  EXPECT_EQ(admitted.timings[1].best_case, Duration{3});
  EXPECT_EQ(admitted.worst_responses[0], Duration{15});
  set.tasks[1].best_case = Duration{2};
  const AdmissionVerdict refused = controller.decide(set);
  EXPECT_EQ(refused.answer, Answer::NotSchedulable);
  ASSERT_EQ(refused.reasons.size(), 1U);
  EXPECT_TRUE(refused.reasons[0].starts_with("np_exploration: job 1 of 'c' arrives at 9 ns, is due at 17 ns"))
      << refused.reasons[0];
  set.arrivals = Arrivals::Sporadic;
  EXPECT_EQ(controller.decide(set).answer, Answer::NotSchedulable);
}

// Three cameras of 30, 40 and 60 pictures a second, each by its own clock: 33.333, 25 and 16.667 ms have a common
// multiple of 1.4e7 s, which no exploration looks at. U = 0.63, and the tests of sporadic arrivals hold for any
// arrivals.
TEST(NpExploration, LeavesCamerasThatRunFreelyToTheTestsOfSporadicArrivals) {
  const TaskSet set{{},
                    Policy::Edf,
                    {declared("a", 8'000'000, 33'333'000, 3'000'000, 0), declared("b", 6'000'000, 25'000'000, 0, 0),
                     declared("c", 2'500'000, 16'667'000, 1'700'000, 0)},
                    Arrivals::Periodic};
  const AdmissionVerdict verdict = AdmissionController(planners().front()).decide(set);
  EXPECT_EQ(verdict.answer, Answer::Schedulable);
  EXPECT_TRUE(verdict.admitted.has_value());
  EXPECT_EQ(np_exploration(verdict.timings, Policy::Edf).answer, Answer::Unknown);
}

}  // namespace
}  // namespace tutti::internal
