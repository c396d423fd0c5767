#include "sched/admission/sooner_plans.hpp"

#include <gtest/gtest.h>

#include "sched/tasks/wcet.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

using std::chrono::milliseconds;

/// The host carries 2 GB/s, the link of each GPU 1 GB/s.
Topology three_gpus() {
  return test::make_machine(
      "  vertices: {mem0: {kind: memory}, cpu0: {kind: cpu}, gpu0: {kind: gpu}, gpu1: {kind: gpu}, gpu2: {kind: gpu}}\n"
      "  links:\n    - {from: mem0, to: cpu0, bandwidth: 2 GB/s}\n"
      "    - {from: cpu0, to: gpu0, bandwidth: 1 GB/s}\n    - {from: cpu0, to: gpu1, bandwidth: 1 GB/s}\n"
      "    - {from: cpu0, to: gpu2, bandwidth: 1 GB/s}\n");
}

Task task_of(const Topology& machine, std::string name, Duration period,
             std::initializer_list<std::int64_t> megabytes) {
  std::vector<CommandStream> streams;
  for (const std::int64_t size : megabytes) {
    const VertexId gpu = machine.gpus()[streams.size()];
    streams.push_back(
        {machine.vertex(gpu).name, Transfer{machine.memories()[0], gpu, {size * 1'000'000}, {}, {}}, {}, {}});
  }
  Task task;
  task.name = std::move(name);
  task.period = task.deadline = period;
  task.steps.emplace_back(Batch::make(machine, std::move(streams)).value());
  return task;
}

SoonerPlans sooner(const TaskSet& set, const char* planner) {
  return find_sooner_plans(set, AdmissionController(*find_planner(planner)).decide(set));
}

// 6, 3 and 3 MB take 7.5 ms aligned or all at once, and 6 where one short copy waits for the other: a fifth less. 6 and
// 3 MB do not share anything: 6 ms under every planner but those that let one wait for the other.
TEST(SoonerPlans, NameTheTasksThatAnotherPlannerMakesShorter) {
  TaskSet set;
  set.machine = three_gpus();
  set.tasks = {task_of(*set.machine, "shares", milliseconds(50), {6, 3, 3}),
               task_of(*set.machine, "alone", milliseconds(50), {6, 3})};
  set.tasks.emplace_back();
  set.tasks.back().name = "declared";
  set.tasks.back().period = set.tasks.back().deadline = milliseconds(50);
  set.tasks.back().declared_wcet = milliseconds(1);
  for (const char* planner : {"completion_aligned", "all_at_once"}) {
    const SoonerPlans found = sooner(set, planner);
    ASSERT_EQ(found.plans.size(), 1U) << planner;
    EXPECT_EQ(found.plans[0].task, TaskId{0});
    EXPECT_NEAR(found.plans[0].gain, 0.2, 0.001);
    EXPECT_EQ(found.not_asked, 0U);
    // What it promises is what the set would have.
    const AdmissionVerdict other = AdmissionController(*found.plans[0].planner).decide(set);
    EXPECT_EQ(found.plans[0].wcet, other.timings[0].wcet);
  }
  EXPECT_EQ(sooner(set, "time_division").plans.size(), 2U);
  EXPECT_TRUE(sooner(set, "gate_search").plans.empty());
}

// 100 streams are 100 x 108 pairs, so 50,000 are four of ten such batches.
TEST(SoonerPlans, AreLookedForInSoMuchWorkAsFitsIntoTheBudget) {
  TaskSet set;
  set.machine = three_gpus();
  std::vector<CommandStream> streams;
  for (std::size_t i = 0; i < 100; ++i)
    streams.push_back({"s" + std::to_string(i),
                       Transfer{set.machine->memories()[0], set.machine->gpus()[i % 3], Bytes{1'000'000}, {}, {}},
                       {},
                       {}});
  Task task = task_of(*set.machine, "", milliseconds(5000), {1});
  task.steps = {Batch::make(*set.machine, streams).value()};
  set.tasks.assign(10, task);
  for (std::size_t i = 0; i < set.tasks.size(); ++i) set.tasks[i].name = "t" + std::to_string(i);
  EXPECT_EQ(sooner(set, "all_at_once").not_asked, 6U);
}

// One batch in four chunks, and one of a task that declares its Wcet none: 5 plans share nothing; 1000 copies of the
// first, 4000 chunks, 20 / 4000 of the effort each.
TEST(EffortOfASet, IsSharedByAllPiecesOfItsBatches) {
  TaskSet set;
  set.machine = three_gpus();
  set.tasks = {task_of(*set.machine, "a", milliseconds(50), {8, 3}), task_of(*set.machine, "b", milliseconds(50), {2})};
  EXPECT_EQ(effort_of(set).share, 1);
  set.tasks.assign(1000, Task(set.tasks.front()));
  EXPECT_EQ(effort_of(set).share, 0.02);
  set.cut = Bytes{2'000'000};
  EXPECT_EQ(effort_of(set).share, 0.02);  // without preemption nothing is cut
  set.preemption = Preemption::BetweenBatches;
  EXPECT_EQ(effort_of(set).share, 0.005);
}

}  // namespace
}  // namespace tutti::internal
