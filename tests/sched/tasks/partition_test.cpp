#include "sched/tasks/partition.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/random.hpp"
#include "tests/support/random_machine.hpp"
#include "tests/support/two_sides.hpp"

namespace tutti::internal {
namespace {

using test::kUp0;
using test::kUp1;
using test::kUp2;
using test::tasks_of;
using test::two_sides;

using Numbers = std::vector<std::vector<std::size_t>>;

Numbers groups(const TaskSet& set) {
  Numbers numbers;
  for (const Partition& partition : partitions_of(set)) {
    numbers.emplace_back();
    for (const TaskId task : partition.tasks) numbers.back().push_back(task.index());
  }
  return numbers;
}

// Both begin in mem0, but on links of their own.
TEST(Partitions, AreApartWhereNothingIsShared) {
  EXPECT_EQ(groups(tasks_of(two_sides(), {kUp0, kUp1, kUp2, kUp0})), (Numbers{{0, 3}, {1}, {2}}));
  EXPECT_EQ(groups(tasks_of(two_sides(), {})), Numbers{{}});
}

TEST(Partitions, MeetInASharedCapacity) {
  const Topology m = two_sides(
      "  shared: [{name: memory, capacity: 2 GB/s, members: [{from: mem0, to: gpu0}, {from: mem0, to: gpu1}]}]\n");
  EXPECT_EQ(groups(tasks_of(m, {kUp0, kUp1, kUp2})), (Numbers{{0, 1}, {2}}));
}

// Up and down have links and engines of their own, but buffers in one GPU.
TEST(Partitions, MeetInAGpu) {
  EXPECT_EQ(groups(tasks_of(two_sides(), {kUp0, "from: gpu0, to: mem0, size: 1 kB"})), (Numbers{{0, 1}}));
  EXPECT_EQ(groups(tasks_of(two_sides(), {kUp0, "kernel: {on: gpu0, time: 1 us}"})), (Numbers{{0, 1}}));
  EXPECT_EQ(groups(tasks_of(two_sides(), {kUp0, "kernel: {on: gpu1, time: 1 us}"})), (Numbers{{0}, {1}}));
}

// gpu2 is reached from mem0 over cpu0 and cpu1; a copy between cpu1 and it meets that on the last link.
TEST(Partitions, MeetOnALink) {
  EXPECT_EQ(groups(tasks_of(two_sides(), {"from: mem0, to: gpu2, size: 1 kB", kUp2})), (Numbers{{0, 1}}));
}

// A staged copy holds the links and engines of both its legs: what was apart is one.
TEST(Partitions, GrowTogetherThroughOthers) {
  EXPECT_EQ(groups(tasks_of(two_sides(), {kUp0, kUp1, "from: gpu0, to: gpu1, size: 1 kB"})), (Numbers{{0, 1, 2}}));
  EXPECT_EQ(groups(tasks_of(two_sides(), {kUp0, kUp2, "from: gpu0, to: gpu1, size: 1 kB"})), (Numbers{{0, 2}, {1}}));
}

// A host step may run on any cpu, a kernel on its own.
TEST(Partitions, MeetOnTheHost) {
  EXPECT_EQ(groups(tasks_of(two_sides(), {"host", "host", kUp0})), (Numbers{{0, 1}, {2}}));
  EXPECT_EQ(groups(tasks_of(two_sides(), {"host", "kernel: {on: cpu0, time: 1 us}"})), (Numbers{{0, 1}}));
  EXPECT_EQ(groups(tasks_of(two_sides(), {"kernel: {on: cpu1, time: 1 us}", "kernel: {on: cpu0, time: 1 us}"})),
            (Numbers{{0}, {1}}));
}

TEST(Partitions, AreOneWhereSomeTaskMayUseAnything) {
  EXPECT_EQ(groups(tasks_of(two_sides(), {kUp0, kUp1, "wcet"})), (Numbers{{0, 1, 2}}));
  TaskSet set = tasks_of(two_sides(), {"wcet", "wcet"});
  set.machine.reset();
  EXPECT_EQ(groups(set), (Numbers{{0, 1}}));
}

// On random machines: each task is in one group; batches of different groups take as long together, as one batch, as
// the longer of the two takes alone.
TEST(Partitions, ShareNoBandwidthOnRandomMachines) {
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
    if (partitions.size() < 2) continue;
    ++apart;
    std::vector<CommandStream> both;
    double longest = 0;
    BatchSimulation workspace;
    for (const std::size_t group : {std::size_t{0}, std::size_t{1}}) {
      const Batch& batch = *batches_of(set.tasks[partitions[group].tasks[0].index()])[0];
      for (CommandStream stream : batch.streams()) {
        stream.name += std::to_string(group);
        both.push_back(std::move(stream));
      }
      longest = std::max(longest, predict(*find_planner("all_at_once"), batch, Basis::Guaranteed, workspace));
    }
    const auto together = Batch::make(m, both);
    ASSERT_TRUE(together) << together.error().text();
    EXPECT_NEAR(predict(*find_planner("all_at_once"), *together, Basis::Guaranteed, workspace), longest, 1e-6 * longest)
        << seed;
  }
  EXPECT_GT(apart, 20);
}

}  // namespace
}  // namespace tutti::internal
