#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "sched/analyses/np_edf_demand.hpp"
#include "sched/analyses/np_edf_jeffay.hpp"
#include "sched/analyses/utilization.hpp"
#include "tests/support/largest.hpp"
#include "tests/support/task_timings.hpp"

namespace tutti::internal {
namespace {

using oracle::Dice;
using oracle::implicit;
using oracle::timing;
using Tasks = std::vector<TaskTiming>;

using test::kLargest;

Answer demand_answer(const Tasks& tasks) { return np_edf_demand(tasks, Policy::Edf).answer; }
Answer jeffay_answer(const Tasks& tasks) { return np_edf_jeffay(tasks, Policy::Edf).answer; }

// L = 4: C_2 + floor(4/4) 1 = 4 <= 4.  L = 8: 3 + 2 <= 8.  U = 1/4 + 3/10.
TEST(NpEdfJeffay, AcceptsABlockerThatJustFits) {
  EXPECT_EQ(jeffay_answer({implicit(1, 4), implicit(3, 10)}), Answer::Schedulable);
}

// One tick more: L = 4: 4 + 1 = 5 > 4, although U = 1/4 + 4/10 only.
TEST(NpEdfJeffay, RefusesABlockerOneTickLonger) {
  const Verdict verdict = np_edf_jeffay(Tasks{implicit(1, 4), implicit(4, 10)}, Policy::Edf);
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  const Witness expected{.task = TaskId{0u},
                         .interval = Duration{4},
                         .load = Duration{5},
                         .blocking = Duration{4},
                         .blocker = TaskId{1u},
                         .by_task = {{TaskId{0u}, Duration{1}}}};
  ASSERT_TRUE(verdict.witness.has_value());
  EXPECT_EQ(*verdict.witness, expected);
}

// (5, 24), (3, 24), (5, 8): with fixed offsets 4, 1, 1 all deadlines are met, but sporadic arrivals may be worse.
// L = 8: C of the third 5, blocked by 5: 10 > 8.
TEST(NpEdfJeffay, LooksAtSporadicArrivalsNotAtOffsets) {
  const Verdict verdict = np_edf_jeffay(Tasks{implicit(5, 24), implicit(3, 24), implicit(5, 8)}, Policy::Edf);
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  ASSERT_TRUE(verdict.witness.has_value());
  EXPECT_EQ(verdict.witness->interval, Duration{8});
  EXPECT_EQ(verdict.witness->load, Duration{10});
  EXPECT_EQ(verdict.witness->blocker, TaskId{0u});
  EXPECT_EQ(verdict.witness->task, TaskId{2u});
}

// (4, 20), (4, 20), (12, 20): U = 1, and with equal periods there is no L to test.
// (4, 20), (4, 20), (3, 7): L = 7: 4 + 3 = 7.  L = 14: 4 + 6 = 10.
TEST(NpEdfJeffay, AcceptsBothSetsOfTheModeChangeExample) {
  EXPECT_EQ(jeffay_answer({implicit(4, 20), implicit(4, 20), implicit(12, 20)}), Answer::Schedulable);
  EXPECT_EQ(jeffay_answer({implicit(4, 20), implicit(4, 20), implicit(3, 7)}), Answer::Schedulable);
}

// (4, 20), (4, 20), (13, 20): U = 21/20. At t = 20 all three are due: 21 > 20, nothing blocks.
TEST(NpEdfJeffay, GivesTheDemandWhereTheMachineIsOverloaded) {
  const Verdict verdict = np_edf_jeffay(Tasks{implicit(4, 20), implicit(4, 20), implicit(13, 20)}, Policy::Edf);
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  ASSERT_TRUE(verdict.witness.has_value());
  EXPECT_EQ(verdict.witness->interval, Duration{20});
  EXPECT_EQ(verdict.witness->load, Duration{21});
  EXPECT_EQ(verdict.witness->blocker, std::nullopt);
  EXPECT_EQ(verdict.witness->by_task.size(), 3u);
}

TEST(NpEdfJeffay, AppliesOnlyWhereDeadlinesArePeriodsAndNothingIsLate) {
  EXPECT_TRUE(np_edf_jeffay_applies(Tasks{implicit(1, 4)}, Policy::Edf));
  EXPECT_FALSE(np_edf_jeffay_applies(Tasks{implicit(1, 4)}, Policy::Rm));
  EXPECT_FALSE(np_edf_jeffay_applies(Tasks{implicit(1, 4), timing(1, 4, 5)}, Policy::Edf));
  EXPECT_FALSE(np_edf_jeffay_applies(Tasks{timing(1, 4, 4, 1)}, Policy::Edf));
}

// Periods 2 and 2^62 with a floor that jumps at every second ns: QPA needs few of them. U = 1/2 + small; at L = 2: 1
// + 1.
TEST(NpEdfJeffay, EndsSoonWherePeriodsAreFarApart) {
  EXPECT_EQ(jeffay_answer({implicit(1, 2), implicit(1, std::int64_t{1} << 62)}), Answer::Schedulable);
  EXPECT_EQ(jeffay_answer({implicit(1, 2), implicit(2, std::int64_t{1} << 62)}), Answer::NotSchedulable);
}

// t = 5: h = 2, the other task (due 12 > 5) blocks 3: 5 <= 5.  t = 12: 2 + 3 = 5.
TEST(NpEdfDemand, AcceptsAShortDeadlineThatIsJustMet) {
  EXPECT_EQ(demand_answer({timing(2, 10, 5), timing(3, 12, 12)}), Answer::Schedulable);
}

// A tick less of the deadline, or more of the blocker: t = 4: 2 + 3 = 5 > 4;  t = 5: 2 + 4 = 6 > 5.
TEST(NpEdfDemand, RefusesAShortDeadlineMissedByOneTick) {
  EXPECT_EQ(demand_answer({timing(2, 10, 4), timing(3, 12, 12)}), Answer::NotSchedulable);
  EXPECT_EQ(demand_answer({timing(2, 10, 5), timing(4, 12, 12)}), Answer::NotSchedulable);
}

// D - J = 8 - 3 = 5 for the first: t = 5: 2 + 3 = 5.  With J = 4: t = 4: 2 + 3 = 5 > 4.
TEST(NpEdfDemand, CountsJitterAgainstTheDeadline) {
  EXPECT_EQ(demand_answer({timing(2, 10, 8, 3), timing(3, 20, 20)}), Answer::Schedulable);
  const Verdict verdict = np_edf_demand(Tasks{timing(2, 10, 8, 4), timing(3, 20, 20)}, Policy::Edf);
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  const Witness expected{.task = TaskId{0u},
                         .interval = Duration{4},
                         .load = Duration{5},
                         .blocking = Duration{3},
                         .blocker = TaskId{1u},
                         .by_task = {{TaskId{0u}, Duration{2}}}};
  ASSERT_TRUE(verdict.witness.has_value());
  EXPECT_EQ(*verdict.witness, expected);
}

// t = 5: 1 + 4 = 5. At 8 nothing blocks any more, and the busy period ends at 9: t = 8: 1 + 4 + 4 = 9 > 8. With D =
// 9: 9.
TEST(NpEdfDemand, RefusesEqualDeadlinesTooShortForBoth) {
  EXPECT_EQ(demand_answer({timing(1, 20, 5), timing(4, 20, 8), timing(4, 20, 8)}), Answer::NotSchedulable);
  EXPECT_EQ(demand_answer({timing(1, 20, 5), timing(4, 20, 9), timing(4, 20, 9)}), Answer::Schedulable);
}

// t = 4: 2 + 3 = 5 > 4. Both others last 3 and are due later: the earlier in the file is named.
TEST(NpEdfDemand, NamesTheFirstOfTwoBlockers) {
  const Verdict verdict = np_edf_demand(Tasks{timing(3, 40, 40), timing(2, 10, 4), timing(3, 30, 30)}, Policy::Edf);
  ASSERT_TRUE(verdict.witness.has_value());
  EXPECT_EQ(verdict.witness->task, TaskId{1u});
  EXPECT_EQ(verdict.witness->blocker, TaskId{0u});
}

// The first has D - J = 4 but D = 10:
//   t = 4: it demands 3, the second (due 5 > 4) blocks 1: 4 <= 4
//   t = 5: 3 + 1 = 4 <= 5. Were the first also a blocker there, because 10 > 5, it would be 7.
TEST(NpEdfDemand, NeverTakesATaskForDemandAndBlockerAtOnce) {
  EXPECT_EQ(demand_answer({timing(3, 10, 10, 6), timing(1, 10, 5)}), Answer::Schedulable);
}

// Jitter makes jobs come together: D - J = 4, so
//   t = 4: 1 job, t = 7: 2 jobs, t = 10: 3 jobs of (2, 3)   2, 4, 6; the other has D = 10: at t = 4, 7 blocks, at t =
//   10 adds C = 2:  2 + 2 = 4 <= 4   4 + 2 = 6 <= 7   6 + 2 = 8 <= 10;   C = 3:  2 + 3 = 5 > 4
TEST(NpEdfDemand, CountsEveryJobThatJitterBringsTogether) {
  EXPECT_EQ(demand_answer({timing(2, 3, 8, 4), timing(2, 12, 10)}), Answer::Schedulable);
  EXPECT_EQ(demand_answer({timing(2, 3, 8, 4), timing(3, 12, 10)}), Answer::NotSchedulable);
}

// U = 2/4 + 4/8 = 1. The deadline of 10 above the period of 4 lets the first wait:
//   t = 8: 4 + blocking 2 = 6;  t = 10: 4 + 2;  X = (4 - 10)/2 + (8 - 8)/2 < 0, so nothing fails from 10 on.
// With D = 4 instead: t = 4: 2 + 4 = 6 > 4.
TEST(NpEdfDemand, AllowsDeadlinesBeyondPeriods) {
  EXPECT_EQ(demand_answer({timing(2, 4, 10), timing(4, 8, 8)}), Answer::Schedulable);
  EXPECT_EQ(demand_answer({timing(2, 4, 4), timing(4, 8, 8)}), Answer::NotSchedulable);
}

// U = 2/4 + 1/4 + 1/4 = 1, so there is no bound from the utilisation; the busy period ends at 4 and decides:
//   t = 3: 2 + 1 = 3    t = 4: 2 + 2 = 4    t = 7: 4 + 2 = 6    then again, each 4 higher
// J counts in D - J alone. One tick more of it: t = 2: 2 + 1 = 3 > 2.
TEST(NpEdfDemand, DecidesFullUtilization) {
  EXPECT_EQ(demand_answer({timing(2, 4, 3), timing(1, 4, 4), timing(1, 4, 4)}), Answer::Schedulable);
  EXPECT_EQ(demand_answer({timing(2, 4, 4, 1), timing(1, 4, 4), timing(1, 4, 4)}), Answer::Schedulable);
  EXPECT_EQ(demand_answer({timing(2, 4, 4, 2), timing(1, 4, 4), timing(1, 4, 4)}), Answer::NotSchedulable);
}

// U = 3/6 + 5/10 = 1 and D - J = 7 for both, so nothing blocks: t = 7: 3 + 5 = 8 > 7. With D - J = 8, up to the end of
// the busy period at 30:  t = 8: 3 + 5   14: 6 + 5   18: 6 + 10   20: 9 + 10   26: 12 + 10   28: 12 + 15 = 27
TEST(NpEdfDemand, DecidesFullUtilizationWhereNothingBlocks) {
  EXPECT_EQ(demand_answer({timing(3, 6, 11, 4), timing(5, 10, 11, 4)}), Answer::NotSchedulable);
  EXPECT_EQ(demand_answer({timing(3, 6, 11, 3), timing(5, 10, 11, 3)}), Answer::Schedulable);
}

// (2, 4), (1, 4) and 1/4 written as 1/5 + 1/21 + 1/421 + 1/176821 + 1/31265489220 (each rest 1/n split into 1/(n+1) +
// 1/(n(n+1)), the last being 1/(176820 * 176821)): U is 1 exactly, and the busy period of some 3e10 is too long to
// walk.
TEST(NpEdfDemand, SaysUnknownInWordsWhereTheHyperperiodIsTooLong) {
  const Tasks tasks{timing(2, 4, 4, 1), timing(1, 4, 4),     implicit(1, 5),          implicit(1, 21),
                    implicit(1, 421),   implicit(1, 176821), implicit(1, 31265489220)};
  ASSERT_TRUE(utilization_sum(tasks).compare_with_one() == 0);
  const Verdict verdict = np_edf_demand(tasks, Policy::Edf);
  EXPECT_EQ(verdict.answer, Answer::Unknown);
  EXPECT_FALSE(verdict.reason.empty());
  EXPECT_FALSE(verdict.witness.has_value());
}

// The same with one tick more of jitter fails near 0, which the walk from the far end never reaches: t = 2: 2 + 1 = 3
// > 2.
TEST(NpEdfDemand, FindsANearFailureWhereTheHyperperiodIsTooLong) {
  const Tasks tasks{timing(2, 4, 4, 2), timing(1, 4, 4),     implicit(1, 5),          implicit(1, 21),
                    implicit(1, 421),   implicit(1, 176821), implicit(1, 31265489220)};
  const Verdict verdict = np_edf_demand(tasks, Policy::Edf);
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  ASSERT_TRUE(verdict.witness.has_value());
  EXPECT_EQ(verdict.witness->interval, Duration{2});
}

// D - J < C: no time for the job itself.  t = 2: 3 > 2.
TEST(NpEdfDemand, RefusesAJobLongerThanItsWindow) {
  const Verdict verdict = np_edf_demand(Tasks{timing(3, 10, 6, 4)}, Policy::Edf);
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  ASSERT_TRUE(verdict.witness.has_value());
  EXPECT_EQ(verdict.witness->interval, Duration{2});
  EXPECT_EQ(verdict.witness->load, Duration{3});
}

// D = J: ready at the deadline, 0 ns for 1. D < J: ready 2 ns after the deadline, so the interval is -2, even without
// work.
TEST(NpEdfDemand, RefusesAJobReadyOnlyAtItsDeadlineOrLater) {
  const Verdict at_deadline = np_edf_demand(Tasks{timing(1, 10, 6, 6)}, Policy::Edf);
  EXPECT_EQ(at_deadline.answer, Answer::NotSchedulable);
  ASSERT_TRUE(at_deadline.witness.has_value());
  EXPECT_EQ(at_deadline.witness->interval, Duration{0});
  const Verdict later = np_edf_demand(Tasks{timing(0, 10, 6, 8)}, Policy::Edf);
  EXPECT_EQ(later.answer, Answer::NotSchedulable);
  ASSERT_TRUE(later.witness.has_value());
  EXPECT_EQ(later.witness->interval, Duration{-2});
  EXPECT_EQ(later.witness->task, TaskId{0u});
}

// A job without work still waits for one that runs: t = 3: 0 + 4 > 3;  t = 4: 0 + 4 <= 4. It never blocks, and alone it
// meets even D = J.
TEST(NpEdfDemand, LetsAJobWithoutWorkWaitItsTurn) {
  const Verdict verdict = np_edf_demand(Tasks{timing(0, 10, 3), timing(4, 20, 20)}, Policy::Edf);
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  const Witness expected{.task = TaskId{0u},
                         .interval = Duration{3},
                         .load = Duration{4},
                         .blocking = Duration{4},
                         .blocker = TaskId{1u},
                         .by_task = {}};
  ASSERT_TRUE(verdict.witness.has_value());
  EXPECT_EQ(*verdict.witness, expected);
  EXPECT_EQ(demand_answer({timing(0, 10, 4), timing(4, 20, 20)}), Answer::Schedulable);
  EXPECT_EQ(demand_answer({timing(0, 50, 50), timing(4, 4, 4)}), Answer::Schedulable);
  EXPECT_EQ(demand_answer({timing(0, 10, 6, 6)}), Answer::Schedulable);
  EXPECT_EQ(jeffay_answer({implicit(0, 3), implicit(4, 20)}), Answer::NotSchedulable);
  EXPECT_EQ(jeffay_answer({implicit(0, 4), implicit(4, 20)}), Answer::Schedulable);
}

TEST(NpEdfDemand, AcceptsAnEmptySet) {
  EXPECT_EQ(demand_answer({}), Answer::Schedulable);
  EXPECT_EQ(jeffay_answer({}), Answer::Schedulable);
}

// M = 2^63 - 1, two jobs of 2^62 - 1 in M: 2^63 - 2 <= M. With 2^62 - 1 and 2^62 + 1 in M: 2^63 > M by one, and the
// load has no room in 64 bits, so there is no witness.
TEST(NpEdfDemand, DoesNotWrapNearTheLargestNumbers) {
  const std::int64_t half = std::int64_t{1} << 62;
  EXPECT_EQ(demand_answer({implicit(half - 1, kLargest), implicit(half - 1, kLargest)}), Answer::Schedulable);
  EXPECT_EQ(demand_answer({implicit(half - 1, kLargest), implicit(half, kLargest)}), Answer::Schedulable);
  const Verdict verdict = np_edf_demand(Tasks{implicit(half - 1, kLargest), implicit(half + 1, kLargest)}, Policy::Edf);
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  EXPECT_FALSE(verdict.witness.has_value());
  EXPECT_FALSE(verdict.reason.empty());
}

// t = M - 1: 1 + (M - 1) = M > M - 1, as U = 1 + 2^-126 says too. With C = M - 2: M - 1 <= M - 1, and U < 1.
TEST(NpEdfDemand, DecidesByOneTickNearTheLargestNumbers) {
  const Tasks tight{implicit(1, kLargest - 1), implicit(kLargest - 2, kLargest)};
  EXPECT_EQ(demand_answer(tight), Answer::Schedulable);
  EXPECT_EQ(jeffay_answer(tight), Answer::Schedulable);
  const Tasks late{implicit(1, kLargest - 1), implicit(kLargest - 1, kLargest)};
  for (const Verdict& verdict : {np_edf_demand(late, Policy::Edf), np_edf_jeffay(late, Policy::Edf)}) {
    EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
    ASSERT_TRUE(verdict.witness.has_value());
    EXPECT_EQ(verdict.witness->interval, Duration{kLargest - 1});
    EXPECT_EQ(verdict.witness->load, Duration{kLargest});
  }
}

// J = 2^63 - 1 and D = 1: D - J is near -2^63 and T - (D - J) near 2^64.
TEST(NpEdfDemand, SurvivesTheLargestJitter) {
  EXPECT_EQ(demand_answer({timing(kLargest, kLargest, 1, kLargest)}), Answer::NotSchedulable);
  EXPECT_EQ(demand_answer({timing(1, kLargest, kLargest, kLargest - 1)}), Answer::Schedulable);
}

/// The condition as its definition writes it, over every step below the end of the longest busy period; int64 is enough
/// for the small numbers of these tests.
struct SlowWalk {
  static std::int64_t jobs(const TaskTiming& task, std::int64_t t) {
    const std::int64_t window = (task.deadline - task.jitter).count();
    return t < window ? 0 : (t - window) / task.period.count() + 1;
  }

  static std::int64_t load(const Tasks& tasks, std::int64_t t) {
    std::int64_t demand = 0;
    std::int64_t blocking = 0;
    for (const TaskTiming& task : tasks) {
      const std::int64_t own = jobs(task, t) * task.wcet.count();
      demand += own;
      if (task.deadline.count() > t) blocking = std::max(blocking, task.wcet.count() - own);
    }
    return demand + blocking;
  }

  /// @pre  U < 1.
  static std::int64_t busy_period(const Tasks& tasks) {
    std::int64_t length = 1;
    for (;;) {
      std::int64_t work = 0;
      for (const TaskTiming& task : tasks) work = std::max(work, task.wcet.count());
      for (const TaskTiming& task : tasks) {
        const std::int64_t period = task.period.count();
        work += (length + task.jitter.count() + period - 1) / period * task.wcet.count();
      }
      if (work <= length) return length;
      length = work;
    }
  }

  static std::optional<std::int64_t> first_failure(const Tasks& tasks) {
    std::set<std::int64_t> points;
    const std::int64_t end = busy_period(tasks);
    for (const TaskTiming& task : tasks)
      for (std::int64_t t = (task.deadline - task.jitter).count(); t <= end; t += task.period.count()) points.insert(t);
    for (const std::int64_t t : points)
      if (load(tasks, t) > t) return t;
    return std::nullopt;
  }
};

/// Periods from 10 to 1000; each C a share of its period, so that U lies between about 0.5 and 1.
Tasks larger_set(Dice& dice, bool implicit_deadlines) {
  Tasks tasks(static_cast<std::size_t>(dice.roll(2, 12)));
  const auto count = static_cast<std::int64_t>(tasks.size());
  for (TaskTiming& task : tasks) {
    const std::int64_t period = dice.roll(5, 100) * dice.roll(2, 10);
    const std::int64_t wcet = std::max<std::int64_t>(1, period * dice.roll(50, 130) / (100 * count));
    const std::int64_t window = implicit_deadlines ? period : wcet + dice.roll(period / 2, 2 * period);
    const std::int64_t jitter = implicit_deadlines ? 0 : dice.roll(0, period / 3);
    task = timing(wcet, period, implicit_deadlines ? period : window + jitter, jitter);
  }
  return tasks;
}

TEST(NpEdfDemand, AgreesWithTheSlowWalkOnLargerSets) {
  Dice dice(20240611);
  int schedulable = 0;
  int refused = 0;
  for (int round = 0; round < 1500; ++round) {
    const Tasks tasks = larger_set(dice, false);
    if (!(utilization_sum(tasks).compare_with_one() < 0)) continue;
    SCOPED_TRACE(::testing::PrintToString(tasks));
    const std::optional<std::int64_t> failure = SlowWalk::first_failure(tasks);
    const Verdict verdict = np_edf_demand(tasks, Policy::Edf);
    ++(failure ? refused : schedulable);
    ASSERT_EQ(verdict.answer, failure ? Answer::NotSchedulable : Answer::Schedulable);
    ASSERT_EQ(verdict.witness.has_value(), failure.has_value());
    if (!failure) continue;
    ASSERT_EQ(verdict.witness->interval.count(), *failure);
    ASSERT_EQ(verdict.witness->load.count(), SlowWalk::load(tasks, *failure));
  }
  EXPECT_GE(schedulable, 100);
  EXPECT_GE(refused, 100);
}

TEST(NpEdfJeffay, EqualsTheDemandTestWhereBothApply) {
  Dice dice(1991);
  int schedulable = 0;
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    const Tasks tasks = larger_set(dice, true);
    SCOPED_TRACE(::testing::PrintToString(tasks));
    const Verdict jeffay = np_edf_jeffay(tasks, Policy::Edf);
    const Verdict demand = np_edf_demand(tasks, Policy::Edf);
    ASSERT_EQ(jeffay.answer, demand.answer);
    ASSERT_EQ(jeffay.witness, demand.witness);
    ASSERT_EQ(jeffay.witness.has_value(), jeffay.answer == Answer::NotSchedulable);
    ++(jeffay.answer == Answer::Schedulable ? schedulable : refused);
  }
  EXPECT_GE(schedulable, 100);
  EXPECT_GE(refused, 100);
}

TEST(NpEdfDemand, NeverGetsBetterWithMoreWorkOrWorseWithMoreTime) {
  Dice dice(2009);
  for (int round = 0; round < 1500; ++round) {
    const Tasks tasks = larger_set(dice, round % 2 == 0);
    SCOPED_TRACE(::testing::PrintToString(tasks));
    const Answer before = demand_answer(tasks);
    Tasks changed = tasks;
    TaskTiming& task = changed[static_cast<std::size_t>(dice.roll(0, static_cast<std::int64_t>(tasks.size()) - 1))];
    const TaskTiming original = task;
    if (before == Answer::Schedulable) {
      task.deadline += Duration{dice.roll(1, 50)};
      EXPECT_EQ(demand_answer(changed), Answer::Schedulable);
      task = original;
      task.period += Duration{dice.roll(1, 50)};
      EXPECT_EQ(demand_answer(changed), Answer::Schedulable);
      task = original;
      task.wcet -= Duration{dice.roll(1, task.wcet.count())};
      EXPECT_EQ(demand_answer(changed), Answer::Schedulable);
    } else {
      task.wcet += Duration{dice.roll(1, 5)};
      EXPECT_EQ(demand_answer(changed), Answer::NotSchedulable);
      task = original;
      task.jitter += Duration{dice.roll(1, 50)};
      EXPECT_EQ(demand_answer(changed), Answer::NotSchedulable);
    }
  }
}

}  // namespace
}  // namespace tutti::internal
