#include <string>

#include <gtest/gtest.h>

#include "sched/admission/admission.hpp"
#include "sched/admission/changing_task_set.hpp"
#include "sched/whatif/remedies.hpp"
#include "tests/support/task_file.hpp"

namespace tutti::internal {
namespace {

const Planner& planner() { return *find_planner("completion_aligned"); }

/// Two tasks, (2, 10) and (3, 20), and a chain over both. Under EDF R = 5 for both; the first is due 10 after it
/// arrives and the second 20, so L = max(0, 10 - 20) = 0, and the latency is at most 10 + 0 + 20 + 5 = 35 ms.
std::string set_with(const std::string& more) {
  return "version: 1\ntasks:\n- {name: camera, period: 10 ms, wcet: 2 ms}\n- {name: gate, period: 20 ms, wcet: 3 ms}\n"
         "chains:\n- {name: reject, tasks: [camera, gate]" +
         more + "}\n";
}

TEST(ChainAdmission, BoundsTheLatencyOfEachChain) {
  const TaskStudy study = test::make_study(set_with(""));
  ASSERT_EQ(study.tasks.chains.size(), 1U);
  const AdmissionVerdict verdict = AdmissionController(planner()).decide(study.tasks);
  EXPECT_EQ(verdict.answer, Answer::Schedulable);
  ASSERT_EQ(verdict.chain_latencies.size(), 1U);
  EXPECT_EQ(verdict.chain_latencies[0], Duration{35'000'000});
  EXPECT_TRUE(verdict.admitted);
}

TEST(ChainAdmission, KeepsADeadlineOrSaysByHowMuchItDoesNot) {
  const AdmissionController controller(planner());
  const TaskSet kept = test::make_study(set_with(", deadline: 35 ms")).tasks;
  EXPECT_EQ(controller.decide(kept).answer, Answer::Schedulable);
  EXPECT_EQ(controller.answer(kept), Answer::Schedulable);
  const TaskSet broken = test::make_study(set_with(", deadline: 34999 us")).tasks;
  const AdmissionVerdict verdict = controller.decide(broken);
  EXPECT_EQ(verdict.answer, Answer::Unknown);
  EXPECT_EQ(controller.answer(broken), Answer::Unknown);
  EXPECT_FALSE(verdict.admitted);
  EXPECT_EQ(verdict.chain_latencies[0], Duration{35'000'000});
  EXPECT_EQ(verdict.reasons,
            std::vector<std::string>{"chain 'reject': no proof that its reaction time keeps its deadline of 34.999 ms; "
                                     "the bound is 35 ms"});
}

TEST(ChainAdmission, GivesNoBoundWhereADeadlineOfATaskIsNotGuaranteed) {
  TaskSet set = test::make_study(set_with(", deadline: 1 s")).tasks;
  set.tasks[0].declared_wcet = Duration{11'000'000};
  const AdmissionVerdict verdict = AdmissionController(planner()).decide(set);
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  EXPECT_EQ(verdict.chain_latencies[0], std::nullopt);
  for (const std::string& reason : verdict.reasons) EXPECT_EQ(reason.find("chain"), std::string::npos) << reason;
}

// A budget of 1 ms lets a job of the camera be aborted that keeps to its Wcet of 2 ms: no reaction is certain.
TEST(ChainAdmission, GivesNoBoundWhereJobsMayEndWithoutAResult) {
  TaskSet set = test::make_study(set_with(", deadline: 1 s")).tasks;
  set.tasks[0].overrun = {OverrunPolicy::Abort, Duration{1'000'000}, 0};
  const AdmissionVerdict verdict = AdmissionController(planner()).decide(set);
  EXPECT_EQ(verdict.answer, Answer::Unknown);
  EXPECT_EQ(verdict.chain_latencies[0], std::nullopt);
  EXPECT_EQ(
      verdict.reasons.front(),
      "chain 'reject': no proof that its reaction time keeps its deadline of 1 s; there is no bound, since jobs of "
      "'camera' over their budget may end without a result");
  set.tasks[0].overrun.budget = Duration{2'000'000};
  EXPECT_EQ(AdmissionController(planner()).decide(set).chain_latencies[0], Duration{35'000'000});
}

// 34 ms in place of 35: a period less by 1 ms does.
TEST(ChainAdmission, FindsRemediesForAChain) {
  const TaskStudy study = test::make_study(set_with(", deadline: 34 ms"));
  const Remedies found = find_remedies(study, planner(), AdmissionController(planner()).decide(study.tasks));
  ASSERT_FALSE(found.remedies.empty());
  for (const Remedy& remedy : found.remedies) {
    const auto changed = with_value(study, remedy.tunable, remedy.to);
    ASSERT_TRUE(changed);
    EXPECT_EQ(AdmissionController(planner()).answer(*changed), Answer::Schedulable);
  }
}

TEST(ChainAdmission, DoesNotPromiseAChainsDeadlineWhereTasksComeAndGo) {
  const TaskSet set = test::make_study(set_with(", deadline: 1 s")).tasks;
  const auto changing = ChangingTaskSet::make(AdmissionController(planner()), set, {});
  ASSERT_FALSE(changing);
  EXPECT_EQ(changing.error().message,
            "the deadline of chain 'reject' is not guaranteed where tasks come and go; leave it out");
  EXPECT_TRUE(ChangingTaskSet::make(AdmissionController(planner()), test::make_study(set_with("")).tasks, {}));
}

// Tasks of one partition have other ids there.
TEST(ChainAdmission, LeavesChainsOutOfPartitions) {
  const AdmissionVerdict verdict = AdmissionController(planner()).decide(test::make_study(set_with("")).tasks);
  EXPECT_EQ(verdict.admitted->tasks().chains.size(), 1U);
  EXPECT_TRUE(verdict.admitted->part(0).tasks().chains.empty());
  EXPECT_TRUE(
      AdmissionController(planner()).decide_as_one(test::make_study(set_with("")).tasks).chain_latencies.empty());
}

}  // namespace
}  // namespace tutti::internal
