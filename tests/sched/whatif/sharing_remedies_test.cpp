// Remedies that change how jobs share the machine and nothing of the work: preemption and cut. Copies move 1 byte/ns.
#include <optional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sched/tasks/cut.hpp"
#include "sched/whatif/remedies.hpp"
#include "tests/support/random.hpp"
#include "tests/support/refused_set.hpp"
#include "tests/support/task_file.hpp"
#include "tests/support/task_timings.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

using test::planner;
using test::remedies_of;
using test::schedulable;

TaskStudy study_of(const std::string& text, const std::string& setup = "0") {
  return test::make_study("version: 1\nmachine: m.yaml\n" + text,
                          test::machine_file("  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}\n  links: "
                                             "[{from: mem0, to: gpu0, bandwidth: 1 GB/s, back: 1 GB/s}]\n  setup: "
                                             "{batch: " +
                                             setup + "}\n"));
}

/// "from -> to" of the remedy of this kind, which holds; empty where there is none.
std::string remedy(TunableKind kind, const TaskStudy& study) {
  for (const Remedy& remedy : remedies_of(study).remedies) {
    if (remedy.tunable.kind != kind) continue;
    EXPECT_TRUE(schedulable(study, remedy.tunable, remedy.to));
    return value_text(remedy.tunable, remedy.tunable.value) + " -> " + value_text(remedy.tunable, remedy.to);
  }
  return "";
}

std::string preemption(const TaskStudy& study) { return remedy(TunableKind::Preemption, study); }
std::string cut(const TaskStudy& study) { return remedy(TunableKind::Cut, study); }

const std::string kQuick = "  - {name: quick, period: 10 ms, wcet: 4 ms}\n";
const std::string kThere = "{batch: [{from: mem0, to: gpu0, size: 5 MB}]}";
const std::string kLong = "  - {name: long, period: 40 ms, job: [" + kThere + ", " + kThere + "]}\n";
const std::string kOneBatch =
    "  - {name: long, period: 40 ms, job: [{batch: [{from: mem0, to: gpu0, size: 10 MB}]}]}\n";
const std::string kBetween = "preemption: between_batches\n";

// quick (4 ms) cannot wait 10 ms for both batches of long, but for one of 5.
TEST(SharingRemedies, LetQuickTasksPassBetweenBatches) {
  const TaskStudy study = study_of("tasks:\n" + kQuick + kLong);
  EXPECT_EQ(preemption(study), "none -> between_batches");
  EXPECT_EQ(remedies_of(study).remedies.front().tunable.kind, TunableKind::Preemption);
  EXPECT_EQ(remedies_of(study).remedies.front().relative, std::nullopt);
  EXPECT_EQ(cut(study), "");
}

// One batch has nowhere to pass. 7 ms of quick's 10 leave 3 for a batch of 5.
TEST(SharingRemedies, AreNoneWherePassingBetweenBatchesDoesNotHelp) {
  EXPECT_EQ(preemption(study_of("tasks:\n" + kQuick + kOneBatch)), "");
  EXPECT_EQ(preemption(study_of("tasks:\n  - {name: quick, period: 10 ms, wcet: 7 ms}\n" + kLong)), "");
}

// Not interrupted, l (3 + 3) above which is h (2, 5) waits for one h: 2 + 6 = 8. Between its batches a second h would
// go: 3 + 2 + 2 + 3 = 10. h can wait for all 6 of l: 6 + 2 = 8.
TEST(SharingRemedies, MayForbidToPass) {
  const std::string batch = "{batch: [{from: mem0, to: gpu0, size: 3 B}]}";
  const std::string tasks =
      "policy: rm\ntasks:\n  - {name: h, period: 5 ns, deadline: 8 ns, wcet: 2 ns}\n"
      "  - {name: l, period: 20 ns, deadline: 8 ns, job: [" +
      batch + ", " + batch + "]}\n";
  EXPECT_EQ(preemption(study_of(kBetween + tasks)), "between_batches -> none");
  EXPECT_EQ(preemption(study_of(kBetween + "cut: 2 B\n" + tasks)), "");
}

/// Two GPUs behind links of 1 GB/s.
TaskStudy on_two_gpus(const std::string& tasks) {
  return test::make_study(
      "version: 1\nmachine: m.yaml\n" + tasks,
      test::machine_file("  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}, gpu1: {kind: gpu}}\n"
                         "  links: [{from: mem0, to: gpu0, bandwidth: 1 GB/s, back: 1 GB/s}, "
                         "{from: mem0, to: gpu1, bandwidth: 1 GB/s, back: 1 GB/s}]\n"));
}

// Each copies for 6 of every 10 ms to one GPU; each has one for itself where one of them moves. A kernel moves with its
// copy. The third of three has no room anywhere.
TEST(SharingRemedies, MayBeAnotherGpu) {
  const auto task = [](const std::string& name) {
    return "  - {name: " + name +
           ", period: 10 ms, job: [{batch: [{from: mem0, to: gpu0, size: 6 MB, kernel: {on: gpu0, "
           "time: 1 ms}}]}]}\n";
  };
  const TaskStudy study = on_two_gpus("tasks:\n" + task("a") + task("b"));
  const Remedies remedies = remedies_of(study);
  EXPECT_EQ(remedies.remedies.front().tunable.kind, TunableKind::Gpu);
  EXPECT_EQ(remedies.remedies.front().tunable.task, "a");
  EXPECT_EQ(remedy(TunableKind::Gpu, study), "gpu0 -> gpu1");
  EXPECT_EQ(remedy(TunableKind::Gpu, on_two_gpus("tasks:\n" + task("a") + task("b") + task("c"))), "");
}

// The long job starts just before the short one is there again, and makes it late; worked out in critical_window_test.
TEST(SharingRemedies, MayBeThatTheMachineWaits) {
  const std::string tasks =
      "tasks:\n  - {name: a, period: 10 ms, wcet: 3 ms}\n  - {name: b, period: 20 ms, wcet: 6 ms}\n  - {name: c, "
      "period: 40 ms, wcet: ";
  EXPECT_EQ(remedy(TunableKind::Policy, study_of("arrivals: periodic\n" + tasks + "9 ms}\n")), "edf -> cw_edf");
  EXPECT_EQ(remedy(TunableKind::Policy, study_of("arrivals: periodic\n" + tasks + "15 ms}\n")), "");
  EXPECT_EQ(remedy(TunableKind::Policy, study_of(tasks + "9 ms}\n")), "");
}

// 6 ms of copy and 5 of kernel every 10 ms fit where a job's copy goes beside the kernel before it.
TEST(SharingRemedies, MayBeThatJobsOverlap) {
  const std::string task =
      "tasks:\n  - {name: a, period: 10 ms, deadline: 12 ms, job: [{batch: [{from: mem0, to: gpu0, size: 6 MB, kernel: "
      "{time: 5 ms}}]}]}\n";
  EXPECT_EQ(remedy(TunableKind::Overlap, study_of("overlap: off\n" + task)), "off -> on");
  EXPECT_EQ(remedies_of(study_of(task)).remedies.size(), 0U);  // by default they do
}

// The 10 MB of long in two chunks, which any size from 5 MB to below 10 makes; and if it is there: 1 ms for each chunk.
// 20 of 0.5 MB take 30 of every 40 ms, beside the 40 % of quick.
TEST(SharingRemedies, FindTheLargestPieces) {
  const std::string tasks = "tasks:\n" + kQuick + kOneBatch;
  EXPECT_EQ(cut(study_of(tasks)), "none -> 9.999 MB");
  EXPECT_EQ(remedies_of(study_of(tasks)).remedies.front().tunable.name, kWithPreemption);
  EXPECT_EQ(cut(study_of(kBetween + tasks)), "none -> 9.999 MB");
  EXPECT_EQ(cut(study_of(kBetween + "cut: 20 MB\n" + tasks)), "");  // it is cut so of itself
  EXPECT_EQ(cut(study_of(kBetween + tasks, "1 ms")), "none -> 9.999 MB");
  EXPECT_EQ(cut(study_of(kBetween + "cut: 0.5 MB\n" + tasks, "1 ms")), "500 kB -> 9.999 MB");
  EXPECT_EQ(cut(study_of(kBetween + tasks, "2 ms")), "none -> 4.999 MB");
  EXPECT_EQ(cut(study_of(kBetween + tasks, "6 ms")), "");
}

// Now in chunks that cost too much; uncut 10 + 1 ms hold beside 1 of every 40.
TEST(SharingRemedies, MayLeaveBatchesWhole) {
  const std::string tasks = "tasks:\n  - {name: quick, period: 40 ms, wcet: 1 ms}\n" + kOneBatch;
  EXPECT_EQ(cut(study_of(kBetween + "cut: 100 kB\n" + tasks, "1 ms")), "100 kB -> 10 MB");
}

std::string random_tasks(oracle::Dice& dice) {
  std::string text = "tasks:\n";
  for (std::int64_t task = 2; task > 0; --task) {
    const std::int64_t period = dice.roll(20, 70);
    text += fmt::format("  - name: t{}\n    period: {} ns\n    deadline: {} ns\n    job:\n", task, period,
                        dice.roll(period / 2, period));
    for (std::int64_t batch = dice.roll(1, 2); batch > 0; --batch)
      text += fmt::format("      - batch: [{{from: mem0, to: gpu0, size: {} B}}]\n", dice.roll(1, 18));
  }
  return text;
}

std::int64_t largest_transfer_of(const TaskSet& set) {
  Bytes largest{0};
  for (const Task& task : set.tasks)
    for (const Batch* batch : batches_of(task)) largest = std::max(largest, largest_transfer(*batch));
  return largest.count;
}

// Against all sizes, one after the other: none is larger than the remedy and holds, and there is one where any does.
TEST(SharingRemedies, AreTheLargestOfAllSizes) {
  int remedied = 0, without = 0;
  for (std::uint64_t seed = 1; seed <= test::rounds(500U); ++seed) {
    oracle::Dice dice(seed);
    const std::string tasks = random_tasks(dice);
    const std::string setup = fmt::format("{} ns", dice.roll(0, 3));
    const std::int64_t now = dice.roll(0, 1) * dice.roll(1, 10);
    const std::string policy = dice.roll(0, 1) == 0 ? "policy: edf\n" : "policy: dm\n";
    const std::string sharing = kBetween + (now > 0 ? fmt::format("cut: {} B\n", now) : "");
    SCOPED_TRACE(sharing + policy + tasks);
    const TaskStudy study = study_of(sharing + policy + tasks, setup);
    if (AdmissionController(planner()).decide(study.tasks).answer == Answer::Schedulable) {
      EXPECT_EQ(cut(study) + preemption(study), "");
      continue;
    }
    const TunableParameter tunable{TunableKind::Cut, "", "", now, {}};
    std::string largest;
    for (std::int64_t size = 1; size <= largest_transfer_of(study.tasks); ++size) {
      if (schedulable(study, tunable, size)) largest = fmt::format("{} -> {} B", value_text(tunable, now), size);
    }
    EXPECT_EQ(cut(study), largest);
    ++(largest.empty() ? without : remedied);
  }
  EXPECT_GT(remedied, test::rounds(40));
  EXPECT_GT(without, test::rounds(40));
}

}  // namespace
}  // namespace tutti::internal
