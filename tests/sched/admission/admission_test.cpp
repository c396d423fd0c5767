#include "sched/admission/admission.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/largest.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

using test::kLargest;

Task task(std::string name, std::int64_t wcet, std::int64_t period, std::int64_t deadline) {
  Task task;
  task.name = std::move(name);
  task.period = Duration{period};
  task.deadline = Duration{deadline};
  task.declared_wcet = Duration{wcet};
  return task;
}

AdmissionVerdict decide(const TaskSet& set) { return AdmissionController(planners().front()).decide(set); }

AdmissionVerdict decide(Policy policy, std::vector<Task> tasks) {
  return decide(TaskSet{{}, policy, std::move(tasks)});
}

/// All reasons in one text.
std::string reasons(const AdmissionVerdict& verdict) {
  std::string text;
  for (const std::string& reason : verdict.reasons) text += reason + "\n";
  return text;
}

bool tells(const AdmissionVerdict& verdict, std::string_view words) {
  return reasons(verdict).find(words) != std::string::npos;
}

// U = 2/6 + 3/9 = 2/3. RM: x waits for y at most, 3 + 2 = 5; y: nobody below, floor(w/6)+1 jobs of x: 2 + 3 = 5. EDF:
// the same, with y due 3 after x's first job and before its second.
TEST(Admission, AdmitsWhatEveryTestAllows) {
  for (const Policy policy : {Policy::Edf, Policy::Rm, Policy::Dm}) {
    const AdmissionVerdict verdict = decide(policy, {task("x", 2, 6, 6), task("y", 3, 9, 9)});
    EXPECT_EQ(verdict.answer, Answer::Schedulable);
    EXPECT_DOUBLE_EQ(verdict.utilization, 2.0 / 3);
    EXPECT_TRUE(verdict.reasons.empty()) << reasons(verdict);
    ASSERT_TRUE(verdict.admitted.has_value());
    ASSERT_EQ(verdict.timings.size(), 2U);
    EXPECT_EQ(verdict.timings[1], (TaskTiming{Duration{3}, Duration{9}, Duration{9}, Duration{0}}));
    EXPECT_EQ(verdict.admitted->tasks().tasks.size(), 2U);
    EXPECT_EQ(verdict.admitted->tasks().policy, policy);
    ASSERT_EQ(verdict.worst_responses.size(), 2U);
    EXPECT_EQ(verdict.worst_responses[0], Duration{5});
    EXPECT_EQ(verdict.worst_responses[1], Duration{5});
  }
}

// EDF: a is due 6 after its arrival, and b (5) may just have started: 5 + 2 = 7 in an interval of 6.
TEST(Admission, NamesTheIntervalAndTheBlockerUnderEdf) {
  const AdmissionVerdict verdict = decide(Policy::Edf, {task("a", 2, 20, 6), task("b", 5, 20, 20)});
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  EXPECT_FALSE(verdict.admitted.has_value());
  EXPECT_TRUE(
      tells(verdict, "in an interval of 6 ns there is 7 ns of work (2 ns of 'a', 5 ns of 'b', which had just started)"))
      << reasons(verdict);
}

// RM: the same, and the task can be named.
TEST(Admission, NamesTheTaskUnderFixedPriorities) {
  const AdmissionVerdict verdict = decide(Policy::Rm, {task("a", 2, 10, 6), task("b", 5, 20, 20)});
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  EXPECT_TRUE(tells(verdict,
                    "task 'a' can miss its deadline: in an interval of 6 ns there is 7 ns of work (2 ns of 'a', 5 ns "
                    "of 'b', which had just started)"))
      << reasons(verdict);
}

// U = 6/10 + 5/10 = 1.1; C = 7 > D = 5. Both are answers with a reason, under every policy.
TEST(Admission, AnswersImpossibleSets) {
  for (const Policy policy : {Policy::Edf, Policy::Rm, Policy::Dm}) {
    const AdmissionVerdict overloaded = decide(policy, {task("a", 6, 10, 10), task("b", 5, 10, 10)});
    EXPECT_EQ(overloaded.answer, Answer::NotSchedulable);
    EXPECT_DOUBLE_EQ(overloaded.utilization, 1.1);
    const AdmissionVerdict late = decide(policy, {task("a", 7, 10, 5)});
    EXPECT_EQ(late.answer, Answer::NotSchedulable);
    for (const AdmissionVerdict& verdict : {overloaded, late}) {
      EXPECT_FALSE(verdict.admitted.has_value());
      ASSERT_FALSE(verdict.reasons.empty());
      for (const std::string& reason : verdict.reasons)
        EXPECT_NE(reason.find(' '), std::string::npos) << "'" << reason << "'";
      EXPECT_TRUE(tells(verdict, "'a'")) << reasons(verdict);
    }
  }
}

TEST(Admission, SurvivesTheLongestTimes) {
  for (const Policy policy : {Policy::Edf, Policy::Rm, Policy::Dm}) {
    EXPECT_EQ(decide(policy, {task("a", kLargest, kLargest, kLargest)}).answer, Answer::Schedulable);
    EXPECT_EQ(decide(policy, {task("a", kLargest, kLargest, kLargest), task("b", 1, kLargest, kLargest)}).answer,
              Answer::NotSchedulable);
    EXPECT_EQ(decide(policy, {task("a", kLargest, 1, 1)}).answer, Answer::NotSchedulable);
  }
}

TEST(Admission, AdmitsTheEmptySet) {
  for (const Policy policy : {Policy::Edf, Policy::Rm, Policy::Dm}) {
    const AdmissionVerdict verdict = decide(policy, {});
    EXPECT_EQ(verdict.answer, Answer::Schedulable);
    EXPECT_TRUE(verdict.admitted.has_value());
    EXPECT_EQ(verdict.utilization, 0);
  }
}

TEST(BufferSets, AreAsManyAsJobsCanBeAlive) {
  const auto sets = [](std::int64_t period, std::int64_t deadline, std::int64_t jitter) {
    return jobs_alive(Duration{period}, Duration{deadline}, Duration{jitter});
  };
  EXPECT_EQ(sets(10, 10, 0), 1);
  EXPECT_EQ(sets(10, 10, 9), 1) << "the deadline counts from the arrival: one job is over before the next arrives";
  EXPECT_EQ(sets(10, 3, 3), 1);
  EXPECT_EQ(sets(10, 11, 0), 2);  // ceil(1.1)
  EXPECT_EQ(sets(25, 60, 0), 3);  // ceil(2.4), the wafer inspection
  EXPECT_EQ(sets(10, 20, 0), 2);
  EXPECT_EQ(sets(10, 20, 1), 3);                     // ceil(2.1)
  EXPECT_EQ(sets(1, kLargest, kLargest), kLargest);  // more than can be counted
}

/// 1 byte/ns to a GPU of 100 kB and one whose memory nobody knows.
Topology machine() {
  return test::make_machine(R"(  vertices:
    mem0: {kind: memory}
    hub0: {kind: hub}
    gpu0: {kind: gpu, memory: 100 kB}
    gpu1: {kind: gpu}
  links:
    - {from: mem0, to: hub0, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: hub0, to: gpu0, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: hub0, to: gpu1, bandwidth: 1 GB/s, back: 1 GB/s}
  peer_access: all
)");
}

// Frames take up to 4 of the 9 GB/s that are guaranteed into memory, so a report of 20 MB takes up to 4 ms; without
// frames, 20 / 9 ms.
TEST(Admission, CountsBackgroundLoadAtItsMost) {
  const auto answer = [](const std::string& background, Duration deadline) {
    const Topology station = test::make_machine(
        R"(  vertices: {mem0: {kind: memory}, hub0: {kind: hub}, gpu0: {kind: gpu}, camera0: {kind: device}}
  links:
    - {from: hub0, to: mem0, bandwidth: {nominal: 10 GB/s, guaranteed: 9 GB/s}}
    - {from: gpu0, to: hub0, bandwidth: 50 GB/s}
    - {from: camera0, to: hub0, bandwidth: 5 GB/s}
)" + background);
    Task report;
    report.name = "report";
    report.period = report.deadline = deadline;
    report.steps = {test::make_batch(station, "  - {from: gpu0, to: mem0, size: 20 MB}\n")};
    return decide({station, Policy::Edf, {report}}).answer;
  };
  const std::string frames = "  background: [{from: camera0, to: mem0, bandwidth: {nominal: 1 GB/s, most: 4 GB/s}}]\n";
  EXPECT_EQ(answer(frames, Duration{4'000'000}), Answer::Schedulable);
  EXPECT_EQ(answer(frames, Duration{3'999'999}), Answer::NotSchedulable);
  EXPECT_EQ(answer("", Duration{2'222'223}), Answer::Schedulable);
}

/// A job that sends and brings back so many bytes, each a buffer on the GPU.
Task copying(const Topology& machine, std::string name, std::string_view gpu, int sent, int back) {
  Task task;
  task.name = std::move(name);
  task.period = task.deadline = Duration{1'000'000};
  const std::string ends = std::string(gpu);
  task.steps = {
      test::make_batch(machine, "  - {from: mem0, to: " + ends + ", size: " + std::to_string(sent) + " B}\n"),
      HostStep{Duration{5}},
      test::make_batch(machine, "  - {from: " + ends + ", to: mem0, size: " + std::to_string(back) + " B}\n")};
  return task;
}

// 60 kB + 40 kB fill gpu0 exactly; a byte more does not fit. On gpu1 nobody counts, nor in the memory.
TEST(Admission, CountsTheBuffersOnEveryGpu) {
  const Topology m = machine();
  EXPECT_EQ(decide({m, Policy::Edf, {copying(m, "a", "gpu0", 60'000, 40'000)}}).answer, Answer::Schedulable);
  EXPECT_EQ(decide({m, Policy::Edf, {copying(m, "a", "gpu1", 200'000, 200'000)}}).answer, Answer::Schedulable);
  const AdmissionVerdict verdict = decide({m, Policy::Edf, {copying(m, "a", "gpu0", 60'000, 40'001)}});
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  EXPECT_FALSE(verdict.admitted.has_value());
  EXPECT_TRUE(tells(verdict, "need 100.001 kB on gpu0, which has 100 kB: 1 B too much")) << reasons(verdict);
}

// 20 + 20 kB of each of three tasks: 120 kB.
TEST(Admission, CountsTheBuffersOfAllTasks) {
  const Topology m = machine();
  TaskSet set{m, Policy::Rm, {}};
  for (const char* name : {"a", "b", "c"}) set.tasks.push_back(copying(m, name, "gpu0", 20'000, 20'000));
  EXPECT_TRUE(tells(decide(set), "need 120 kB on gpu0, which has 100 kB: 20 kB too much")) << reasons(decide(set));
  set.tasks.pop_back();
  EXPECT_EQ(decide(set).answer, Answer::Schedulable);
}

// 20 + 20 kB, and D = 2.4 T: 3 sets, 120 kB. With D = 2 T it is 2 sets, 80 kB.
TEST(Admission, CountsEveryBufferSet) {
  const Topology m = machine();
  TaskSet set{m, Policy::Edf, {copying(m, "a", "gpu0", 20'000, 20'000)}};
  set.tasks[0].deadline = Duration{2'400'000};
  EXPECT_TRUE(tells(decide(set), "20 kB too much")) << reasons(decide(set));
  set.tasks[0].deadline = Duration{2'000'000};
  EXPECT_EQ(decide(set).answer, Answer::Schedulable);
}

// A copy from gpu1 to gpu0 has a buffer on each: 100 kB fit, 100001 B do not.
TEST(Admission, CountsBothEndsOfAPeerCopy) {
  const Topology m = machine();
  for (const auto& [size, answer] : {std::pair("100 kB", Answer::Schedulable), {"100001 B", Answer::NotSchedulable}}) {
    TaskSet set{m, Policy::Edf, {copying(m, "a", "gpu1", 10, 10)}};
    set.tasks[0].steps = {test::make_batch(m, std::string("  - {from: gpu1, to: gpu0, size: ") + size + "}\n")};
    EXPECT_EQ(decide(set).answer, answer) << size;
  }
}

// 2^62 jobs alive at a time and 2^53 bytes each are refused, not wrapped around.
TEST(Admission, RefusesBuffersBeyondAllCounting) {
  const Topology m = machine();
  Task task = copying(m, "a", "gpu0", 1, 1);
  task.steps = {test::make_batch(m, "  - {from: mem0, to: gpu0, size: 9007199254740992 B}\n")};
  task.period = Duration{1};
  task.deadline = task.jitter = Duration{kLargest};
  task.declared_wcet = Duration{0};
  const AdmissionVerdict verdict = decide({m, Policy::Edf, {task}});
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  EXPECT_TRUE(tells(verdict, "more than 9 EB")) << reasons(verdict);
}

// The set keeps what it was admitted with: a plan for each batch, from guaranteed bandwidths.
TEST(AdmittedTaskSet, CarriesThePlans) {
  const Topology m = machine();
  const AdmissionVerdict verdict = decide({m, Policy::Edf, {copying(m, "a", "gpu0", 600, 400)}});
  ASSERT_TRUE(verdict.admitted.has_value());
  const JobBound& bound = verdict.admitted->planned().bounds[0];
  ASSERT_EQ(bound.plans.size(), 2U);
  EXPECT_EQ(bound.plans[0][0].timeline.latency, Duration{600});
  EXPECT_EQ(bound.plans[1][0].timeline.latency, Duration{400});
  EXPECT_EQ(bound.wcet.bound(), Duration{1005});
  EXPECT_EQ(verdict.admitted->planner().name, planners().front().name);
}

// One that only necessary tests speak about cannot be: every policy has an exact test.
TEST(Admission, AsksATestThatCanProve) {
  for (const Policy policy : {Policy::Edf, Policy::Rm, Policy::Dm}) {
    const AdmissionVerdict verdict = decide(policy, {task("a", 1, 10, 10)});
    EXPECT_TRUE(std::any_of(verdict.tests.begin(), verdict.tests.end(),
                            [](const Verdict& test) { return test.exactness == Exactness::Exact; }));
  }
}

// Twelve tasks of 1 ns each within 10 ns: nine are named, the others are 3 ns together.
TEST(AdmissionVerdict, CountsManyTasksTogether) {
  std::vector<Task> tasks;
  for (int i = 0; i < 12; ++i) tasks.push_back(task("t" + std::to_string(i), 1, 10, 10));
  EXPECT_TRUE(tells(decide(Policy::Edf, tasks), "1 ns of 't8', 3 ns of 3 other tasks)"))
      << reasons(decide(Policy::Edf, tasks));
}

}  // namespace
}  // namespace tutti::internal
