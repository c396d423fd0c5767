#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "sched/analyses/np_fp_response_time.hpp"
#include "tests/support/largest.hpp"
#include "tests/support/task_timings.hpp"

namespace tutti::internal {
namespace {

using oracle::Dice;
using oracle::implicit;
using oracle::Responses;
using oracle::responses;
using oracle::timing;
using Tasks = std::vector<TaskTiming>;

using test::kLargest;
constexpr std::int64_t kNoResponse = -1;  ///< no worst response

Answer answer(const Tasks& tasks, Policy policy = Policy::Dm) { return np_fp_response_time(tasks, policy).answer; }

// The lowest task, without a blocker: w = 2 (floor(w/4) + 1) + 2 (floor(w/8) + 1): 0, 4, 6, 6: R = 7. A higher job that
// becomes ready at 4, when the lowest could start, goes first (ceil(4/4) = 1 would give 5). Above it:
//   (2, 4): B = 2: w = 2, R = 4       (2, 8): B = 1: w = 1 + 2 ceil(w/4): 1, 3, 3: R = 5
TEST(NpFpResponseTime, LetsHigherJobsInAtTheStartWhereNothingBlocks) {
  const Verdict verdict = np_fp_response_time(Tasks{implicit(2, 4), implicit(2, 8), implicit(1, 16)}, Policy::Rm);
  EXPECT_EQ(verdict.answer, Answer::Schedulable);
  EXPECT_EQ(verdict.worst_response, responses({4, 5, 7}));
}

// The middle task, blocked by 2: w = 2 + ceil(w/3): 2, 3, 3: R = 4. All started a moment before 0, so the higher job
// that becomes ready at 3 is a moment late (floor(3/3) + 1 = 2 would give 5). The first: B = 2, R = 3. The last:
//   w = (floor(w/3) + 1) + (floor(w/6) + 1): 0, 2, 2: R = 4
TEST(NpFpResponseTime, CountsAnOpenIntervalBehindABlocker) {
  const Verdict verdict = np_fp_response_time(Tasks{implicit(1, 3), implicit(1, 6), implicit(2, 12)}, Policy::Rm);
  EXPECT_EQ(verdict.answer, Answer::Schedulable);
  EXPECT_EQ(verdict.worst_response, responses({3, 4, 4}));
}

// [DBBL07] the counter-example to the first analysis of CAN, (C, T, D) in hundredths of a ms: A (100, 250, 250),
// B and C (100, 350, 325). For C, without a blocker:
//   q = 0: w = 0, 200, 200                               R = 300 <= 325
//   q = 1: w = 100 + 100 (floor(w/250) + 1) + 100 (floor(w/350) + 1): 300, 400, 500, 600, 600   R = 700 - 350 = 350 >
//   325
// Until 675 (350 + 325) it must start by 575: A 3 jobs, B 2, C 2: 700. Above it: A: B = 100: R = 200.
//   B: q = 0: w = 100 + 100 ceil(w/250): 200: R = 300     q = 1: w = 300, 400, 400 > 350: R = 500 - 350 = 150
TEST(NpFpResponseTime, RefusesTheCanCounterExampleOfDavisEtAl2007) {
  const Verdict verdict =
      np_fp_response_time(Tasks{timing(100, 250, 250), timing(100, 350, 325), timing(100, 350, 325)}, Policy::Dm);
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  EXPECT_EQ(verdict.worst_response, responses({200, 300, 350}));
  const Witness expected{
      .task = TaskId{2u},
      .interval = Duration{675},
      .load = Duration{700},
      .blocking = Duration{0},
      .blocker = std::nullopt,
      .by_task = {{TaskId{0u}, Duration{300}}, {TaskId{1u}, Duration{200}}, {TaskId{2u}, Duration{200}}}};
  ASSERT_TRUE(verdict.witness.has_value());
  EXPECT_EQ(*verdict.witness, expected);
}

// The same with D = 350 for C: R = D.
TEST(NpFpResponseTime, MeetsADeadlineThatEqualsTheResponse) {
  EXPECT_EQ(answer({timing(100, 250, 250), timing(100, 350, 325), timing(100, 350, 350)}), Answer::Schedulable);
  EXPECT_EQ(answer({timing(100, 250, 250), timing(100, 350, 325), timing(100, 350, 349)}), Answer::NotSchedulable);
}

// B = 3 and C = 2: R = 5, missed at D = 4 and met at D = 5. At D = 4 the job must start by 2: the blocker's 3 and its
// own 2.
TEST(NpFpResponseTime, NamesTheBlockerOfTheHighestTask) {
  EXPECT_EQ(answer({timing(2, 10, 5), timing(3, 20, 20)}), Answer::Schedulable);
  const Verdict verdict = np_fp_response_time(Tasks{timing(2, 10, 4), timing(3, 20, 20)}, Policy::Dm);
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  EXPECT_EQ(verdict.worst_response, responses({5, 5}));
  const Witness expected{.task = TaskId{0u},
                         .interval = Duration{4},
                         .load = Duration{5},
                         .blocking = Duration{3},
                         .blocker = TaskId{1u},
                         .by_task = {{TaskId{0u}, Duration{2}}}};
  ASSERT_TRUE(verdict.witness.has_value());
  EXPECT_EQ(*verdict.witness, expected);
}

// Both lower tasks last 3: the higher of the two is named.
TEST(NpFpResponseTime, NamesTheHigherOfTwoBlockers) {
  const Verdict verdict =
      np_fp_response_time(Tasks{timing(3, 40, 40), timing(2, 10, 4), timing(3, 30, 30)}, Policy::Dm);
  ASSERT_TRUE(verdict.witness.has_value());
  EXPECT_EQ(verdict.witness->blocker, TaskId{2u});
}

// Jitter counts twice: J of the task itself delays its job, J of a higher one brings two jobs together.
//   first:  B = 1, C = 2, J = 3:  R = 1 + 2 + 3 = 6
//   second: w = 2 (floor((w + 3)/5) + 1): 0, 2, 4, 4: R = 5    (without the jitter: w = 2, R = 3)
TEST(NpFpResponseTime, AddsTheJitterOfATaskAndOfThoseAbove) {
  const Verdict verdict = np_fp_response_time(Tasks{timing(2, 5, 6, 3), timing(1, 10, 10)}, Policy::Dm);
  EXPECT_EQ(verdict.answer, Answer::Schedulable);
  EXPECT_EQ(verdict.worst_response, responses({6, 5}));
}

// Deadlines beyond periods: (2, 5) above (4, 7, D 9), U = 0.97.
//   first:  B = 4: q = 0: w = 4: R = 6 > T = 5;  q = 1: w = 4 + 2 = 6 > 5: R = 8 - 5 = 3;  q = 2: w = 8 <= 10, the end
//   second: q = 0: w = 2: R = 6;  q = 1: w = 4 + 2 (floor(w/5) + 1): 6, 8, 8: R = 12 - 7 = 5;  q = 2: w = 12, 14 = 2 *
//   7, the end
TEST(NpFpResponseTime, FollowsSeveralInstancesWhereDeadlinesExceedPeriods) {
  const Verdict verdict = np_fp_response_time(Tasks{timing(2, 5, 6), timing(4, 7, 9)}, Policy::Dm);
  EXPECT_EQ(verdict.answer, Answer::Schedulable);
  EXPECT_EQ(verdict.worst_response, responses({6, 6}));
}

// RM goes by T, DM by D, and of equal ones the earlier in the file is higher.
TEST(NpFpResponseTime, OrdersByPeriodOrDeadlineThenByTheFile) {
  const Tasks tasks{timing(1, 10, 5), timing(1, 8, 7), timing(1, 10, 7)};
  EXPECT_EQ(priority_order(tasks, Policy::Rm), (std::vector<std::size_t>{1, 0, 2}));
  EXPECT_EQ(priority_order(tasks, Policy::Dm), (std::vector<std::size_t>{0, 1, 2}));
}

// Given 2, 0, 0: the second, the third, the first. (2, 16), (2, 4), (1, 8), blocked by 2:
//   second: w = 2: R = 4     third: w = 2 + 2 ceil(w/4): 2, 4, 4: R = 5
//   first, without a blocker: w = 2 (floor(w/4) + 1) + (floor(w/8) + 1): 0, 3, 3: R = 5
TEST(NpFpResponseTime, FollowsGivenPriorities) {
  Tasks tasks{implicit(2, 16), implicit(2, 4), implicit(1, 8)};
  tasks[0].priority = 2;
  EXPECT_EQ(priority_order(tasks, Policy::Given), (std::vector<std::size_t>{1, 2, 0}));
  const Verdict verdict = np_fp_response_time(tasks, Policy::Given);
  EXPECT_EQ(verdict.answer, Answer::Schedulable);
  EXPECT_EQ(verdict.worst_response, responses({5, 4, 5}));
}

// The rule of dense time where nothing blocks: C = 2, 2, 1 with T = 4, 8 above the last: 7, not 5.
TEST(NpFpResponseTime, AnswersSevenNotFiveForTheLowestLevel) {
  EXPECT_EQ(np_fp_response_time(Tasks{implicit(2, 4), implicit(2, 8), implicit(1, 100)}, Policy::Rm).worst_response[2],
            Duration{7});
}

// U = 1/2 + 1/4 + 1/4 = 1:
//   (2, 4): B = 2: R = 4     (2, 8): B = 2: w = 2 + 2 ceil(w/4): 4, 4: R = 6
//   the last: w = 2 (floor(w/4) + 1) + 2 (floor(w/8) + 1): 0, 4, 6, 6: R = 8 = D; its busy period lasts to 8 and
//   repeats
TEST(NpFpResponseTime, EndsAtFullUtilization) {
  const Verdict verdict = np_fp_response_time(Tasks{implicit(2, 4), implicit(2, 8), implicit(2, 8)}, Policy::Rm);
  EXPECT_EQ(verdict.answer, Answer::Schedulable);
  EXPECT_EQ(verdict.worst_response, responses({4, 6, 8}));
}

// U = 1, and with jitter the busy period of the last never ends: every instance waits for two higher jobs.
//   first: B = 2: q = 0: w = 2: R = 2 + 2 + 1 = 5;  q = 1: arrival 3, w = 4: R = 6 - 3 = 3;  q = 2: arrival 7, w = 6,
//   the end last:  q = 0: w = 2 (floor((w + 1)/4) + 1): 2, 2: R = 4;  q = 1: 2 + that: 4, 6, 6: R = 8 - 4 = 4, and so
//   on
TEST(NpFpResponseTime, BoundsABusyPeriodThatNeverEnds) {
  const Verdict verdict = np_fp_response_time(Tasks{timing(2, 4, 8, 1), timing(2, 4, 8)}, Policy::Dm);
  EXPECT_EQ(verdict.answer, Answer::Schedulable);
  EXPECT_EQ(verdict.worst_response, responses({5, 4}));
}

// U = 2/4 + 3/5 = 1.1: instances of the last fall back ever more, so no response bounds it; the first is fine.
//   first: B = 3: q = 0: w = 3: R = 5;  q = 1: w = 5: R = 7 - 4 = 3;  q = 2: w = 7 <= 8, the end
//   last, w_q = 3 q + 2 (floor(w/4) + 1): 2, 7, 14, ... ; R_q = w_q + 3 - 5 q: 5, 5, 7
//   q = 3: 17, 19, 19: R = 22 - 15 = 7      q = 4: 22, 24, 26, 26: R = 29 - 20 = 9 > 8
// Due at 28, so it must start by 25: 7 higher jobs (14) and 5 of its own (15): 29.
TEST(NpFpResponseTime, LeavesTheResponseOpenUnderOverload) {
  const Verdict verdict = np_fp_response_time(Tasks{timing(2, 4, 5), timing(3, 5, 8)}, Policy::Dm);
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  EXPECT_EQ(verdict.worst_response, responses({5, kNoResponse}));
  ASSERT_TRUE(verdict.witness.has_value());
  EXPECT_EQ(verdict.witness->task, TaskId{1u});
  EXPECT_EQ(verdict.witness->interval, Duration{28});
  EXPECT_EQ(verdict.witness->load, Duration{29});
}

// The two above use all the time, so the last never starts. Due at 100, it must start by 99, when floor(99/4) + 1 = 25
// jobs of each were ready: 50 + 50 + its own 1 = 101. Above it: B = 2: R = 4, and B = 1: w = 1 + 2 ceil(w/4): 3, 3: R
// = 5.
TEST(NpFpResponseTime, StarvesATaskBelowFullUtilization) {
  const Verdict verdict = np_fp_response_time(Tasks{timing(2, 4, 4), timing(2, 4, 5), timing(1, 100, 100)}, Policy::Dm);
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  EXPECT_EQ(verdict.worst_response, responses({4, 5, kNoResponse}));
  ASSERT_TRUE(verdict.witness.has_value());
  EXPECT_EQ(verdict.witness->interval, Duration{100});
  EXPECT_EQ(verdict.witness->load, Duration{101});
}

// A job without work waits for the blocker (R = 4) or for those above (R = 2), and delays nobody: the last task is
// alone with the second: w = 2: R = 6.
TEST(NpFpResponseTime, LetsAJobWithoutWorkWaitItsTurn) {
  const Verdict verdict =
      np_fp_response_time(Tasks{implicit(0, 5), implicit(2, 10), implicit(4, 20), implicit(0, 30)}, Policy::Rm);
  EXPECT_EQ(verdict.answer, Answer::Schedulable);
  EXPECT_EQ(verdict.worst_response, responses({4, 6, 6, 6}));
  EXPECT_EQ(answer({timing(0, 10, 3), timing(4, 20, 20)}), Answer::NotSchedulable);
  EXPECT_EQ(answer({timing(0, 10, 4), timing(4, 20, 20)}), Answer::Schedulable);
}

// Alone and without work: R = J, which meets D = J, also where 2^63 - 1 of its jobs are under way at once. Below full
// use it never gets its turn.
TEST(NpFpResponseTime, AnswersForAJobWithoutWorkAtTheEdges) {
  EXPECT_EQ(np_fp_response_time(Tasks{timing(0, 10, 6, 6)}, Policy::Dm).worst_response, responses({6}));
  EXPECT_EQ(answer({timing(0, 10, 6, 6)}), Answer::Schedulable);
  EXPECT_EQ(answer({timing(0, 10, 6, 7)}), Answer::NotSchedulable);
  EXPECT_EQ(answer({timing(0, 1, kLargest, kLargest)}), Answer::Schedulable);
  EXPECT_EQ(answer({timing(4, 4, 4), timing(0, 50, 50)}), Answer::NotSchedulable);
}

TEST(NpFpResponseTime, AcceptsAnEmptySet) {
  const Verdict verdict = np_fp_response_time({}, Policy::Rm);
  EXPECT_EQ(verdict.answer, Answer::Schedulable);
  EXPECT_TRUE(verdict.worst_response.empty());
}

// Ready only after the deadline: R = 8 + 1 = 9 > 6, and the interval from ready to due is 6 - 8.
TEST(NpFpResponseTime, RefusesAJobReadyOnlyAfterItsDeadline) {
  const Verdict verdict = np_fp_response_time(Tasks{timing(1, 10, 6, 8)}, Policy::Dm);
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  EXPECT_EQ(verdict.worst_response, responses({9}));
  ASSERT_TRUE(verdict.witness.has_value());
  EXPECT_EQ(verdict.witness->interval, Duration{-2});
  EXPECT_EQ(verdict.witness->load, Duration{1});
}

// h = 2^62: two jobs of h - 1 in 2^63 - 1: R = 2h - 2 for both (the first is blocked by the second). Two of h: R = 2h =
// 2^63 for all, one more than D and than 64 bits hold: no number, but an answer.
TEST(NpFpResponseTime, DoesNotWrapNearTheLargestNumbers) {
  const std::int64_t half = std::int64_t{1} << 62;
  const Verdict fits =
      np_fp_response_time(Tasks{implicit(half - 1, kLargest), implicit(half - 1, kLargest)}, Policy::Rm);
  EXPECT_EQ(fits.answer, Answer::Schedulable);
  EXPECT_EQ(fits.worst_response, responses({2 * (half - 1), 2 * (half - 1)}));
  const Verdict late =
      np_fp_response_time(Tasks{implicit(half, kLargest), implicit(half, kLargest), implicit(1, kLargest)}, Policy::Rm);
  EXPECT_EQ(late.answer, Answer::NotSchedulable);
  EXPECT_EQ(late.worst_response, responses({kNoResponse, kNoResponse, kNoResponse}));
  EXPECT_FALSE(late.witness.has_value());
  EXPECT_FALSE(late.reason.empty());
}

// (1, 2), (2^61 - 2, 2^62) and (1, 2^62) leave 1 ns of every 2^62, and the deadlines are later than all that can be
// followed: the first alone, blocked by the second, catches up after 2^61 instances.
TEST(NpFpResponseTime, SaysUnknownInWordsWhereABusyPeriodIsTooLong) {
  const std::int64_t far = std::int64_t{1} << 62;
  const Verdict verdict = np_fp_response_time(
      Tasks{timing(1, 2, far), timing(far / 2 - 2, far, far), timing(1, far, kLargest)}, Policy::Dm);
  EXPECT_EQ(verdict.answer, Answer::Unknown);
  EXPECT_FALSE(verdict.reason.empty());
  EXPECT_FALSE(verdict.witness.has_value());
}

// More work, more jitter or a shorter period never shortens a response, whatever the order of priorities.
TEST(NpFpResponseTime, NeverGetsShorterWithMoreWork) {
  Dice dice(2007);
  for (int round = 0; round < 2000; ++round) {
    const Tasks tasks = oracle::random_timings(dice, {.tasks_max = 6,
                                                      .wcet_max = 20,
                                                      .period_min = 30,
                                                      .period_max = 200,
                                                      .deadline_min = 30,
                                                      .deadline_max = 300,
                                                      .jitter_max = 30});
    SCOPED_TRACE(::testing::PrintToString(tasks));
    const Responses before = np_fp_response_time(tasks, Policy::Dm).worst_response;
    Tasks changed = tasks;
    TaskTiming& task = changed[static_cast<std::size_t>(dice.roll(0, static_cast<std::int64_t>(tasks.size()) - 1))];
    switch (dice.roll(0, 2)) {
      case 0: task.wcet += Duration{dice.roll(1, 5)}; break;
      case 1: task.jitter += Duration{dice.roll(1, 20)}; break;
      default: task.period -= Duration{dice.roll(1, 20)}; break;
    }
    const Responses after = np_fp_response_time(changed, Policy::Dm).worst_response;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (!after[i]) continue;  // unbounded now
      ASSERT_TRUE(before[i].has_value());
      ASSERT_LE(*before[i], *after[i]);
    }
  }
}

}  // namespace
}  // namespace tutti::internal
