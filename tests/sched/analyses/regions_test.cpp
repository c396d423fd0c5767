// Jobs of several regions, between which more urgent ones may take the machine; times in ns.
#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "sched/analyses/np_edf_demand.hpp"
#include "sched/analyses/np_edf_response_time.hpp"
#include "sched/analyses/np_fp_response_time.hpp"
#include "tests/support/np_adversary.hpp"
#include "tests/support/random.hpp"
#include "tests/support/task_timings.hpp"

namespace tutti::internal {
namespace {

using oracle::Dice;
using oracle::implicit;
using oracle::timing;
using Tasks = std::vector<TaskTiming>;
using Regions = std::vector<Duration>;

TaskTiming in_regions(TaskTiming task, std::int64_t longest, std::int64_t last) {
  task.regions = JobRegions{Duration{longest}, Duration{last}};
  return task;
}

// 2 of the short one and at most 3 of the long one fit into 5; all of the long one's 8 do not.
TEST(Regions, BlockByTheLongestAlone) {
  const Tasks whole{implicit(2, 5), implicit(8, 20)};
  const Tasks regions{implicit(2, 5), in_regions(implicit(8, 20), 3, 2)};
  const Tasks longer{implicit(2, 5), in_regions(implicit(8, 20), 4, 2)};
  for (const Policy policy : {Policy::Edf, Policy::Rm}) {
    const auto answer = [&](const Tasks& tasks) {
      return (policy == Policy::Edf ? np_edf_demand : np_fp_response_time)(tasks, policy).answer;
    };
    EXPECT_EQ(answer(whole), Answer::NotSchedulable);
    EXPECT_EQ(answer(regions), Answer::Schedulable);
    EXPECT_EQ(answer(longer), Answer::NotSchedulable);
  }
}

// Interval 5: 2 of its own and the region of 4.
TEST(Regions, AreWhatTheWitnessNames) {
  const Verdict verdict = np_edf_demand(Tasks{implicit(2, 5), in_regions(implicit(8, 20), 4, 2)}, Policy::Edf);
  const Witness expected{.task = TaskId{0u},
                         .interval = Duration{5},
                         .load = Duration{6},
                         .blocking = Duration{4},
                         .blocker = TaskId{1u},
                         .by_task = {{TaskId{0u}, Duration{2}}}};
  EXPECT_EQ(verdict.witness, expected);
}

// h (2, 5) above l (8 = 6 + 2, 20). Whole, l starts at 2 and ends at 10. In regions its last one starts at the smallest
// w with w = 6 + (floor(w / 5) + 1) 2: 12 = 6 + 3 x 2, so it ends at 14. And h: 6 + 2 = 8 > 5 blocked by the region.
TEST(Regions, MakeTheJobItselfLater) {
  const Verdict whole = np_fp_response_time(Tasks{implicit(2, 5), implicit(8, 20)}, Policy::Rm);
  const Verdict regions = np_fp_response_time(Tasks{implicit(2, 5), in_regions(implicit(8, 20), 6, 2)}, Policy::Rm);
  EXPECT_EQ(whole.worst_response[1], Duration{10});
  EXPECT_EQ(regions.worst_response[1], Duration{14});
  EXPECT_EQ(regions.worst_response[0], Duration{8});
}

/// A random set with the regions that its jobs fall into.
struct Cut {
  Tasks tasks;
  std::vector<Regions> regions;
};

Cut random_cut(Dice& dice) {
  Cut made;
  const auto count = static_cast<std::size_t>(dice.roll(2, 3));
  for (std::size_t i = 0; i < count; ++i) {
    Regions& regions = made.regions.emplace_back(static_cast<std::size_t>(dice.roll(1, 3)));
    for (Duration& region : regions) region = Duration{dice.roll(1, 2)};
    const std::int64_t period = dice.roll(4, 11);
    TaskTiming& task = made.tasks.emplace_back(
        timing(0, period, dice.roll(0, 1) == 0 ? period : dice.roll(3, 14), dice.roll(0, 1) * dice.roll(0, 2)));
    task.wcet = std::accumulate(regions.begin(), regions.end(), Duration{0});
    if (regions.size() > 1)
      task.regions = JobRegions{*std::max_element(regions.begin(), regions.end()), regions.back()};
  }
  return made;
}

// Exact under EDF and fixed priorities: the adversary, who may end regions early, finds a miss if and only if there is
// one, and no later response than the bound.
TEST(Regions, AreJudgedAsTheAdversaryDoes) {
  Dice dice(11);
  int missed = 0, kept = 0;
  for (int round = 0; round < test::rounds(250); ++round) {
    const Cut cut = random_cut(dice);
    for (const Policy policy : {Policy::Edf, Policy::Rm, Policy::Dm}) {
      SCOPED_TRACE(std::string(to_string(policy)) + " " + ::testing::PrintToString(cut.tasks));
      oracle::AdversaryRules rules{.may_finish_early = true, .most_states = 60'000};
      rules.regions = cut.regions;
      const auto truth = oracle::play_adversary(cut.tasks, policy, rules);
      const Verdict verdict = (policy == Policy::Edf ? np_edf_demand : np_fp_response_time)(cut.tasks, policy);
      if (truth.missed) {
        ASSERT_EQ(verdict.answer, Answer::NotSchedulable);
        ++missed;
      } else if (truth.complete) {
        ASSERT_EQ(verdict.answer, Answer::Schedulable);
        ++kept;
        for (std::size_t i = 0; policy != Policy::Edf && i < cut.tasks.size(); ++i)
          ASSERT_EQ(verdict.worst_response[i], Duration{(truth.worst_half_ns[i] + 1) / 2}) << i;
      }
    }
  }
  EXPECT_GT(missed, test::rounds(100));
  EXPECT_GT(kept, test::rounds(100));
}

/// Two ns stand for one: a blocker's start a step early and an arrival a step late cost less than one ns together.
Cut in_half_ns(Cut cut) {
  for (TaskTiming& task : cut.tasks) {
    for (Duration* time : {&task.wcet, &task.period, &task.deadline, &task.jitter}) *time *= 2;
    if (task.regions) task.regions = JobRegions{2 * task.regions->longest, 2 * task.regions->last};
  }
  for (Regions& regions : cut.regions)
    for (Duration& region : regions) region *= 2;
  return cut;
}

// Under EDF, too, he finds exactly these responses, also beyond deadlines.
TEST(Regions, RespondUnderEdfAsTheAdversaryFinds) {
  Dice dice(12);
  int compared = 0, in_regions = 0;
  for (int round = 0; round < test::rounds(1600); ++round) {
    const Cut cut = random_cut(dice);
    SCOPED_TRACE(::testing::PrintToString(cut.tasks));
    const Verdict verdict = np_edf_response_time(cut.tasks, Policy::Edf);
    ASSERT_EQ(verdict.answer, np_edf_demand(cut.tasks, Policy::Edf).answer);
    if (!std::ranges::all_of(verdict.worst_response, [](const auto& time) { return time.has_value(); })) continue;
    oracle::AdversaryRules rules{.stop_at_miss = false, .may_finish_early = true, .most_states = 20'000};
    const Cut fine = in_half_ns(cut);
    rules.regions = fine.regions;
    const auto truth = oracle::play_adversary(fine.tasks, Policy::Edf, rules);
    for (std::size_t i = 0; i < cut.tasks.size(); ++i) {
      const Duration worst{(truth.worst_half_ns[i] + 3) / 4};
      ASSERT_GE(verdict.worst_response[i], worst) << i;
      if (truth.complete) {
        ASSERT_EQ(verdict.worst_response[i], worst) << i;
      }
    }
    compared += truth.complete ? 1 : 0;
    in_regions +=
        truth.complete && std::ranges::any_of(cut.tasks, [](const auto& task) { return task.regions.has_value(); });
  }
  EXPECT_GT(compared, test::rounds(500));
  EXPECT_GT(in_regions, test::rounds(400));
}

}  // namespace
}  // namespace tutti::internal
