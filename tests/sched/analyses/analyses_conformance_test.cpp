#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sched/analyses/analysis.hpp"
#include "tests/support/largest.hpp"
#include "tests/support/np_adversary.hpp"
#include "tests/support/random.hpp"
#include "tests/support/task_timings.hpp"

namespace tutti::internal {

/// Shown by GoogleTest as the parameter of a test.
inline void PrintTo(const Analysis& analysis, std::ostream* out) { *out << analysis.name; }

namespace {

using oracle::AdversaryOutcome;
using oracle::AdversaryRules;
using oracle::Dice;
using oracle::implicit;
using oracle::play_adversary;
using oracle::scaled;
using oracle::timing;
using oracle::TimingRanges;
using Tasks = std::vector<TaskTiming>;

using test::kLargest;
constexpr Policy kEveryPolicy[] = {Policy::Edf, Policy::Rm, Policy::Dm, Policy::Given};

/// Every row of the table; a new one is held to the same as the others.
class EveryAnalysis : public ::testing::TestWithParam<Analysis> {
 protected:
  /// Calls `visit(tasks, policy)` for `rounds` random small sets (fewer under sanitizers) to which the test applies,
  /// for each policy it knows.
  template <class Visit>
  void for_random_sets(std::uint64_t seed, const TimingRanges& ranges, int rounds, Visit visit) const {
    Dice dice(seed);
    for (int round = 0; round < test::rounds(rounds); ++round) {
      const Tasks tasks = oracle::random_timings(dice, ranges);
      for (const Policy policy : kEveryPolicy) {
        if (!GetParam().applies(tasks, policy)) continue;
        SCOPED_TRACE(std::string(to_string(policy)) + " " + ::testing::PrintToString(tasks));
        visit(tasks, policy);
        if (HasFatalFailure()) return;
      }
    }
  }

  Verdict decide(const Tasks& tasks, Policy policy) const { return GetParam().decide(tasks, policy); }
};

/// Deadlines are periods; shorter or longer deadlines; late readiness on top.
constexpr TimingRanges kImplicit{.wcet_max = 4, .period_max = 9, .implicit_deadlines = true};
constexpr TimingRanges kAnyDeadline{.wcet_max = 4, .period_max = 9, .deadline_max = 14};
constexpr TimingRanges kJitter{.period_max = 6, .deadline_max = 12, .jitter_max = 4};
constexpr TimingRanges kFourTasks{
    .tasks_min = 4, .tasks_max = 4, .wcet_max = 2, .period_min = 4, .period_max = 9, .implicit_deadlines = true};

/// The more tasks, the slower the adversary.
struct Family {
  TimingRanges ranges;
  int rounds;
};
constexpr Family kFamilies[] = {{kImplicit, 300}, {kAnyDeadline, 150}, {kJitter, 150}, {kFourTasks, 60}};

void expect_agreement(const Verdict& verdict, const AdversaryOutcome& truth) {
  // A miss that was found is one, even where not every pattern was tried.
  if (truth.missed) {
    ASSERT_NE(verdict.answer, Answer::Schedulable);
  }
  if (!truth.complete) return;
  switch (verdict.exactness) {
    case Exactness::Exact:
      ASSERT_EQ(verdict.answer, truth.missed ? Answer::NotSchedulable : Answer::Schedulable);
      break;
    case Exactness::Sufficient: ASSERT_NE(verdict.answer, Answer::NotSchedulable); break;
    case Exactness::Necessary:
      ASSERT_NE(verdict.answer, Answer::Schedulable);
      if (!truth.missed) {
        ASSERT_NE(verdict.answer, Answer::NotSchedulable);
      }
      break;
  }
}

// The adversary knows no formula, only the scheduler: it misses a deadline exactly where an exact test says so.
TEST_P(EveryAnalysis, AgreesWithTheAdversary) {
  int schedulable = 0;
  int missed = 0;
  int open = 0;
  for (const auto& [ranges, rounds] : kFamilies) {
    for_random_sets(42, ranges, rounds, [&](const Tasks& tasks, Policy policy) {
      const AdversaryOutcome truth = play_adversary(tasks, policy, {.most_states = 100'000});
      expect_agreement(decide(tasks, policy), truth);
      ++(truth.missed ? missed : truth.complete ? schedulable : open);
    });
  }
  EXPECT_GE(schedulable, test::rounds(100));
  EXPECT_GE(missed, test::rounds(100));
  EXPECT_LE(open, (schedulable + missed) / 20);
}

// Jobs that end early open up other orders; none of them is worse than what the tests assume.
TEST_P(EveryAnalysis, AgreesWithAnAdversaryWhoseJobsMayEndEarly) {
  for (const TimingRanges& ranges : {kImplicit, kJitter}) {
    for_random_sets(43, ranges, 80, [&](const Tasks& tasks, Policy policy) {
      const AdversaryRules rules{.may_finish_early = true, .most_states = 100'000};
      expect_agreement(decide(tasks, policy), play_adversary(tasks, policy, rules));
    });
  }
}

TEST_P(EveryAnalysis, AnswersAloneAsItDecides) {
  if (GetParam().answer == nullptr) return;
  for (const auto& [ranges, rounds] : kFamilies)
    for_random_sets(45, ranges, rounds, [&](const Tasks& tasks, Policy policy) {
      ASSERT_EQ(GetParam().answer(tasks, policy), decide(tasks, policy).answer);
    });
}

// The adversary comes near a supremum, or reaches it: a blocker starts one of its steps early, and under EDF a job may
// arrive one late, so that another one with its deadline goes first. There two ns stand for one, so that both steps
// together stay below it.
TEST_P(EveryAnalysis, BoundsTheResponsesOfTheAdversary) {
  int asked = 0;
  int complete = 0;
  for (const auto& [ranges, rounds] : kFamilies) {
    for_random_sets(44, ranges, rounds, [&](const Tasks& tasks, Policy policy) {
      const Verdict verdict = decide(tasks, policy);
      if (verdict.worst_response.empty()) return;
      ASSERT_EQ(verdict.worst_response.size(), tasks.size());
      const bool bounded =
          std::ranges::all_of(verdict.worst_response, [](const auto& time) { return time.has_value(); });
      if (!bounded) return;
      const std::int64_t factor = policy == Policy::Edf ? 2 : 1;
      const AdversaryOutcome truth =
          play_adversary(scaled(tasks, factor), policy, {.stop_at_miss = false, .most_states = 100'000});
      ++asked;
      complete += truth.complete ? 1 : 0;
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        const std::int64_t worst = (truth.worst_half_ns[i] + 2 * factor - 1) / (2 * factor);
        ASSERT_GE(verdict.worst_response[i]->count(), worst);
        if (truth.complete && verdict.exactness == Exactness::Exact) {
          ASSERT_EQ(verdict.worst_response[i]->count(), worst);
        }
      }
    });
  }
  EXPECT_TRUE(asked == 0 || complete >= test::rounds(300)) << complete << " of " << asked;
}

void expect_well_formed(const Verdict& verdict, const Analysis& analysis, const Tasks& tasks) {
  ASSERT_EQ(verdict.test, analysis.name);
  ASSERT_EQ(verdict.exactness, analysis.exactness);
  // A reason in words, unless there is nothing to explain or a witness explains it.
  ASSERT_EQ(verdict.reason.empty(), verdict.answer == Answer::Schedulable || verdict.witness.has_value());
  ASSERT_TRUE(verdict.worst_response.empty() || verdict.worst_response.size() == tasks.size());
  if (!verdict.witness) return;
  ASSERT_EQ(verdict.answer, Answer::NotSchedulable);
  const Witness& witness = *verdict.witness;
  ASSERT_EQ(witness.blocker.has_value(), witness.blocking > Duration::zero());
  if (witness.blocker) {
    ASSERT_EQ(witness.blocking, tasks.at(witness.blocker->index()).wcet);
  }
  if (witness.task) {
    ASSERT_LT(witness.task->index(), tasks.size());
  }
  ASSERT_GT(witness.load, witness.interval);
  Duration sum = witness.blocking;
  for (const TaskLoad& share : witness.by_task) {
    ASSERT_GT(share.load, Duration::zero());
    ASSERT_EQ(share.load % tasks.at(share.task.index()).wcet, Duration::zero());
    ASSERT_NE(share.task, witness.blocker);
    sum += share.load;
  }
  ASSERT_EQ(sum, witness.load);
  ASSERT_TRUE(std::ranges::is_sorted(witness.by_task, {}, &TaskLoad::task));
}

// A witness shows its own arithmetic: blocking and the tasks' shares add up to a load that exceeds the interval.
TEST_P(EveryAnalysis, GivesWellFormedVerdicts) {
  for (const auto& [ranges, rounds] : kFamilies)
    for_random_sets(45, ranges, 3 * rounds, [&](const Tasks& tasks, Policy policy) {
      expect_well_formed(decide(tasks, policy), GetParam(), tasks);
    });
}

// In a unit 2^38 times as short the numbers need 128 bits inside; all answers and times are the same in that unit.
TEST_P(EveryAnalysis, AnswersAlikeWith64And128Bits) {
  constexpr std::int64_t kUnit = std::int64_t{1} << 38;
  for (const auto& [ranges, rounds] : kFamilies) {
    for_random_sets(48, ranges, rounds, [&](const Tasks& tasks, Policy policy) {
      const Verdict narrow = decide(tasks, policy);
      const Verdict wide = decide(scaled(tasks, kUnit), policy);
      ASSERT_EQ(narrow.answer, wide.answer);
      ASSERT_EQ(narrow.witness.has_value(), wide.witness.has_value());
      if (narrow.witness) {
        ASSERT_EQ(narrow.witness->interval * kUnit, wide.witness->interval);
        ASSERT_EQ(narrow.witness->load * kUnit, wide.witness->load);
        ASSERT_EQ(narrow.witness->blocker, wide.witness->blocker);
        ASSERT_EQ(narrow.witness->task, wide.witness->task);
      }
      ASSERT_EQ(narrow.worst_response.size(), wide.worst_response.size());
      for (std::size_t i = 0; i < narrow.worst_response.size(); ++i) {
        ASSERT_EQ(narrow.worst_response[i].has_value(), wide.worst_response[i].has_value());
        if (narrow.worst_response[i]) {
          ASSERT_EQ(*narrow.worst_response[i] * kUnit, *wide.worst_response[i]);
        }
      }
    });
  }
}

TEST_P(EveryAnalysis, GivesTheSameVerdictTwice) {
  for_random_sets(46, kImplicit, 50, [&](const Tasks& tasks, Policy policy) {
    const Verdict once = decide(tasks, policy);
    const Verdict again = decide(tasks, policy);
    ASSERT_EQ(once.answer, again.answer);
    ASSERT_EQ(once.witness, again.witness);
    ASSERT_EQ(once.reason, again.reason);
    ASSERT_EQ(once.worst_response, again.worst_response);
  });
}

TEST_P(EveryAnalysis, FindsNothingWrongWithAnEmptySet) {
  for (const Policy policy : kEveryPolicy) {
    if (!GetParam().applies({}, policy)) continue;
    const Answer proof = GetParam().exactness == Exactness::Necessary ? Answer::Unknown : Answer::Schedulable;
    EXPECT_EQ(decide({}, policy).answer, proof);
  }
}

// Sets whose truth is plain, scaled up so that sums and products leave 64 bits:
//   two tasks of 1/4 and D = T: each waits at most for the other, 2^62 <= 2^63 - 1
//   three of 1/2, or C > T: more than all the time
// A test may give up in words, but must not be wrong.
TEST_P(EveryAnalysis, IsNeverWrongNearTheLargestNumbers) {
  const std::int64_t quarter = kLargest / 4;
  const Tasks fits{implicit(quarter, kLargest), implicit(quarter, kLargest)};
  const std::vector<Tasks> overloads{Tasks(3, implicit(kLargest / 2, kLargest)), Tasks(50, implicit(kLargest, 1)),
                                     Tasks(4, timing(kLargest, kLargest, kLargest, kLargest)),
                                     Tasks(2, timing(kLargest, kLargest - 1, 1, kLargest))};
  for (const Policy policy : kEveryPolicy) {
    if (GetParam().applies(fits, policy)) {
      const Verdict verdict = decide(fits, policy);
      expect_well_formed(verdict, GetParam(), fits);
      EXPECT_NE(verdict.answer, Answer::NotSchedulable);
    }
    for (const Tasks& tasks : overloads) {
      if (!GetParam().applies(tasks, policy)) continue;
      const Verdict verdict = decide(tasks, policy);
      expect_well_formed(verdict, GetParam(), tasks);
      EXPECT_NE(verdict.answer, Answer::Schedulable);
    }
  }
}

// Random numbers of every magnitude; nothing is known about the truth but that some answer comes, and is well formed.
TEST_P(EveryAnalysis, EndsOnNumbersOfEveryMagnitude) {
  Dice dice(47);
  const auto any = [&](std::int64_t low) { return std::max(low, dice.roll(0, kLargest - 1) >> dice.roll(0, 62)); };
  for (int round = 0; round < test::rounds(40); ++round) {
    Tasks tasks(static_cast<std::size_t>(dice.roll(1, 6)));
    for (TaskTiming& task : tasks) {
      const std::int64_t period = any(1);
      task = round % 2 == 0 ? implicit(period / dice.roll(4, 9), period) : timing(any(0), period, any(1), any(0));
    }
    SCOPED_TRACE(::testing::PrintToString(tasks));
    const Policy policy = kEveryPolicy[static_cast<std::size_t>(round) / 2 % std::size(kEveryPolicy)];
    if (GetParam().applies(tasks, policy)) expect_well_formed(decide(tasks, policy), GetParam(), tasks);
    if (HasFatalFailure()) return;
  }
}

/// Those that answer for sporadic arrivals, which is what the adversary plays.
std::vector<Analysis> sporadic_analyses() {
  std::vector<Analysis> rows(analyses().begin(), analyses().end());
  std::erase_if(rows, [](const Analysis& row) { return row.exact_for == Arrivals::Periodic; });
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Analyses, EveryAnalysis, ::testing::ValuesIn(sporadic_analyses()),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(Analyses, HaveDifferentNames) {
  std::vector<std::string_view> names;
  for (const Analysis& analysis : analyses()) names.push_back(analysis.name);
  std::ranges::sort(names);
  EXPECT_TRUE(std::ranges::adjacent_find(names) == names.end());
}

// The plainest reason is printed first.
TEST(Analyses, AskForTheUtilizationFirst) {
  ASSERT_FALSE(analyses().empty());
  EXPECT_EQ(analyses().front().name, "utilization");
}

// Each policy has a test that can prove a set schedulable.
TEST(Analyses, HaveAProofForEveryPolicy) {
  const Tasks tasks{timing(1, 10, 8, 1), implicit(1, 20)};
  for (const Policy policy : kEveryPolicy)
    EXPECT_TRUE(std::ranges::any_of(analyses(), [&](const Analysis& analysis) {
      return analysis.applies(tasks, policy) && analysis.decide(tasks, policy).answer == Answer::Schedulable;
    }));
}

}  // namespace
}  // namespace tutti::internal
