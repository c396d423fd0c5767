#include "sched/partition.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/random.hpp"
#include "tests/support/random_machine.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti {
namespace {

/// Two sides, each with a memory, a cpu and two GPUs on links of their own at 1 byte/ns; a link between the cpus.
Topology machine(const std::string& rest = "") {
  return test::make_machine(R"(  vertices:
    mem0: {kind: memory}
    mem1: {kind: memory}
    cpu0: {kind: cpu}
    cpu1: {kind: cpu}
    gpu0: {kind: gpu}
    gpu1: {kind: gpu}
    gpu2: {kind: gpu}
  links:
    - {from: mem0, to: gpu0, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: mem0, to: gpu1, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: mem0, to: cpu0, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: cpu0, to: cpu1, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: cpu1, to: mem1, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: cpu1, to: gpu2, bandwidth: 1 GB/s, back: 1 GB/s}
  peer_access: none
)" + rest);
}

/// Task i has the i-th of these streams, or a host step of so many ns.
TaskSet tasks(const Topology& machine, const std::vector<std::string>& streams, Policy policy = Policy::Edf) {
  TaskSet set{machine, policy, {}};
  for (const std::string& stream : streams) {
    Task task;
    task.name = "t" + std::to_string(set.tasks.size());
    task.period = task.deadline = Duration{10'000};
    if (stream == "host") {
      task.steps = {HostStep{Duration{1000}}};
    } else if (stream == "wcet") {
      task.declared_wcet = Duration{1000};
    } else {
      task.steps = {test::make_batch(machine, "  - {" + stream + "}\n")};
    }
    set.tasks.push_back(std::move(task));
  }
  return set;
}

using Numbers = std::vector<std::vector<std::size_t>>;

Numbers groups(const TaskSet& set) {
  Numbers numbers;
  for (const Partition& partition : partitions_of(set)) {
    numbers.emplace_back();
    for (const TaskId task : partition.tasks) numbers.back().push_back(task.index());
  }
  return numbers;
}

constexpr const char* kUp0 = "from: mem0, to: gpu0, size: 6 kB";
constexpr const char* kUp1 = "from: mem0, to: gpu1, size: 6 kB";
constexpr const char* kUp2 = "from: mem1, to: gpu2, size: 6 kB";

// Both begin in mem0, but on links of their own.
TEST(Partitions, AreApartWhereNothingIsShared) {
  EXPECT_EQ(groups(tasks(machine(), {kUp0, kUp1, kUp2, kUp0})), (Numbers{{0, 3}, {1}, {2}}));
  EXPECT_EQ(groups(tasks(machine(), {})), Numbers{});
}

TEST(Partitions, MeetInASharedCapacity) {
  const Topology m = machine(
      "  shared: [{name: memory, capacity: 2 GB/s, members: [{from: mem0, to: gpu0}, {from: mem0, to: gpu1}]}]\n");
  EXPECT_EQ(groups(tasks(m, {kUp0, kUp1, kUp2})), (Numbers{{0, 1}, {2}}));
}

// Up and down have links and engines of their own, but buffers in one GPU.
TEST(Partitions, MeetInAGpu) {
  EXPECT_EQ(groups(tasks(machine(), {kUp0, "from: gpu0, to: mem0, size: 1 kB"})), (Numbers{{0, 1}}));
  EXPECT_EQ(groups(tasks(machine(), {kUp0, "kernel: {on: gpu0, time: 1 us}"})), (Numbers{{0, 1}}));
  EXPECT_EQ(groups(tasks(machine(), {kUp0, "kernel: {on: gpu1, time: 1 us}"})), (Numbers{{0}, {1}}));
}

// gpu2 is reached from mem0 over cpu0 and cpu1; a copy between cpu1 and it meets that on the last link.
TEST(Partitions, MeetOnALink) {
  EXPECT_EQ(groups(tasks(machine(), {"from: mem0, to: gpu2, size: 1 kB", kUp2})), (Numbers{{0, 1}}));
}

// A staged copy holds the links and engines of both its legs: what was apart is one.
TEST(Partitions, GrowTogetherThroughOthers) {
  EXPECT_EQ(groups(tasks(machine(), {kUp0, kUp1, "from: gpu0, to: gpu1, size: 1 kB"})), (Numbers{{0, 1, 2}}));
  EXPECT_EQ(groups(tasks(machine(), {kUp0, kUp2, "from: gpu0, to: gpu1, size: 1 kB"})), (Numbers{{0, 2}, {1}}));
}

// A host step may run on any cpu, a kernel on its own.
TEST(Partitions, MeetOnTheHost) {
  EXPECT_EQ(groups(tasks(machine(), {"host", "host", kUp0})), (Numbers{{0, 1}, {2}}));
  EXPECT_EQ(groups(tasks(machine(), {"host", "kernel: {on: cpu0, time: 1 us}"})), (Numbers{{0, 1}}));
  EXPECT_EQ(groups(tasks(machine(), {"kernel: {on: cpu1, time: 1 us}", "kernel: {on: cpu0, time: 1 us}"})),
            (Numbers{{0}, {1}}));
}

TEST(Partitions, AreOneWhereSomeTaskMayUseAnything) {
  EXPECT_EQ(groups(tasks(machine(), {kUp0, kUp1, "wcet"})), (Numbers{{0, 1, 2}}));
  TaskSet set = tasks(machine(), {"wcet", "wcet"});
  set.machine.reset();
  EXPECT_EQ(groups(set), (Numbers{{0, 1}}));
}

// 6 us of 10 each: together 1.2 times the time that there is, apart both hold.
TEST(DecideApart, GivesEachGroupTheMachine) {
  const AdmissionController controller(planners().front());
  const TaskSet set = tasks(machine(), {kUp0, kUp1});
  EXPECT_EQ(controller.decide(set).answer, Answer::NotSchedulable);
  const auto verdicts = decide_apart(controller, set, partitions_of(set));
  ASSERT_EQ(verdicts.size(), 2U);
  for (const PartitionVerdict& verdict : verdicts) {
    EXPECT_EQ(verdict.verdict.answer, Answer::Schedulable);
    EXPECT_DOUBLE_EQ(verdict.verdict.utilization, 0.6);
    EXPECT_FALSE(verdict.verdict.admitted.has_value());
  }
}

// The second group has tasks 1 and 3 of the set. RM, 1 before 3: the first waits for the second, 6 + 6 us in 10.
TEST(DecideApart, NamesTheTasksOfTheWholeSet) {
  const TaskSet set = tasks(machine(), {kUp0, kUp1, kUp2, kUp1}, Policy::Rm);
  const auto verdicts = decide_apart(AdmissionController(planners().front()), set, partitions_of(set));
  ASSERT_EQ(verdicts.size(), 3U);
  EXPECT_EQ(verdicts[0].verdict.answer, Answer::Schedulable);
  EXPECT_EQ(verdicts[1].verdict.answer, Answer::NotSchedulable);
  int witnesses = 0;
  for (const Verdict& test : verdicts[1].verdict.tests) {
    if (!test.witness) continue;
    ++witnesses;
    EXPECT_EQ(test.witness->task, TaskId{1});
    EXPECT_EQ(test.witness->blocker, TaskId{3});
    EXPECT_EQ(test.witness->by_task, (std::vector<TaskLoad>{{TaskId{1}, Duration{6000}}}));
  }
  EXPECT_EQ(witnesses, 1);
}

// On random machines: each task is in one group; batches of different groups take as long together, as one batch, as
// the longer of the two takes alone; what holds together holds apart.
TEST(DecideApart, IsRightOnRandomMachines) {
  int apart = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Topology m = test::random_machine(seed);
    TaskSet set{m, Policy::Edf, {}};
    for (std::uint64_t i = 0; i < 4; ++i) {
      Task task;
      task.name = "t" + std::to_string(i);
      task.period = task.deadline = Duration{std::int64_t{1} << 40};
      task.steps = {test::random_batch(m, seed * 10 + i, {.most_streams = 2, .may_unmerge = false})};
      set.tasks.push_back(std::move(task));
    }
    const std::vector<Partition> partitions = partitions_of(set);
    std::vector<int> seen(set.tasks.size());
    for (const Partition& partition : partitions)
      for (const TaskId task : partition.tasks) ++seen[task.index()];
    EXPECT_EQ(seen, std::vector<int>(set.tasks.size(), 1)) << seed;
    const AdmissionController controller(planners().front());
    ASSERT_EQ(controller.decide(set).answer, Answer::Schedulable) << seed;
    for (const PartitionVerdict& verdict : decide_apart(controller, set, partitions))
      EXPECT_EQ(verdict.verdict.answer, Answer::Schedulable) << seed;
    if (partitions.size() < 2) continue;
    ++apart;
    std::vector<CommandStream> both;
    double longest = 0;
    BatchSimulation workspace;
    for (const std::size_t group : {std::size_t{0}, std::size_t{1}}) {
      const BatchOperation& batch = *batches_of(set.tasks[partitions[group].tasks[0].index()])[0];
      for (CommandStream stream : batch.streams()) {
        stream.name += std::to_string(group);
        both.push_back(std::move(stream));
      }
      longest = std::max(longest, predict(*find_planner("all_at_once"), m, batch, Basis::Guaranteed, workspace));
    }
    const auto together = BatchOperation::make(m, both);
    ASSERT_TRUE(together) << together.error().text();
    EXPECT_NEAR(predict(*find_planner("all_at_once"), m, *together, Basis::Guaranteed, workspace), longest,
                1e-6 * longest)
        << seed;
  }
  EXPECT_GT(apart, 20);
}

}  // namespace
}  // namespace tutti
