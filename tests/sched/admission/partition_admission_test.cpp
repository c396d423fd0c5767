// What the controller says of a set whose tasks fall into groups that share nothing.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sched/whatif/capacity.hpp"
#include "sched/whatif/remedies.hpp"
#include "sched/whatif/scenario.hpp"
#include "tests/support/random.hpp"
#include "tests/support/random_machine.hpp"
#include "tests/support/task_file.hpp"
#include "tests/support/task_timings.hpp"
#include "tests/support/two_sides.hpp"

namespace tutti::internal {
namespace {

using test::kUp0;
using test::kUp1;
using test::kUp2;
using test::tasks_of;
using test::two_sides;

/// What both links can carry at once, at full rate; now they share it.
constexpr const char* kShared =
    "  shared: [{name: memory, capacity: 2 GB/s, members: [{from: mem0, to: gpu0}, {from: mem0, to: gpu1}]}]\n";

const AdmissionController& controller() {
  static const AdmissionController controller(planners().front());
  return controller;
}

Partition partition(std::vector<std::size_t> tasks) {
  Partition partition;
  for (const std::size_t task : tasks) partition.tasks.emplace_back(task);
  return partition;
}

// 6 us of 10 each: apart both hold, together they ask for 1.2 times the time that there is.
TEST(AdmissionByPartition, AdmitsMoreThanOneMachineCouldDo) {
  const TaskSet apart = tasks_of(two_sides(), {kUp0, kUp1});
  const AdmissionVerdict verdict = controller().decide(apart);
  EXPECT_EQ(verdict.answer, Answer::Schedulable);
  EXPECT_EQ(controller().answer(apart), Answer::Schedulable);
  EXPECT_DOUBLE_EQ(verdict.utilization, 0.6);
  EXPECT_TRUE(verdict.reasons.empty());
  EXPECT_EQ(verdict.partitions, (std::vector{partition({0}), partition({1})}));
  ASSERT_TRUE(verdict.admitted.has_value());
  EXPECT_EQ(verdict.admitted->partitions().size(), 2U);

  const TaskSet joined = tasks_of(two_sides(kShared), {kUp0, kUp1});
  const AdmissionVerdict refused = controller().decide(joined);
  EXPECT_EQ(refused.answer, Answer::NotSchedulable);
  EXPECT_EQ(controller().answer(joined), Answer::NotSchedulable);
  EXPECT_DOUBLE_EQ(refused.utilization, 1.2);
  EXPECT_EQ(refused.partitions, std::vector{partition({0, 1})});
}

// Groups {0, 3}, {1} and {2}: t0 and t3 wait for each other, 6 + 2 us; the others wait for nobody.
TEST(AdmissionByPartition, GivesResponsesInTheOrderOfTheSet) {
  const AdmissionVerdict verdict =
      controller().decide(tasks_of(two_sides(), {kUp0, kUp1, kUp2, "from: mem0, to: gpu0, size: 2 kB"}));
  EXPECT_EQ(verdict.worst_responses,
            (std::vector<std::optional<Duration>>{Duration{8000}, Duration{6000}, Duration{6000}, Duration{8000}}));
  std::vector<std::size_t> asked;
  for (const Verdict& test : verdict.tests) {
    if (test.test == "np_edf_response_time") asked.push_back(test.partition.value());
    EXPECT_EQ(test.partition.has_value(), test.test != "device_memory");
  }
  EXPECT_EQ(asked, (std::vector<std::size_t>{0, 1, 2}));
}

/// Of the partitions {0}, {1, 3} and {2} the second is refused. RM, 1 before 3: the first waits for the second, 6 + 6
/// us in 10.
TaskSet refused_in_the_middle() { return tasks_of(two_sides(), {kUp0, kUp1, kUp2, kUp1}, Policy::Rm); }

TEST(AdmissionByPartition, NamesTheTasksOfTheWholeSet) {
  const TaskSet set = refused_in_the_middle();
  const AdmissionVerdict verdict = controller().decide(set);
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  EXPECT_FALSE(verdict.admitted.has_value());
  int witnesses = 0;
  for (const Verdict& test : verdict.tests) {
    if (!test.witness) continue;
    ++witnesses;
    EXPECT_EQ(test.partition, 1U);
    EXPECT_EQ(test.witness->task, TaskId{1});
    EXPECT_EQ(test.witness->blocker, TaskId{3});
    EXPECT_EQ(test.witness->by_task, (std::vector<TaskLoad>{{TaskId{1}, Duration{6000}}}));
  }
  EXPECT_EQ(witnesses, 1);
  EXPECT_EQ(verdict.reasons,
            (std::vector<std::string>{
                "partition 1: utilization: the tasks ask for 1.2 times the time that there is",
                "partition 1: np_fp_response_time: task 't1' can miss its deadline: in an interval of 10 us there is "
                "12 us of work (6 us of 't1', 6 us of 't3', which had just started)"}));
}

// t3 starts at 0, t1 is ready at 1 and ends at 12,000, due at 10,001. Nothing of t0 and t2, which others run.
TEST(AdmissionByPartition, ShowsARunOfThePartitionThatFails) {
  const auto shown = counter_example(controller().decide(refused_in_the_middle()), Policy::Rm);
  const auto job = [](std::size_t task, std::int64_t at) {
    return ScenarioJob{TaskId{task}, Duration{at}, Duration{at}, Duration{6000}};
  };
  EXPECT_EQ(shown, (Scenario{{job(3, 0), job(1, 1)}}));
}

// The text of a verdict that has a run of its own names the tasks of the whole set, too: t1 and t2, which are 0 and 1
// of their group. t1 has the machine until 6000 and t2, due at 10,000, until 12,000.
TEST(AdmissionByPartition, NamesTheTasksOfARun) {
  TaskSet set = tasks_of(two_sides(), {kUp0, kUp1, kUp1});
  set.arrivals = Arrivals::Periodic;
  set.tasks[1].deadline = Duration{9000};
  for (Task& task : set.tasks) task.best_case = Duration{6000};
  const AdmissionVerdict verdict = controller().decide(set);
  const auto test = std::ranges::find_if(verdict.tests, [](const Verdict& each) { return !each.late_run.empty(); });
  ASSERT_NE(test, verdict.tests.end());
  EXPECT_EQ(test->partition, 1U);
  EXPECT_EQ(test->late_run.back().source, 2U);
  EXPECT_NE(test->reason.find("job 0 of task 2 arrives at 0"), std::string::npos) << test->reason;
  EXPECT_NE(verdict.reasons.back().find("job 0 of 't2' arrives at 0"), std::string::npos) << verdict.reasons.back();
}

// t2 (5 of 10 us) and t3 (4 of 10 us, due after 4) meet only because t3 comes 5 us later; without the offset, or were
// the arrivals forgotten, t3 might come when t2 has just started.
TEST(AdmissionByPartition, KeepsTheArrivals) {
  TaskSet set =
      tasks_of(two_sides(), {kUp0, kUp1, "from: mem1, to: gpu2, size: 5 kB", "from: mem1, to: gpu2, size: 4 kB"});
  set.tasks[3].deadline = Duration{4000};
  set.tasks[3].offset = Duration{5000};
  EXPECT_EQ(controller().decide(set).answer, Answer::NotSchedulable);
  set.arrivals = Arrivals::Periodic;
  EXPECT_EQ(controller().decide(set).answer, Answer::Schedulable);
  EXPECT_EQ(controller().answer(set), Answer::Schedulable);
}

// t2 is due 3 us after its arrival and takes 1. t1's 6 us are too long for it, in two batches 3 us still are, and cut
// to 2 kB each lets it pass after 2 us: 2 + 1 = 3.
TEST(AdmissionByPartition, KeepsPreemptionAndCut) {
  const Topology m = two_sides();
  TaskSet set = tasks_of(m, {kUp0, kUp1, "from: mem0, to: gpu1, size: 1 kB"});
  const Batch half = test::make_batch(m, "  - {from: mem0, to: gpu1, size: 3 kB}\n");
  set.tasks[1].steps = {half, half};
  set.tasks[2].deadline = Duration{3000};
  EXPECT_EQ(controller().decide(set).answer, Answer::NotSchedulable);
  set.preemption = Preemption::BetweenBatches;
  EXPECT_EQ(controller().decide(set).answer, Answer::NotSchedulable);
  set.cut = Bytes{2000};
  const AdmissionVerdict verdict = controller().decide(set);
  EXPECT_EQ(verdict.answer, Answer::Schedulable);
  EXPECT_EQ(controller().answer(set), Answer::Schedulable);
  const AdmittedTaskSet part = verdict.admitted->part(1);
  EXPECT_EQ(part.tasks().preemption, Preemption::BetweenBatches);
  EXPECT_EQ(part.tasks().cut, Bytes{2000});
  EXPECT_EQ(part.planned().bounds[0].plans[0].size(), 2U);
}

// The same where t1 alone is cut, though the set would cut all to 100 bytes.
TEST(AdmissionByPartition, CutsEachTaskAsItSays) {
  const Topology m = two_sides();
  TaskSet set = tasks_of(m, {kUp0, kUp1, "from: mem0, to: gpu1, size: 1 kB"});
  set.tasks[2].deadline = Duration{3000};
  set.preemption = Preemption::BetweenBatches;
  for (Task& task : set.tasks) task.cut = Bytes{1'000'000};
  EXPECT_EQ(controller().answer_as_cut(set), Answer::NotSchedulable);
  set.cut = Bytes{100};
  EXPECT_EQ(controller().answer_as_cut(set), Answer::NotSchedulable);
  set.tasks[1].cut = Bytes{2000};
  const AdmissionVerdict verdict = controller().decide(set);
  ASSERT_EQ(verdict.answer, Answer::Schedulable);
  EXPECT_TRUE(verdict.cuts.empty());
  EXPECT_EQ(verdict.admitted->planned().bounds[1].plans[0].size(), 3U);
  EXPECT_EQ(verdict.admitted->planned().bounds[2].plans[0].size(), 1U);
}

// 9.9 us of 10 in one partition, which can grow to 10; 3 of 10 in the other.
TEST(AdmissionByPartition, GrowsAsFarAsTheFullestPartition) {
  const TaskSet set = tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 3 kB", "from: mem0, to: gpu1, size: 9900 B"});
  const AdmissionVerdict verdict = controller().decide(set);
  EXPECT_EQ(critical_scaling_factor(set, verdict), 10'101);  // 10,000 / 9900 = 1.0101...
  EXPECT_DOUBLE_EQ(verdict.utilization, 0.99);
}

// Three tasks with 0.9 of all time on gpu0, gpu1 and gpu2, and one more with 0.2 on gpu2: what remedies it belongs to
// the last two. Were the time of all four counted together, 2.9, no change of one of them would do.
TEST(AdmissionByPartition, IsMendedWhereItFails) {
  const std::string machine = R"(version: 1
machine:
  name: m
  vertices:
    mem0: {kind: memory}
    gpu0: {kind: gpu}
    gpu1: {kind: gpu}
    gpu2: {kind: gpu}
  links:
    - {from: mem0, to: gpu0, bandwidth: 1 GB/s}
    - {from: mem0, to: gpu1, bandwidth: 1 GB/s}
    - {from: mem0, to: gpu2, bandwidth: 1 GB/s}
)";
  const auto task = [](const std::string& name, const std::string& gpu, const std::string& size) {
    return "  - {name: " + name + ", period: 10 ms, job: [{batch: [{from: mem0, to: " + gpu + ", size: " + size +
           "}]}]}\n";
  };
  const TaskStudy study =
      test::make_study("version: 1\nmachine: m.yaml\ntasks:\n" + task("a", "gpu0", "9 MB") + task("b", "gpu1", "9 MB") +
                           task("c", "gpu2", "9 MB") + task("d", "gpu2", "2 MB"),
                       machine);
  const AdmissionVerdict refused = controller().decide(study.tasks);
  ASSERT_EQ(refused.answer, Answer::NotSchedulable);
  const Remedies remedies = find_remedies(study, planners().front(), refused);
  std::vector<std::string> tasks;
  for (const Remedy& remedy : remedies.remedies) tasks.push_back(remedy.tunable.task);
  ASSERT_FALSE(tasks.empty());
  EXPECT_TRUE(std::ranges::all_of(tasks, [](const std::string& name) { return name == "c" || name == "d"; }))
      << ::testing::PrintToString(tasks);
  EXPECT_EQ(remedies.critical_scaling_factor, 9090);  // 10/11
}

/// A set of random batches with periods of 0.5 to 3 times the work of all.
TaskSet random_set(const Topology& machine, std::uint64_t seed) {
  test::Random random(seed);
  TaskSet set{machine, random.one_in(2) ? Policy::Edf : Policy::Dm, {}};
  Duration work{100};
  for (std::uint64_t i = 0; i < 4; ++i) {
    Task& task = set.tasks.emplace_back();
    task.name = "t" + std::to_string(i);
    task.steps = {test::random_batch(machine, seed * 10 + i, {.most_streams = 2})};
    work += bound_job(task, set.machine, planners().front()).wcet.bound();
  }
  for (Task& task : set.tasks) {
    task.period = work * random.between(5, 30) / 10;
    task.deadline = task.period * random.between(8, 12) / 10;
    task.jitter = task.period * random.between(0, 2) / 20;
  }
  return set;
}

/// The tasks of a partition as a set of their own.
TaskSet alone(const TaskSet& set, const Partition& partition) {
  TaskSet group = set;
  group.tasks.clear();
  for (const TaskId task : partition.tasks) group.tasks.push_back(set.tasks[task.index()]);
  return group;
}

// Each partition is decided as if the others were not there; the part of an admitted set is what would have been
// admitted alone. A single partition is decided by the tests of all tasks.
TEST(AdmissionByPartition, IsWhatEachGroupGetsAlone) {
  int admitted = 0, refused = 0, single = 0;
  for (std::uint64_t seed = 1; seed <= test::rounds(1500U); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const TaskSet set = random_set(test::random_machine(seed), seed);
    const AdmissionVerdict verdict = controller().decide(set);
    EXPECT_EQ(controller().answer(set), verdict.answer);
    if (verdict.partitions.size() == 1) {
      ++single;
      EXPECT_EQ(verdict.answer, answer_of(verdict.timings, set.policy));
      continue;
    }
    bool all_hold = true, none_refused = true;
    for (std::size_t i = 0; i < verdict.partitions.size(); ++i) {
      const Partition& partition = verdict.partitions[i];
      const TaskSet group = alone(set, partition);
      const AdmissionVerdict own = controller().decide(group);
      EXPECT_EQ(own.partitions.size(), 1U);
      EXPECT_EQ(own.timings, timings_of(partition, verdict.timings));
      for (std::size_t t = 0; t < partition.tasks.size(); ++t)
        EXPECT_EQ(own.worst_responses[t], verdict.worst_responses[partition.tasks[t].index()]);
      all_hold = all_hold && own.answer == Answer::Schedulable;
      none_refused = none_refused && own.answer != Answer::NotSchedulable;
      if (!verdict.admitted) continue;
      const AdmittedTaskSet part = verdict.admitted->part(i);
      EXPECT_EQ(part.tasks(), group);
      EXPECT_EQ(part.partitions().size(), 1U);
      EXPECT_TRUE(std::ranges::equal(part.timings(), own.timings));
      EXPECT_TRUE(std::ranges::equal(part.worst_responses(), own.worst_responses));
    }
    EXPECT_EQ(verdict.answer == Answer::Schedulable, all_hold);
    EXPECT_EQ(verdict.answer != Answer::NotSchedulable, none_refused);
    ++(all_hold ? admitted : refused);
    if (const auto shown = counter_example(verdict, set.policy)) {
      EXPECT_TRUE(first_miss(verdict.timings, set.policy, *shown).has_value());
      const auto same = [&](const Partition& partition) {
        return std::ranges::all_of(
            shown->jobs, [&](const ScenarioJob& job) { return std::ranges::binary_search(partition.tasks, job.task); });
      };
      EXPECT_EQ(std::ranges::count_if(verdict.partitions, same), 1);
    }
  }
  EXPECT_GT(admitted, test::rounds(50));
  EXPECT_GT(refused, test::rounds(20) / 4);
  EXPECT_GT(single, test::rounds(500));
}

}  // namespace
}  // namespace tutti::internal
