#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "sched/analyses/np_edf_demand.hpp"
#include "sched/analyses/np_edf_response_time.hpp"
#include "sched/analyses/utilization.hpp"
#include "tests/support/largest.hpp"
#include "tests/support/task_timings.hpp"

namespace tutti::internal {
namespace {

using oracle::Dice;
using oracle::implicit;
using oracle::Responses;
using oracle::responses;
using oracle::scaled;
using oracle::timing;
using Tasks = std::vector<TaskTiming>;

using test::kLargest;

// x (2, 6), y (3, 9). x due at 6: y has just started: w = 3, R = 5.
//   y due at 9: one x is due before: w = 2, R = 5;  at 12, so it comes at 3: two x are due, one ready: w = 2, R = 2
TEST(NpEdfResponseTime, CountsABlockerOrTheJobsDueBefore) {
  const Verdict verdict = np_edf_response_time(Tasks{implicit(2, 6), implicit(3, 9)}, Policy::Edf);
  EXPECT_EQ(verdict.answer, Answer::Schedulable);
  EXPECT_EQ(verdict.worst_response, responses({5, 5}));
}

// The first comes a moment after the second, so that its deadline is a moment later, and the third has started a moment
// before both: w = 2 + 1, R = 5. The second likewise: 2 + 2 + 1. The third: 2 + 1 + 2.
TEST(NpEdfResponseTime, LetsAnEqualDeadlineGoFirst) {
  EXPECT_EQ(np_edf_response_time(Tasks{implicit(2, 7), implicit(1, 7), implicit(2, 8)}, Policy::Edf).worst_response,
            responses({5, 5, 5}));
}

// Deadlines differ much: (1, 4) goes before (6, 40) as often as it comes before that one starts, which is once:
// R = 7. It waits for all of it: 6 + 1.
TEST(NpEdfResponseTime, DoesNotInterruptAJob) {
  EXPECT_EQ(np_edf_response_time(Tasks{timing(1, 4, 8), implicit(6, 40)}, Policy::Edf).worst_response,
            responses({7, 7}));
}

// Ready up to 3 after it came, then 1: R = 4. Beside (2, 10) with D = 5: that one waits for 1, R = 3;
// the first is due at 10 - 3 = 7 after it is ready, behind the 2: R = 3 + 2 + 1.
TEST(NpEdfResponseTime, CountsFromTheArrival) {
  EXPECT_EQ(np_edf_response_time(Tasks{timing(1, 10, 10, 3)}, Policy::Edf).worst_response, responses({4}));
  EXPECT_EQ(np_edf_response_time(Tasks{timing(1, 10, 10, 3), timing(2, 10, 5)}, Policy::Edf).worst_response,
            responses({6, 3}));
}

// U = 3/6 + 2/4 = 1 with jitter, so the busy period never ends, but all repeats after a hyperperiod of 12. D - J = 6
// for both, and nothing blocks.
//   first:  due at 6: w = 2 (floor((w + 3)/4) + 1), one of them due: 2: R = 2 + 3 + 10 - 6 = 9
//   second: due at 6: w = 3, one due: R = 3 + 2 + 9 - 6 = 8; at 10, own 2: 2 + 3 = 5: R = 5 + 2 + 9 - 10 = 6
TEST(NpEdfResponseTime, AnswersWhereTheBusyPeriodNeverEnds) {
  const Tasks tasks{timing(3, 6, 10, 4), timing(2, 4, 9, 3)};
  const Verdict verdict = np_edf_response_time(tasks, Policy::Edf);
  EXPECT_EQ(verdict.answer, np_edf_demand(tasks, Policy::Edf).answer);
  EXPECT_EQ(verdict.worst_response, responses({9, 8}));
}

TEST(NpEdfResponseTime, GivesNoResponsesUnderOverload) {
  const Verdict verdict = np_edf_response_time(Tasks{implicit(3, 4), implicit(2, 7)}, Policy::Edf);
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  EXPECT_EQ(verdict.worst_response, Responses(2));
  EXPECT_TRUE(verdict.witness.has_value());
}

// h = 2^62: two jobs of h - 1 in 2^63 - 1: each waits for the other, R = 2h - 2.
TEST(NpEdfResponseTime, DoesNotWrapNearTheLargestNumbers) {
  const std::int64_t half = std::int64_t{1} << 62;
  EXPECT_EQ(np_edf_response_time(Tasks{implicit(half - 1, kLargest), implicit(half - 1, kLargest)}, Policy::Edf)
                .worst_response,
            responses({2 * (half - 1), 2 * (half - 1)}));
}

// h (2, 5), l (8 = 6 + 2, 20): l due at 20 after 6 of its own: w = 6 + 2 min(floor(w/5) + 1, 4): 6, 10, 12: R = 12 + 2.
// h due at 5 behind a region of 6: w = 6, R = 8. Whole, l starts at 2 and ends at 10; h waits for 8.
TEST(NpEdfResponseTime, LetsOthersGoBetweenTheParts) {
  Tasks tasks{implicit(2, 5), implicit(8, 20)};
  EXPECT_EQ(np_edf_response_time(tasks, Policy::Edf).worst_response, responses({10, 10}));
  tasks[1].regions = JobRegions{Duration{6}, Duration{2}};
  EXPECT_EQ(np_edf_response_time(tasks, Policy::Edf).worst_response, responses({8, 14}));
}

// l (6 = 3 + 3, D = 10) and h (2, 5, D = 5): l due at 10: of h only those due by 10 pass it, two of them: w = 3 + 2 + 2
// = 7: R = 10. A third h comes at 10.
TEST(NpEdfResponseTime, LetsNobodyPassWhoIsDueLater) {
  Tasks tasks{implicit(2, 5), timing(6, 30, 10)};
  tasks[1].regions = JobRegions{Duration{3}, Duration{3}};
  EXPECT_EQ(np_edf_response_time(tasks, Policy::Edf).worst_response, responses({5, 10}));
}

/// The recurrence at every deadline below the end of the busy period; nothing is left out.
/// @pre  U < 1, small numbers.
struct SlowResponses {
  static std::int64_t first(const TaskTiming& task) { return (task.deadline - task.jitter).count(); }
  static std::int64_t due(const TaskTiming& task, std::int64_t d) {
    return d < first(task) ? 0 : (d - first(task)) / task.period.count() + 1;
  }

  static std::int64_t start(const Tasks& tasks, std::size_t of, std::int64_t d) {
    std::int64_t blocking = 0;
    for (const TaskTiming& task : tasks)
      if (first(task) > d) blocking = std::max(blocking, task.longest_region().count());
    const std::int64_t own = due(tasks[of], d) * tasks[of].wcet.count() - tasks[of].last_region().count();
    for (std::int64_t w = 0;;) {
      std::int64_t work = blocking + own;
      for (std::size_t k = 0; k < tasks.size(); ++k) {
        if (k == of) continue;
        // One tick later where nothing blocks: jobs that become ready at w then count.
        const std::int64_t span = w + tasks[k].jitter.count() + (blocking > 0 ? 0 : 1);
        const std::int64_t ready = (span + tasks[k].period.count() - 1) / tasks[k].period.count();
        work += std::min(ready, due(tasks[k], d)) * tasks[k].wcet.count();
      }
      if (work == w) return w;
      w = work;
    }
  }

  static std::int64_t end(const Tasks& tasks) {
    std::int64_t length = 1;
    for (;;) {
      std::int64_t work = 0;
      std::int64_t longest = 0;
      for (const TaskTiming& task : tasks) {
        longest = std::max(longest, task.deadline.count());
        work += (length + task.jitter.count() + task.period.count() - 1) / task.period.count() * task.wcet.count();
      }
      if (work <= length) return length + longest;
      length = work;
    }
  }

  static std::int64_t worst(const Tasks& tasks, std::size_t of) {
    std::int64_t worst = 0;
    for (const TaskTiming& task : tasks)
      for (std::int64_t d = first(task); d <= end(tasks); d += task.period.count())
        if (d >= first(tasks[of]))
          worst = std::max(worst, start(tasks, of, d) + (tasks[of].last_region() + tasks[of].deadline).count() - d);
    return worst;
  }
};

/// Longest and last region of what such jobs can fall into.
void cut_at_random(Tasks& tasks, Dice& dice) {
  for (TaskTiming& task : tasks) {
    const std::int64_t last = dice.roll(1, task.wcet.count());
    const std::int64_t rest = task.wcet.count() - last;
    if (rest > 0) task.regions = JobRegions{Duration{std::max(last, dice.roll((rest + 2) / 3, rest))}, Duration{last}};
  }
}

// In a unit 2^38 times as short the numbers of jobs in regions need 128 bits inside, and the responses are the same.
TEST(NpEdfResponseTime, AnswersAlikeForPartsWith64And128Bits) {
  constexpr std::int64_t kUnit = std::int64_t{1} << 38;
  Dice dice(38);
  for (int round = 0; round < 100; ++round) {
    Tasks tasks = oracle::random_timings(dice, {.wcet_min = 1, .wcet_max = 9, .period_min = 9, .period_max = 40});
    cut_at_random(tasks, dice);
    const Verdict narrow = np_edf_response_time(tasks, Policy::Edf);
    const Verdict wide = np_edf_response_time(scaled(tasks, kUnit), Policy::Edf);
    ASSERT_EQ(narrow.answer, wide.answer);
    for (std::size_t i = 0; i < tasks.size(); ++i)
      if (narrow.worst_response[i]) {
        ASSERT_EQ(*narrow.worst_response[i] * kUnit, wide.worst_response[i]);
      }
  }
}

// Every other set in regions.
TEST(NpEdfResponseTime, AgreesWithTheSlowRecurrenceAndTheDemandTest) {
  Dice dice(1996);
  int schedulable = 0;
  int late = 0;
  for (int round = 0; round < 1500; ++round) {
    Tasks tasks = oracle::random_timings(dice, {.tasks_max = 7,
                                                .wcet_min = 1,
                                                .wcet_max = 25,
                                                .period_min = 30,
                                                .period_max = 160,
                                                .deadline_min = 40,
                                                .deadline_max = 300,
                                                .jitter_max = 30});
    if (!(utilization_sum(tasks).compare_with_one() < 0)) continue;
    if (round % 2 == 1) cut_at_random(tasks, dice);
    SCOPED_TRACE(::testing::PrintToString(tasks));
    const Verdict verdict = np_edf_response_time(tasks, Policy::Edf);
    const Verdict demand = np_edf_demand(tasks, Policy::Edf);
    ASSERT_EQ(verdict.answer, demand.answer);
    ASSERT_EQ(verdict.witness, demand.witness);
    for (std::size_t i = 0; i < tasks.size(); ++i)
      ASSERT_EQ(verdict.worst_response[i], Duration{SlowResponses::worst(tasks, i)}) << i;
    ++(verdict.answer == Answer::Schedulable ? schedulable : late);
  }
  EXPECT_GE(schedulable, 100);
  EXPECT_GE(late, 50);
}

}  // namespace
}  // namespace tutti::internal
