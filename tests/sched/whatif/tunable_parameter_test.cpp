#include "sched/whatif/tunable_parameter.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sched/admission/admission.hpp"
#include "tests/support/task_file.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

std::string gpus_with(const std::string& rest = "") {
  return test::machine_file(R"(  vertices:
    mem0: {kind: memory}
    gpu0: {kind: gpu}
    gpu1: {kind: gpu}
  links:
    - {from: mem0, to: gpu0, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: mem0, to: gpu1, bandwidth: 1 GB/s, back: 1 GB/s}
  peer_access: none
)" + rest);
}

constexpr const char* kTasks = R"(version: 1
machine: m.yaml
parameters: {image: 10 MB}
tasks:
  - name: a
    period: 25 ms
    job:
      - batch:
          - {name: x, from: mem0, to: gpu0, size: 40% of image}
          - {name: empty, from: mem0, to: gpu0, size: 0}
          - {name: k, kernel: {on: gpu0, time: 1 ms}}
  - {name: b, period: 10 ms, deadline: 8 ms, wcet: 2 ms}
)";

/// "kind task name value".
std::vector<std::string> lines_of(const std::vector<TunableParameter>& list) {
  std::vector<std::string> lines;
  for (const TunableParameter& tunable : list)
    lines.push_back(std::string(to_string(tunable.kind)) + " " + tunable.task + " " + tunable.name + " " +
                    value_text(tunable, tunable.value));
  return lines;
}

const TunableParameter& find(const std::vector<TunableParameter>& list, TunableKind kind, const std::string& task) {
  const auto found =
      std::ranges::find_if(list, [&](const TunableParameter& q) { return q.kind == kind && q.task == task; });
  EXPECT_NE(found, list.end());
  return *found;
}

TEST(TunableParameters, AreAllNumbersThatCanBeChanged) {
  EXPECT_EQ(lines_of(tunables(test::make_study(kTasks, gpus_with()))),
            (std::vector<std::string>{"parameter  image 10 MB", "size a x 4 MB", "period a  25 ms", "deadline a  25 ms",
                                      "wcet b  2 ms", "period b  10 ms", "deadline b  8 ms"}));
}

TEST(TunableParameters, CountTheMachineSWhereItHasThem) {
  const std::string staged =
      "version: 1\nmachine: m.yaml\ntasks:\n- {name: a, period: 1 ms, job: [{batch: [{from: "
      "gpu0, to: gpu1, size: 1 kB}]}]}\n";
  const TaskStudy study =
      test::make_study(staged, gpus_with("  margin: {relative: 0.05, absolute: 3 us}\n  staging: {chunk: 1 MB}\n"));
  const std::vector<std::string> lines = lines_of(tunables(study));
  EXPECT_EQ((std::vector<std::string>(lines.end() - 3, lines.end())),
            (std::vector<std::string>{"chunk   1 MB", "relative_margin   0.05", "absolute_margin   3 us"}));
}

// A deadline that the file leaves out is the period and goes along with it; changed itself, it parts from it.
TEST(WithValue, ChangesTheFileAndNothingElse) {
  const TaskStudy study = test::make_study(kTasks, gpus_with());
  const std::vector<TunableParameter> list = tunables(study);
  const auto longer = with_value(study, find(list, TunableKind::Period, "a"), 30'000'000);
  ASSERT_TRUE(longer);
  TaskSet expected = study.tasks;
  expected.tasks[0].period = expected.tasks[0].deadline = Duration{30'000'000};
  EXPECT_EQ(*longer, expected);
  const auto later = with_value(study, find(list, TunableKind::Deadline, "a"), 30'000'000);
  ASSERT_TRUE(later);
  expected.tasks[0].period = Duration{25'000'000};
  EXPECT_EQ(*later, expected);
  const auto quick = with_value(study, find(list, TunableKind::Wcet, "b"), 7);
  ASSERT_TRUE(quick);
  expected = study.tasks;
  expected.tasks[1].declared_wcet = Duration{7};
  EXPECT_EQ(*quick, expected);
}

Bytes size_of(const TaskSet& set) { return batches_of(set.tasks[0])[0]->streams()[0].transfer->size; }

// 40 % of 20 MB; then the transfer's own 3 B in place of it.
TEST(WithValue, ChangesSizes) {
  const TaskStudy study = test::make_study(kTasks, gpus_with());
  const std::vector<TunableParameter> list = tunables(study);
  EXPECT_EQ(size_of(*with_value(study, list[0], 20'000'000)), Bytes{8'000'000});
  EXPECT_EQ(size_of(*with_value(study, list[1], 3)), Bytes{3});
  EXPECT_EQ(size_of(study.tasks), Bytes{4'000'000});
}

// What --set says is what the file has now, and what a search changes.
TEST(WithValue, GoesOverTheCommandLine) {
  const TaskStudy study = test::make_study(kTasks, gpus_with(), {{}, Policy::Rm, {{"image", Bytes{50}}}, false});
  EXPECT_EQ(tunables(study)[0].value, 50);
  EXPECT_EQ(size_of(study.tasks), Bytes{20});
  const auto changed = with_value(study, tunables(study)[0], 100);
  EXPECT_EQ(size_of(*changed), Bytes{40});
  EXPECT_EQ(changed->policy, Policy::Rm);
}

// Two tasks share their times by an alias: whoever writes another period into the file changes both.
TEST(WithValue, ChangesAnAliasWithWhatItStandsFor) {
  const TaskStudy study = test::make_study(
      "version: 1\nmachine: m.yaml\ntasks:\n"
      "- {name: a, period: 10 ms, job: [{batch: [&copy {from: mem0, to: gpu0, size: 5 B}]}]}\n"
      "- {name: b, period: 10 ms, job: [{batch: [*copy]}]}\n",
      gpus_with());
  const auto changed = with_value(study, find(tunables(study), TunableKind::Size, "a"), 9);
  ASSERT_TRUE(changed);
  for (const Task& task : changed->tasks) EXPECT_EQ(batches_of(task)[0]->streams()[0].transfer->size, Bytes{9});
}

// 1000 % of 2^53 bytes are more than a size may be.
TEST(WithValue, RefusesWhatTheFileCouldNotSay) {
  const TaskStudy study = test::make_study(
      "version: 1\nmachine: m.yaml\nparameters: {image: 1 B}\ntasks:\n- {name: a, period: 10 ms, job: [{batch: [{from: "
      "mem0, to: gpu0, size: 1000% of image}]}]}\n",
      gpus_with());
  const auto changed = with_value(study, tunables(study)[0], most_value(TunableKind::Parameter));
  ASSERT_FALSE(changed);
  EXPECT_NE(changed.error().text().find("absurdly large"), std::string::npos);
}

// What a machine says is read as if its file were written so: 1000 B take 1 us, and twice that with a margin of 1.
TEST(WithValue, ChangesTheMachine) {
  const TaskStudy study = test::make_study(
      "version: 1\nmachine: m.yaml\ntasks:\n- {name: a, period: 10 ms, job: [{batch: [{from: mem0, to: gpu0, size: 1 "
      "kB}]}]}\n",
      gpus_with("  margin: {relative: 0.5, absolute: 7 ns}\n"));
  const auto wcet = [](const TaskSet& set) {
    return AdmissionController(planners().front()).decide(set).timings[0].wcet;
  };
  EXPECT_EQ(wcet(study.tasks), Duration{1507});
  const std::vector<TunableParameter> list = tunables(study);
  EXPECT_EQ(wcet(*with_value(study, list[list.size() - 2], 1'000'000)), Duration{2007});
  EXPECT_EQ(wcet(*with_value(study, list.back(), 0)), Duration{1500});
}

}  // namespace
}  // namespace tutti::internal
