#include <string>

#include <gtest/gtest.h>

#include "model/base/record.hpp"
#include "sched/tasks/task_fields.hpp"
#include "sched/tasks/task_yaml.hpp"

namespace tutti::internal {
namespace {

/// What is wrong with these chains of the tasks camera and gate; empty: nothing.
std::string chain_fault(const std::string& chains) {
  const std::string text =
      "version: 1\ntasks: [{name: camera, period: 10 ms, wcet: 2 ms}, {name: gate, period: 20 ms, wcet: 3 "
      "ms}]\nchains:\n" +
      chains;
  const auto spec = parse_task_spec(text, "t.yaml");
  if (!spec) return spec.error().text();
  const auto set = compile(*spec, {});
  return set ? "" : set.error().message;
}

TEST(ChainSpec, IsReadAndCompiled) {
  const auto spec = parse_task_spec(
      "version: 1\ntasks: [{name: camera, period: 10 ms, wcet: 2 ms}, {name: gate, period: 20 ms, wcet: 3 ms}]\n"
      "chains:\n- {name: reject, tasks: [gate, camera], deadline: 40 ms}\n- {name: one, tasks: [gate]}\n",
      "t.yaml");
  ASSERT_TRUE(spec);
  const TaskSet set = compile(*spec, {}).value();
  ASSERT_EQ(set.chains.size(), 2U);
  EXPECT_EQ(set.chains[0].name, "reject");
  EXPECT_EQ(set.chains[0].tasks, (std::vector{TaskId{1}, TaskId{0}}));
  EXPECT_EQ(set.chains[0].deadline, Duration{40'000'000});
  EXPECT_EQ(set.chains[1].tasks, std::vector{TaskId{1}});
  EXPECT_EQ(set.chains[1].deadline, std::nullopt);
}

TEST(ChainSpec, FaultsNameWhatWouldBeRight) {
  EXPECT_EQ(chain_fault("- {name: a, tasks: [camera, gate]}"), "");
  EXPECT_EQ(chain_fault("- {name: a, tasks: [camra, gate]}"),
            "the task set has no task 'camra'; did you mean 'camera'?");
  EXPECT_EQ(chain_fault("- {name: a, tasks: [zebra]}"), "the task set has no task 'zebra'; use one of its names");
  EXPECT_EQ(chain_fault("- {name: a, tasks: [camera, gate, camera]}"),
            "task 'camera' comes twice, so the chain runs in a circle; list each task once, from cause to effect");
  EXPECT_EQ(chain_fault("- {name: a, tasks: []}"),
            "a chain without tasks has no latency; list its tasks from cause to effect");
  EXPECT_EQ(chain_fault("- {name: a, tasks: [gate]}\n- {name: a, tasks: [camera]}"),
            "there are two chains 'a'; names are unique");
  EXPECT_EQ(chain_fault("- {name: a, tasks: [gate], deadline: 0}"),
            "the deadline must be at least 1 ns; write a time like 100 ms");
  EXPECT_NE(chain_fault("- {tasks: [gate]}").find("'name' is missing"), std::string::npos);
  EXPECT_NE(chain_fault("- {name: a}").find("'tasks' is missing"), std::string::npos);
  EXPECT_NE(chain_fault("- {name: a, task: [gate]}").find("did you mean 'tasks'?"), std::string::npos);
  EXPECT_NE(chain_fault("- {name: a, tasks: [gate], deadline: -3 ms}").find("t.yaml:4:"), std::string::npos);
}

}  // namespace
}  // namespace tutti::internal
