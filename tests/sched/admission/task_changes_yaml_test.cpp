#include "sched/admission/task_changes_yaml.hpp"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/apps/temporary_folder.hpp"

namespace tutti::internal {
namespace {

class TaskChangesYaml : public ::testing::Test {
 protected:
  TaskChangesYaml() {
    for (const char* name : {"left", "right", "middle"}) set_.tasks.emplace_back().name = name;
  }

  [[nodiscard]] Expected<TaskChanges> load(const std::string& text) const {
    const std::string path = folder_.file("c.yaml");
    std::ofstream(path) << text;
    return load_task_changes(path, set_);
  }
  /// What it is refused with, without the folder.
  [[nodiscard]] std::string error(const std::string& text) const {
    const auto changes = load(text);
    if (changes) return "fine";
    const std::string message = changes.error().text();
    return message.substr(message.find("c.yaml"));
  }

  TaskSet set_;
  wafer::TemporaryFolder folder_;
};

TEST_F(TaskChangesYaml, ReadsWhoStartsAndWhatChanges) {
  const TaskId left{0U}, right{1U}, middle{2U};
  const auto changes = load(R"(version: 1
start: [middle, left]
changes:
  - {at: 1 ms, remove: left}
  - {at: 1 ms, add: right}
  - {at: 2 ms, remove: right, add: left}
)");
  ASSERT_TRUE(changes) << changes.error().text();
  EXPECT_EQ(changes->running, (std::vector{left, middle}));
  EXPECT_EQ(changes->changes, (std::vector<TaskChange>{{Duration{1'000'000}, left, {}},
                                                       {Duration{1'000'000}, {}, right},
                                                       {Duration{2'000'000}, right, left}}));
}

TEST_F(TaskChangesYaml, WithoutAStartAllRun) {
  EXPECT_EQ(load("version: 1\nchanges: []\n").value().running, (std::vector{TaskId{0U}, TaskId{1U}, TaskId{2U}}));
}

TEST_F(TaskChangesYaml, SaysWhatIsWrongAndWhere) {
  const std::string head = "version: 1\nchanges:\n";
  EXPECT_EQ(error("version: 1\n"), "c.yaml:1:1: 'changes' is missing in a list of changes; add it");
  EXPECT_EQ(error(head + "  - {at: 1 ms, add: lefd}\n"),
            "c.yaml:3:21: the task set has no task 'lefd'; did you mean 'left'?");
  EXPECT_EQ(error(head + "  - {at: 1 ms}\n"), "c.yaml:3:5: the change changes nothing; write 'remove', 'add' or both");
  EXPECT_EQ(error(head + "  - {at: 1 ms, remove: left, add: left}\n"),
            "c.yaml:3:5: the task that leaves and the one that comes are the same; name another one, or leave one out");
  EXPECT_EQ(error(head + "  - {at: 2 ms, add: left}\n  - {at: 1 ms, add: right}\n"),
            "c.yaml:4:5: this change comes before the one above it; write them in order");
  EXPECT_EQ(error("version: 1\nstart: [left, left]\nchanges: []\n"),
            "c.yaml:2:15: 'left' stands there twice; leave one out");
  EXPECT_EQ(error(head + "  - {add: left}\n"), "c.yaml:3:5: 'at' is missing in a change; add it");
}

TEST_F(TaskChangesYaml, NamesAllFaults) {
  EXPECT_EQ(error("version: 1\nstart: [left, nobody]\nchanges:\n  - {at: 1 ms}\n"),
            "c.yaml:2:15: the task set has no task 'nobody'; use one of its names\n" + folder_.file("c.yaml") +
                ":4:5: the change changes nothing; write 'remove', 'add' or both");
}

}  // namespace
}  // namespace tutti::internal
