#include "sched/tasks/compile_after.hpp"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/base/record.hpp"
#include "sched/admission/admission.hpp"
#include "sched/admission/changing_task_set.hpp"
#include "sched/tasks/task_fields.hpp"
#include "sched/tasks/task_yaml.hpp"
#include "tests/support/task_file.hpp"

namespace tutti::internal {
namespace {

Expected<TaskSet> set_of(const std::string& tasks, const std::string& top = "") {
  return parse_task_spec("version: 1\n" + top + "tasks:\n" + tasks, "t.yaml").and_then([](const TaskSetSpec& spec) {
    return compile(spec, {});
  });
}

std::string fault_of(const std::string& tasks, const std::string& top = "") {
  const auto set = set_of(tasks, top);
  return set ? "" : set.error().message;
}

const std::string kCamera = "- {name: camera, period: 20 ms, offset: 3 ms, wcet: 2 ms}\n";

TEST(CompileAfter, TakesPeriodAndOffsetFromTheTaskBefore) {
  const TaskSet set = set_of(kCamera +
                             "- {name: inspect, after: camera, wcet: 4 ms}\n"
                             "- {name: gate, after: inspect, period: 20 ms, offset: 3 ms, wcet: 1 ms}\n")
                          .value();
  for (const Task& task : set.tasks) {
    EXPECT_EQ(task.period, Duration{20'000'000}) << task.name;
    EXPECT_EQ(task.offset, Duration{3'000'000}) << task.name;
    EXPECT_EQ(task.deadline, Duration{20'000'000}) << task.name;
  }
  EXPECT_EQ(arrival_groups(set), (std::vector<std::optional<std::size_t>>{0, 0, 0}));
}

TEST(CompileAfter, FaultsNameWhatWouldBeRight) {
  const auto after = [](const std::string& more) {
    return fault_of(kCamera + "- {name: inspect, wcet: 4 ms, " + more + "}\n");
  };
  EXPECT_EQ(after("after: camera"), "");
  EXPECT_EQ(after("after: camera, period: 25 ms"),
            "the period of 'inspect', 25 ms, is not the 20 ms of 'camera', which it is after; join tasks of different "
            "rates with 'chains', or give both the same period");
  EXPECT_EQ(after("after: camera, offset: 1 ms"),
            "the offset of 'inspect', 1 ms, is not the 3 ms of 'camera', which it is after; leave the offset out");
  EXPECT_EQ(after("after: camra"), "the task set has no task 'camra'; did you mean 'camera'?");
  EXPECT_EQ(fault_of("- {name: a, after: b, wcet: 0}\n"), "the task set has no task 'b'; use one of its names");
  EXPECT_EQ(after("after: inspect"),
            "'inspect' is after itself, by way of 'inspect': tasks in a circle never start; leave an 'after' out");
  EXPECT_EQ(after("after: camera, jitter: 1 ms"),
            "'camera' and 'inspect' become ready together; leave the jitter of both out");
  EXPECT_EQ(after("after: camera, deadline: 10 ms"),
            "under edf a job of 'inspect' can start before that of 'camera'; give 'camera' a shorter deadline, or an "
            "equal one and list it first");
  EXPECT_NE(after("after: camera, release: external").find("'after' is for tasks that the clock releases"),
            std::string::npos);
  EXPECT_EQ(after("deadline: 20 ms"), "'period' is missing in a task; add it");
  EXPECT_NE(fault_of("- {name: a, after: b, wcet: 0}\n- {name: b, after: a, wcet: 0}\n")
                .find("'a' is after itself, by "
                      "way of 'b'"),
            std::string::npos);
  EXPECT_NE(fault_of("- {name: inspect, after: camera, wcet: 4 ms}\n" + kCamera).find("list it first"),
            std::string::npos);
  EXPECT_NE(fault_of(kCamera + "- {name: i, after: camera, wcet: 0}\n", "overlap: on\n").find("write 'overlap: off'"),
            std::string::npos);
}

TEST(CompileAfter, IsWrittenAndReadBack) {
  const auto spec =
      parse_task_spec("version: 1\ntasks:\n" + kCamera + "- {name: inspect, after: camera, wcet: 4 ms}\n", "t.yaml");
  ASSERT_TRUE(spec);
  Node map;
  map.kind = Node::Kind::Map;
  write_fields(spec->tasks[1], map);
  EXPECT_EQ(map.find("period"), nullptr);
  EXPECT_EQ(map.find("after")->text, "camera");
}

// On sporadic arrivals a refusal is no proof any more: the tasks arrive together. (3, 10) with D = 3 may wait for 4 of
// a job that has just started, if that one arrives on its own.
TEST(CompileAfter, LeavesARefusalOfSporadicArrivalsOpen) {
  const std::string camera = "- {name: camera, period: 10 ms, deadline: 3 ms, wcet: 3 ms}\n";
  const AdmissionController controller(*find_planner("completion_aligned"));
  const TaskSet apart = set_of(camera + "- {name: inspect, period: 10 ms, wcet: 4 ms}\n").value();
  EXPECT_EQ(controller.decide(apart).answer, Answer::NotSchedulable);
  const TaskSet together = set_of(camera + "- {name: inspect, after: camera, wcet: 4 ms}\n").value();
  EXPECT_EQ(controller.decide(together).answer, Answer::Unknown);
  EXPECT_EQ(controller.answer(together), Answer::Unknown);
  // Known arrivals decide it: 3, then 4 until 7.
  TaskSet known = together;
  known.arrivals = Arrivals::Periodic;
  EXPECT_EQ(controller.decide(known).answer, Answer::Schedulable);
}

TEST(CompileAfter, IsNotPromisedWhereJobsOverlapOrTasksComeAndGo) {
  TaskSet set = set_of(kCamera + "- {name: inspect, after: camera, wcet: 4 ms}\n").value();
  const AdmissionController controller(*find_planner("completion_aligned"));
  EXPECT_FALSE(ChangingTaskSet::make(controller, set, {}));
  set.overlap = Overlap::On;
  EXPECT_EQ(controller.answer(set), Answer::Unknown);
  EXPECT_EQ(controller.decide(set).reasons.front(),
            "'inspect' is after 'camera', which is not guaranteed where jobs overlap; write 'overlap: off'");
}

TEST(CompileAfter, JoinsPartitions) {
  const std::string machine =
      "version: 1\nmachine: {name: m, vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}, gpu1: {kind: gpu}}, links: "
      "[{from: mem0, to: gpu0, bandwidth: 1 GB/s}, {from: mem0, to: gpu1, bandwidth: 1 GB/s}]}\n";
  const auto tasks_on = [&](const std::string& after) {
    return test::make_study(
               "version: 1\nmachine: m.yaml\ntasks:\n"
               "- {name: a, period: 10 ms, job: [{batch: [{from: mem0, to: gpu0, size: 1 MB}]}]}\n"
               "- {name: b, " +
                   after + ", job: [{batch: [{from: mem0, to: gpu1, size: 1 MB}]}]}\n",
               machine)
        .tasks;
  };
  EXPECT_EQ(partitions_of(tasks_on("period: 10 ms")).size(), 2U);
  EXPECT_EQ(partitions_of(tasks_on("after: a")).size(), 1U);
}

}  // namespace
}  // namespace tutti::internal
