// What leads a set that leaves it open: a copy of 10 us on a machine where a GPU's conductor costs more than the host.
#include "sched/admission/conductor_choice.hpp"

#include <string>

#include <gtest/gtest.h>

#include "sched/tasks/task_yaml.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

/// Led by a GPU the job takes 10 us + 100 us + 2 ms, led by the host 10 us + 10 us + 20 us.
ConductorChoice choice_of(const std::string& deadline, const std::string& of_set = "",
                          const std::string& of_task = "") {
  const Topology machine = test::make_machine(
      "  vertices: {mem0: {kind: memory}, cpu0: {kind: cpu}, gpu0: {kind: gpu}}\n"
      "  links: [{from: mem0, to: cpu0, bandwidth: 1 GB/s, back: 1 GB/s}, {from: cpu0, to: gpu0, bandwidth: 1 GB/s, "
      "back: 1 GB/s}]\n  setup: {dispatch: 10 us, job: 20 us, conductor: 100 us, conductor_job: 2 ms}\n");
  auto study = parse_study("version: 1\ndeadline_at: device\noverlap: off\n" + of_set +
                               "tasks:\n- {name: a, period: 10 ms, deadline: " + deadline + of_task +
                               ", job: [{batch: [{from: mem0, to: gpu0, size: 10 kB}]}]}\n",
                           machine);
  EXPECT_TRUE(study.has_value()) << study.error().text();
  return decide_by_conductor(AdmissionController(planners().front()), *std::move(study));
}

TEST(ConductorChoice, IsTheGpuWhereItGuaranteesTheDeadlines) {
  const ConductorChoice choice = choice_of("3 ms");
  ASSERT_TRUE(choice.verdict.admitted.has_value());
  EXPECT_TRUE(choice.study.tasks.led_by_gpu);
  EXPECT_TRUE(choice.verdict.admitted->tasks().led_by_gpu);
  EXPECT_EQ(choice.verdict.worst_responses.front(), std::chrono::microseconds(2110));
  EXPECT_EQ(choice.study.tasks.why_host, "");
}

TEST(ConductorChoice, IsTheHostWhereItAloneDoes) {
  const ConductorChoice choice = choice_of("1 ms");
  ASSERT_TRUE(choice.verdict.admitted.has_value());
  EXPECT_FALSE(choice.study.tasks.led_by_gpu);
  EXPECT_FALSE(choice.verdict.admitted->tasks().led_by_gpu);
  EXPECT_EQ(choice.verdict.worst_responses.front(), std::chrono::microseconds(40));
  const std::string because = "a GPU's conductor does not guarantee the deadlines, and the host's does (";
  EXPECT_EQ(choice.study.tasks.why_host.find(because), 0U) << choice.study.tasks.why_host;
  EXPECT_EQ(choice.verdict.admitted->tasks().why_host, choice.study.tasks.why_host);
}

TEST(ConductorChoice, IsTheGpuWhereNeitherDoes) {
  const ConductorChoice choice = choice_of("30 us");
  EXPECT_EQ(choice.verdict.answer, Answer::NotSchedulable);
  EXPECT_TRUE(choice.study.tasks.led_by_gpu);
  EXPECT_EQ(choice.verdict.worst_responses.front().value_or(Duration{2'110'000}), Duration{2'110'000});
  ASSERT_FALSE(choice.verdict.reasons.empty());
  EXPECT_EQ(choice.verdict.reasons.back(), "with 'conductor: host' no deadline is guaranteed either");
}

// A set that asks for one is decided as that leads it, and so is one with a task that only a GPU can lead.
TEST(ConductorChoice, IsOpenOnlyWhereTheSetLeavesItOpen) {
  for (const auto& [of_set, of_task] : {std::pair("conductor: gpu\n", ""), {"", ", late_consumer: overwrite"}}) {
    const ConductorChoice choice = choice_of("1 ms", of_set, of_task);
    EXPECT_TRUE(choice.study.tasks.led_by_gpu);
    EXPECT_FALSE(choice.verdict.admitted.has_value());
    EXPECT_EQ(choice.verdict.reasons, AdmissionController(planners().front()).decide(choice.study.tasks).reasons);
  }
  const ConductorChoice by_host = choice_of("3 ms", "conductor: host\n");
  EXPECT_FALSE(by_host.study.tasks.led_by_gpu);
  EXPECT_EQ(by_host.study.tasks.why_host, "");
}

}  // namespace
}  // namespace tutti::internal
