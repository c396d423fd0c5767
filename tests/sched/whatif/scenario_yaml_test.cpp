#include "sched/whatif/scenario_yaml.hpp"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/apps/temporary_folder.hpp"

namespace tutti::internal {
namespace {

class ScenarioYaml : public ::testing::Test {
 protected:
  ScenarioYaml() {
    for (const char* name : {"left", "right"}) set_.tasks.emplace_back().name = name;
  }

  [[nodiscard]] Expected<Scenario> load(const std::string& text) const {
    const std::string path = folder_.file("s.yaml");
    std::ofstream(path) << text;
    return load_scenario(path, set_);
  }
  /// What it is refused with, without the folder.
  [[nodiscard]] std::string error(const std::string& text) const {
    const auto scenario = load(text);
    if (scenario) return "fine";
    const std::string message = scenario.error().text();
    return message.substr(message.find("s.yaml"));
  }

  TaskSet set_;
  wafer::TemporaryFolder folder_;
};

TEST_F(ScenarioYaml, ReadsJobsByRisingArrival) {
  const auto scenario = load(R"(version: 1
jobs:
  - {task: right, arrival: 2 us, takes: 3 us}
  - {task: left, arrival: 1 us, ready: 5 us, takes: 0}
)");
  ASSERT_TRUE(scenario.has_value()) << scenario.error().text();
  EXPECT_EQ(*scenario, (Scenario{{{TaskId{0u}, Duration{1000}, Duration{5000}, Duration{0}},
                                  {TaskId{1u}, Duration{2000}, Duration{2000}, Duration{3000}}}}));
}

TEST_F(ScenarioYaml, ReadsBackWhatItWrote) {
  const Scenario scenario{{{TaskId{1u}, Duration{0}, Duration{7}, Duration{1'000'000'001}},
                           {TaskId{0u}, Duration{3}, Duration{3}, Duration{0}}}};
  EXPECT_EQ(load(to_yaml(scenario, set_)).value(), scenario);
}

TEST_F(ScenarioYaml, SaysWhatIsWrongAndWhere) {
  const std::string head = "version: 1\njobs:\n";
  EXPECT_EQ(error(head + "  - {task: lefd, arrival: 0, takes: 1 ms}\n"),
            "s.yaml:3:12: the task set has no task 'lefd'; did you mean 'left'?");
  EXPECT_EQ(error(head + "  - {task: left, arrival: 2 ms, ready: 1 ms, takes: 1 ms}\n"),
            "s.yaml:3:40: the job is ready at 1 ms, before it arrives at 2 ms; write 2 ms or later");
  EXPECT_EQ(
      error(head + "  - {task: left, arrival: 2 ms, takes: 1 ms}\n  - {task: left, arrival: 1 ms, takes: 1 ms}\n"),
      "s.yaml:4:5: this job of 'left' comes before the one above it; write them in order");
  set_.tasks.front().deadline = Duration{7};
  EXPECT_EQ(
      error(head + "  - {task: left, arrival: 9223372036854775801 ns, takes: 0 ns}\n"),
      "s.yaml:3:5: the job would be due more than 292 years (2^63 ns) after the start; write 9223372036.8547758 s or "
      "earlier");
  EXPECT_NE(error(head + "  - {task: left, takes: 1 ms}\n").find("'arrival'"), std::string::npos);
  EXPECT_NE(error("version: 1\njob: []\n").find("did you mean 'jobs'?"), std::string::npos);
}

TEST_F(ScenarioYaml, NamesAllFaults) {
  EXPECT_EQ(error("version: 1\njobs:\n  - {task: lefd, arrival: 0, takes: 1 ms}\n"
                  "  - {task: left, arrival: 2 ms, ready: 1 ms, takes: 1 ms}\n"),
            "s.yaml:3:12: the task set has no task 'lefd'; did you mean 'left'?\n" + folder_.file("s.yaml") +
                ":4:40: the job is ready at 1 ms, before it arrives at 2 ms; write 2 ms or later");
}

TEST_F(ScenarioYaml, RefusesNoJobs) {
  EXPECT_EQ(error("version: 1\njobs: []\n"), "s.yaml:2:7: there are no jobs to run; give one at least");
}

TEST_F(ScenarioYaml, RefusesMoreJobsThanItCanShow) {
  std::string text = "version: 1\njobs:\n";
  for (std::size_t i = 0; i <= kMostScenarioJobs; ++i) text += "  - {task: left, arrival: 0, takes: 0}\n";
  EXPECT_EQ(error(text), "s.yaml:3:3: 20001 jobs are too many; 20000 are the most");
}

}  // namespace
}  // namespace tutti::internal
