#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sched/admission/admission.hpp"
#include "sched/overlap/local_deadlines.hpp"
#include "sched/overlap/operations.hpp"
#include "sched/overlap/overlap_verdict.hpp"
#include "sched/tasks/wcet.hpp"
#include "tests/support/overlap_adversary.hpp"
#include "tests/support/overlap_sets.hpp"
#include "tests/support/random.hpp"
#include "tests/support/random_machine.hpp"
#include "tests/support/two_sides.hpp"

namespace tutti::internal {
namespace {

using test::kUp0;
using test::kUp1;
using test::make_batch;
using test::make_machine;
using test::Random;
using test::stretched;
using test::tasks_of;
using test::two_sides;

OperationSet split(const TaskSet& set) {
  auto operations = operations_of(set);
  EXPECT_TRUE(operations) << operations.error().text();
  return *std::move(operations);
}

OverlapVerdict decide(const TaskSet& set) {
  auto verdict = decide_overlapping(set);
  EXPECT_TRUE(verdict) << verdict.error().text();
  return *std::move(verdict);
}

std::vector<std::string> held(const OperationSet& operations) {
  std::vector<std::string> names;
  for (const Operation& operation : operations.operations)
    names.push_back(operations.resources[operation.resource].name);
  return names;
}

/// Two GPUs on links of 50 GB/s, from a memory that gives so many GB/s in all.
/// @param theoretical  GB/s that the standard of the links gives
Topology two_links(int theoretical, int memory) {
  return make_machine(fmt::format(R"(  vertices:
    mem0: {{kind: memory}}
    gpu0: {{kind: gpu}}
    gpu1: {{kind: gpu}}
  links:
    - {{from: mem0, to: gpu0, bandwidth: {{nominal: 50 GB/s, theoretical: {0} GB/s}}}}
    - {{from: mem0, to: gpu1, bandwidth: {{nominal: 50 GB/s, theoretical: {0} GB/s}}}}
  shared: [{{name: memory, capacity: {1} GB/s, members: [{{from: mem0, to: gpu0}}, {{from: mem0, to: gpu1}}]}}]
)",
                                  theoretical, memory));
}

// ---- operations

// 6000 bytes at 1 byte/ns, then the kernel: each on what it needs.
TEST(Operations, HoldWhatTheyUse) {
  const OperationSet operations = split(tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 6 kB, kernel: {time: 5 us}",
                                                               "from: gpu0, to: mem0, size: 1 kB", "host"}));
  EXPECT_EQ(held(operations), (std::vector<std::string>{"gpu0 copies in", "gpu0", "gpu0 copies out", "cpu0"}));
  EXPECT_EQ(operations.operations[0].worst(), Duration{6000});
  EXPECT_EQ(operations.operations[1].worst(), Duration{5000});
  EXPECT_EQ(operations.operations[3].worst(), Duration{1000});
  EXPECT_EQ(operations.jobs[0], (std::vector<StepOperations>{{{0, 1}}}));
}

// The copy from gpu0 to gpu1 goes through mem0: first it holds the one engine, then the other one, 1 us each, so
// neither is idle for it.
TEST(Operations, ThroughAMemoryAreTwoCopies) {
  const OperationSet operations = split(
      tasks_of(two_sides(), {"from: gpu0, to: gpu1, size: 1 kB", kUp1, "from: gpu0, to: mem0, size: 1 kB", kUp0}));
  EXPECT_EQ(held(operations), (std::vector<std::string>{"gpu0 copies out", "gpu1 copies in", "gpu1 copies in",
                                                        "gpu0 copies out", "gpu0 copies in"}));
  EXPECT_EQ(operations.jobs[0], (std::vector<StepOperations>{{{0, 1}}}));
  for (const std::size_t leg : {0U, 1U}) EXPECT_EQ(operations.operations[leg].worst(), Duration{1000});
}

// A memory of 1 byte/ns for two copies: 0.5 each beside each other, so 12 us; alone 6 us.
TEST(Operations, TakeAsLongAsInTheWorstCompany) {
  const Topology machine = two_sides(
      "  shared: [{name: memory, capacity: 1 GB/s, members: [{from: mem0, to: gpu0}, {from: mem0, to: gpu1}]}]\n");
  const OperationSet operations = split(tasks_of(machine, {kUp0, kUp1}));
  EXPECT_EQ(operations.operations[0].worst(), Duration{12'000});
  EXPECT_EQ(operations.operations[0].least(), Duration{6000});
  EXPECT_EQ(split(tasks_of(machine, {kUp0})).operations[0].worst(), Duration{6000});
}

// A disk takes up to 0.4 of the memory's 1 byte/ns: 0.3 are left to each of two copies beside each other, so 6000 bytes
// take 20 us; alone 6000 / 0.6 = 10 us.
TEST(Operations, HaveWhatBackgroundLoadLeaves) {
  const Topology machine = make_machine(R"(  vertices:
    mem0: {kind: memory}
    hub0: {kind: hub}
    gpu0: {kind: gpu}
    gpu1: {kind: gpu}
    disk0: {kind: device}
  links:
    - {from: mem0, to: hub0, bandwidth: 1 GB/s}
    - {from: hub0, to: gpu0, bandwidth: 1 GB/s}
    - {from: hub0, to: gpu1, bandwidth: 1 GB/s}
    - {from: hub0, to: disk0, bandwidth: 1 GB/s}
  background: [{from: mem0, to: disk0, bandwidth: {nominal: 100 MB/s, most: 400 MB/s}}]
)");
  const OperationSet operations = split(tasks_of(machine, {kUp0, kUp1}));
  EXPECT_EQ(operations.operations[0].worst(), Duration{20'000});
  EXPECT_EQ(operations.operations[0].least(), Duration{10'000});
}

// Every operation has the batch's 100 ns, its gate's 10 ns and its own cost, a copy the longer of a turn and a
// handover; 10 % and 7 ns of margin; the dispatcher's time for it and twice for the other resource, and the job's cost
// behind: copy 1.1 x (100 + 10 + 20 + 5 + 6000) + 7 + 3 x 40 + 3 = 6878.5, kernel 1.1 x (100 + 10 + 30 + 5 + 500) + 7 +
// 3 x 40 + 3 = 839.5.
TEST(Operations, HaveAllCostsOfABatch) {
  const Topology machine = two_sides(
      "  setup: {batch: 100 ns, transfer: 20 ns, kernel: 30 ns, handover: 5 ns, gate: 10 ns, dispatch: 40 ns, job: 3 "
      "ns}\n"
      "  margin: {relative: 0.1, absolute: 7 ns}\n");
  const OperationSet operations =
      split(tasks_of(machine, {"from: mem0, to: gpu0, size: 6 kB, kernel: {time: 500 ns}"}));
  EXPECT_EQ(operations.operations[0].worst(), Duration{6879});
  EXPECT_EQ(operations.operations[1].worst(), Duration{840});
}

// 6000 bytes in chunks of 2000: three regions of 2 us; the kernel is not cut.
TEST(Operations, AreCutWhereTheSetSays) {
  TaskSet set = tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 6 kB, kernel: {time: 5 us}"});
  set.preemption = Preemption::BetweenBatches;
  set.cut = Bytes{2000};
  const OperationSet operations = split(set);
  EXPECT_EQ(operations.operations[0].regions(), std::vector<Duration>(3, Duration{2000}));
  EXPECT_EQ(operations.operations[1].regions(), std::vector<Duration>{Duration{5000}});
}

TEST(Operations, OfATaskWithoutAJobAreUnknown) {
  const auto refused = operations_of(tasks_of(two_sides(), {kUp0, "wcet"}));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("'t1'"), std::string::npos) << refused.error().message;
}

// ---- verdicts

// Each task copies for 6 us and computes for 5 us every 10 us. One job at a time takes 11 us: too long. Overlapping,
// each engine and GPU has one task and is busy for 60 and 50 %; a job ends 11 us after its arrival.
TEST(Overlap, RunsJobsOfOneTaskInAPipeline) {
  TaskSet set = tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 6 kB, kernel: {time: 5 us}"});
  set.tasks[0].deadline = Duration{12'000};
  const OverlapVerdict verdict = decide(set);
  EXPECT_EQ(verdict.answer, Answer::Schedulable);
  EXPECT_NEAR(verdict.utilization[0], 0.6, 1e-12);
  EXPECT_NEAR(verdict.utilization[1], 0.5, 1e-12);
  EXPECT_LE(*verdict.worst_responses[0], Duration{12'000});
  EXPECT_GE(*verdict.worst_responses[0], Duration{11'000});
}

// 11 us from the arrival with the machine for itself, and the deadline is 10 us.
TEST(Overlap, RefusesJobsThatAreLateAlone) {
  const OverlapVerdict verdict =
      decide(tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 6 kB, kernel: {time: 5 us}"}));
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  ASSERT_EQ(verdict.reasons.size(), 1U);
  EXPECT_NE(verdict.reasons[0].find("'t0' takes up to 11 us"), std::string::npos) << verdict.reasons[0];
}

// A jitter of 292 years and a host step of 1 us behind it, within 292 years: too late, and no sum wraps.
TEST(Overlap, RefusesJobsThatAreReadyAtTheEndOfTime) {
  TaskSet set = tasks_of(two_sides(), {kUp0, "host"});
  set.tasks[1].steps.push_back(set.tasks[0].steps[0]);
  for (Task& task : set.tasks) task.deadline = task.jitter = Duration::max();
  EXPECT_EQ(decide(set).answer, Answer::NotSchedulable);
  EXPECT_EQ(answer_overlapping(set), Answer::NotSchedulable);
}

// Two copies of 6 us every 10 us by one engine: 120 %.
TEST(Overlap, RefusesAnEngineThatIsInDemandForAllTheTime) {
  const OverlapVerdict verdict = decide(tasks_of(two_sides(), {kUp0, kUp0}));
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  EXPECT_NE(verdict.reasons.at(0).find("'gpu0 copies in'"), std::string::npos) << verdict.reasons[0];
}

// A copy of 2 us, a kernel of 5 us and 1 us back, due within 12 us: its kernel has 12 - 2 - 1 = 9 us. A second such job
// from the other side of the memory makes 10 us of kernels on gpu0: too much by 1 us. Within 13 there is room, and all
// else is open.
TEST(Overlap, RefusesAGpuThatIsInDemandForMoreThanAnInterval) {
  const std::vector<std::string> streams(2, "from: mem0, to: gpu0, size: 2 kB, kernel: {time: 5 us}");
  TaskSet set = tasks_of(two_sides(), streams);
  for (Task& task : set.tasks) {
    task.steps.push_back(test::make_batch(two_sides(), "  - {from: gpu0, to: mem0, size: 1 kB}\n"));
    task.period = Duration{100'000};
    task.deadline = Duration{12'000};
  }
  const OverlapVerdict verdict = decide(set);
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  EXPECT_EQ(answer_overlapping(set), Answer::NotSchedulable);
  ASSERT_EQ(verdict.refusals.size(), 1U);
  EXPECT_EQ(verdict.operations.units[verdict.refusals[0].unit], "gpu0");
  EXPECT_EQ(verdict.refusals[0].witness->interval, Duration{9000});
  EXPECT_EQ(verdict.refusals[0].witness->load, Duration{10'000});
  EXPECT_NE(verdict.reasons.at(0).find("'gpu0' can be in demand for 10 us within 9 us"), std::string::npos)
      << verdict.reasons[0];
  for (Task& task : set.tasks) task.deadline = Duration{13'000};
  EXPECT_NE(decide(set).answer, Answer::NotSchedulable);
}

// A copy of 6 us that has just begun, and one of 2 us that comes then: 8 us, whatever the order; known arrivals keep
// them apart. Half of the 6 us in each of two pieces leaves 3 + 2.
TEST(Overlap, RefusesWhatIsTooLateBehindAnOperationThatHasJustBegun) {
  TaskSet set = tasks_of(two_sides(), {kUp0, "from: mem0, to: gpu0, size: 2 kB"});
  for (Task& task : set.tasks) task.period = task.deadline = Duration{100'000};
  set.tasks[1].deadline = Duration{7999};
  const OverlapVerdict verdict = decide(set);
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  EXPECT_EQ(answer_overlapping(set), Answer::NotSchedulable);
  EXPECT_NE(verdict.reasons.at(0).find(
                "'gpu0 copies in' can be in demand for 8 us within 7.999 us, the last 6 us of a job of 't0' that had "
                "just begun among it"),
            std::string::npos)
      << verdict.reasons[0];
  TaskSet in_pieces = set;
  in_pieces.preemption = Preemption::BetweenBatches;
  in_pieces.cut = Bytes{3000};
  EXPECT_EQ(decide(in_pieces).answer, Answer::Schedulable);
  TaskSet apart = set;
  apart.arrivals = Arrivals::Periodic;
  EXPECT_NE(decide(apart).answer, Answer::NotSchedulable);
  set.tasks[1].deadline = Duration{8000};
  EXPECT_EQ(decide(set).answer, Answer::Schedulable);
}

// One job at a time is an order, too: what holds so is refused to nobody. (Copies through a memory apart, whose two
// legs run side by side then.)
TEST(Overlap, RefusesNothingThatHoldsOneJobAtATime) {
  Random random(5);
  const Topology machine = test::overlap_machine();
  int holds = 0, refused = 0;
  for (int round = 0; round < test::rounds(3000); ++round) {
    TaskSet set = test::random_overlap_set(random, machine);
    if (random.one_in(3)) set.preemption = Preemption::BetweenBatches;
    if (random.one_in(2)) set.cut = Bytes{random.between(0, 1) * random.between(500, 3000)};
    const OperationSet operations = operations_of(set).value();
    const auto has_legs = [](const Operation& operation) { return operation.parts.front().leg != Leg::Whole; };
    if (std::ranges::any_of(operations.operations, has_legs)) continue;
    for (std::size_t i = 0; i < set.tasks.size(); ++i) {
      Task& task = set.tasks[i];
      task.period *= random.between(1, 8);
      const Duration alone = longest_way(operations, least_times(operations), TaskId{i});
      task.deadline = std::max(Duration{1}, alone * random.between(100, 600) / 100 + task.jitter);
    }
    const bool is_refused = answer_overlapping(set) == Answer::NotSchedulable;
    refused += is_refused ? 1 : 0;
    if (AdmissionController(planners().front()).answer(set) != Answer::Schedulable) continue;
    ++holds;
    ASSERT_FALSE(is_refused) << round;
  }
  EXPECT_GT(holds, test::rounds(200));
  EXPECT_GT(refused, test::rounds(60));
}

// On one engine, without costs, nothing overlaps: EDF is then the best order that knows no arrivals, and its test
// exact.
TEST(Overlap, RefusesOnOneEngineWhatOneJobAtATimeMisses) {
  Random random(6);
  int holds = 0, refused = 0;
  for (int round = 0; round < test::rounds(2000); ++round) {
    std::vector<std::string> copies;
    for (int task = random.between(2, 5); task > 0; --task)
      copies.push_back(fmt::format("from: mem0, to: gpu0, size: {} B", random.between(1, 3000)));
    TaskSet set = tasks_of(two_sides(), copies);
    for (Task& task : set.tasks) {
      task.period = Duration{random.between(3000, 20'000)};
      task.deadline = Duration{random.between(2500, 15'000)};
    }
    const Answer exact = AdmissionController(planners().front()).answer(set);
    ASSERT_EQ(answer_overlapping(set), exact) << round;
    (exact == Answer::Schedulable ? holds : refused) += 1;
  }
  EXPECT_GT(holds, test::rounds(300));
  EXPECT_GT(refused, test::rounds(300));
}

// With known arrivals 6 us apart the same kernels need not meet.
TEST(Overlap, RefusesNoDemandThatKnownArrivalsKeepApart) {
  TaskSet set = tasks_of(two_sides(), std::vector<std::string>(2, "kernel: {on: gpu0, time: 5 us}"));
  set.tasks[0].deadline = set.tasks[1].deadline = Duration{9000};
  EXPECT_EQ(decide(set).answer, Answer::NotSchedulable);
  set.arrivals = Arrivals::Periodic;
  EXPECT_EQ(decide(set).answer, Answer::NotSchedulable);
  set.tasks[1].offset = Duration{5000};
  EXPECT_EQ(decide(set).answer, Answer::Unknown);
}

// A second copy makes 12 us of 6: the engine's 10 us do not suffice beside it, but nothing is proven.
TEST(Overlap, IsUnknownWhereOnlyTheWorstCompanyIsTooSlow) {
  const Topology machine = two_sides(
      "  shared: [{name: memory, capacity: 1 GB/s, members: [{from: mem0, to: gpu0}, {from: mem0, to: gpu1}]}]\n");
  const OverlapVerdict verdict = decide(tasks_of(machine, {kUp0, kUp1}));
  EXPECT_EQ(verdict.answer, Answer::Unknown);
  EXPECT_NE(verdict.reasons.at(0).find("120.0 %"), std::string::npos) << verdict.reasons[0];
}

// `frame` and `model` share no engine and no GPU: only the links to the memory, which both together cannot fill.
TEST(Overlap, DoesNotWaitForWhatItDoesNotUse) {
  const Topology machine = two_links(63, 176);
  TaskSet set = tasks_of(machine, {"from: mem0, to: gpu0, size: 200 MB, kernel: {time: 1 ms}",
                                   "from: mem0, to: gpu1, size: 1 MB, kernel: {time: 12 ms}"});
  set.tasks[0].period = set.tasks[0].deadline = std::chrono::milliseconds{10};
  set.tasks[1].period = set.tasks[1].deadline = std::chrono::milliseconds{40};
  EXPECT_EQ(decide(set).answer, Answer::Schedulable);
}

// Copies and kernels of 2 us every 10 us, beside ones of 4 us every 100. Apart, each of the former can wait 4 us at the
// engine and again at the GPU: 4 + 2 + 4 + 2 > 10. As one resource it waits for one operation: 4 + 2 + 2 <= 10.
TEST(Overlap, JoinsAGpuWithItsEnginesWhereThatBlocksLess) {
  TaskSet set = tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 2 kB, kernel: {time: 2 us}",
                                       "from: mem0, to: gpu0, size: 4 kB, kernel: {time: 4 us}"});
  set.tasks[1].period = set.tasks[1].deadline = Duration{100'000};
  EXPECT_FALSE(find_local_deadlines(set, split(set)));
  const OverlapVerdict verdict = decide(set);
  EXPECT_EQ(verdict.answer, Answer::Schedulable);
  EXPECT_EQ(held(verdict.operations), std::vector<std::string>(2, "gpu0 copies in + gpu0 + gpu0 copies out"));
  EXPECT_EQ(verdict.worst_responses[0], Duration{8000});
  EXPECT_EQ(answer_overlapping(set), Answer::Schedulable);
}

// Two host steps one after the other are one stay at the cpu; others may come between them.
TEST(Operations, OnOneResourceAreOneStay) {
  TaskSet set = tasks_of(two_sides(), {"host"});
  set.tasks[0].steps.emplace_back(HostStep{Duration{500}});
  set.tasks[0].steps.push_back(make_batch(two_sides(), "  - {from: mem0, to: gpu0, size: 1 kB}\n"));
  const OperationSet operations = split(set);
  EXPECT_EQ(held(operations), (std::vector<std::string>{"cpu0", "gpu0 copies in"}));
  EXPECT_EQ(operations.operations[0].regions(), (std::vector<Duration>{Duration{1000}, Duration{500}}));
  EXPECT_EQ(operations.jobs[0], (std::vector<StepOperations>{{{0}}, {{1}}}));
}

// A link of 50 GB/s by measurement that its standard gives 10: what was measured counts. Two copies share 60: 30 each.
TEST(Operations, BelieveNoStandardBelowWhatWasMeasured) {
  const Topology machine = two_links(10, 60);
  const OperationSet operations =
      split(tasks_of(machine, {"from: mem0, to: gpu0, size: 300 kB", "from: mem0, to: gpu1, size: 300 kB"}));
  EXPECT_EQ(operations.operations[0].worst(), Duration{10'000});
}

// gpu0 -> mem0 and mem0 -> gpu1 take 6 us of every 10; a copy of gpu0 to gpu1 now and then needs both engines, one
// after the other.
TEST(Overlap, HasRoomForACopyThroughAMemory) {
  TaskSet set = tasks_of(two_sides(), {"from: gpu0, to: mem0, size: 6 kB", kUp1, "from: gpu0, to: gpu1, size: 100 B"});
  set.tasks[2].period = set.tasks[2].deadline = Duration{1'000'000};
  EXPECT_EQ(decide(set).answer, Answer::Schedulable);
}

// Kernels on a cpu may run side by side, where its cores allow that: two of 6 us every 10 us are no proof.
TEST(Overlap, RefusesNothingForItsCpus) {
  EXPECT_EQ(decide(tasks_of(two_sides(), {"kernel: {on: cpu0, time: 6 us}", "kernel: {on: cpu0, time: 6 us}"})).answer,
            Answer::Unknown);
}

// Host steps of 1 and 0.5 us around a short copy: two stays at one cpu, which can wait for each other. With 4 us there
// is room for that, if it goes to both.
TEST(Overlap, LeavesRoomForWaitsWithinOneTask) {
  TaskSet set = tasks_of(two_sides(), {"host"});
  set.tasks[0].steps.push_back(test::make_batch(two_sides(), "  - {from: mem0, to: gpu0, size: 10 B}\n"));
  set.tasks[0].steps.emplace_back(HostStep{Duration{500}});
  for (const int deadline : {3100, 4000, 5000, 9000}) {
    set.tasks[0].deadline = Duration{deadline};
    EXPECT_EQ(decide(set).answer, Answer::Schedulable) << deadline;
  }
}

// Three host steps of 6, 5 and 4 us every 10 us on two cores: the longest by itself, the others on the second one,
// which is in demand for 90 %. With one core it is 150 %.
TEST(Operations, ShareOutTheCoresOfACpu) {
  const auto with_cores = [](int cores) {
    const Topology machine = make_machine(fmt::format(R"(  vertices:
    mem0: {{kind: memory}}
    cpu0: {{kind: cpu, cores: {}}}
    gpu0: {{kind: gpu}}
  links: [{{from: mem0, to: cpu0, bandwidth: 1 GB/s}}, {{from: cpu0, to: gpu0, bandwidth: 1 GB/s}}]
)",
                                                      cores));
    TaskSet set = tasks_of(machine, {"host", "host", "host"});
    const std::int64_t times[] = {4000, 6000, 5000};
    for (std::size_t i = 0; i < 3; ++i) set.tasks[i].steps = {HostStep{Duration{times[i]}}};
    return set;
  };
  EXPECT_EQ(held(split(with_cores(2))),
            (std::vector<std::string>{"core 1 of cpu0", "core 0 of cpu0", "core 1 of cpu0"}));
  EXPECT_NEAR(decide(with_cores(2)).utilization[0], 0.9, 1e-9);
  EXPECT_EQ(decide(with_cores(2)).answer, Answer::Schedulable);
  EXPECT_EQ(decide(with_cores(1)).answer, Answer::Unknown);
}

// Random streams on one engine, with random costs: as operations they take no less than as one batch.
TEST(Operations, TakeTogetherNoLessThanTheirBatch) {
  Random random(3);
  for (int round = 0; round < test::rounds(300); ++round) {
    const auto cost = [&] { return random.one_in(3) ? 0 : random.between(1, 900); };
    const Topology machine = two_sides(fmt::format(
        "  setup: {{batch: {} ns, gate: {} ns, kernel: {} ns, handover: {} ns, turn: {} ns, dispatch: {} ns, "
        "job: {} ns, transfer: {} ns}}\n",
        cost(), cost(), cost(), cost(), cost(), cost(), cost(), cost()));
    std::string streams;
    for (int i = random.between(1, 6); i > 0; --i)
      streams += fmt::format("  - {{from: gpu0, to: mem0, size: {} B}}\n", random.between(1, 3000));
    TaskSet set = tasks_of(machine, {"host"});
    set.tasks[0].steps = {make_batch(machine, streams)};
    const Duration batch = bound_job(set.tasks[0], machine, planners().front()).wcet.bound();
    Duration sum{};
    for (const Operation& operation : split(set).operations) sum += operation.worst();
    ASSERT_GE(sum, batch) << round << "\n" << streams;
  }
}

// ---- the bound against an adversary

/// What the adversary found in sets that were called schedulable.
struct Found {
  int sets = 0, unsafe = 0, close = 0;
};

/// @param share  of the longest times that the analysis hears of
Found attack(int rounds, double share, int runs = 30) {
  Random random(7);
  const Topology alone = test::overlap_machine();
  Found found;
  for (int round = 0; round < rounds; ++round) {
    const Topology machine =
        round % 2 == 0 ? alone : test::with_random_background(alone, static_cast<std::uint64_t>(round));
    const TaskSet set = test::random_overlap_set(random, machine);
    OverlapVerdict verdict = decide(set);
    if (verdict.answer != Answer::Schedulable) continue;
    OperationSet shorter = verdict.operations;
    for (Operation& operation : shorter.operations)
      for (OperationPart& part : operation.parts)
        for (Duration& region : part.regions)
          region = Duration{static_cast<std::int64_t>(share * static_cast<double>(region.count()))};
    if (share < 1) {
      const auto kept = find_local_deadlines(set, shorter);
      if (!kept) continue;
      verdict = with_deadlines(set, std::move(shorter), *kept);
    }
    ++found.sets;
    bool unsafe = false, close = false;
    for (int run = 0; run < runs; ++run) {
      const test::OverlapOutcome outcome = test::play_overlapping(set, verdict.operations, *verdict.deadlines, random);
      for (std::size_t i = 0; i < set.tasks.size(); ++i) {
        const double bound = as_ns(*verdict.worst_responses[i]);
        unsafe = unsafe || outcome.responses[i] > bound + 1;
        close = close || outcome.responses[i] > 0.98 * bound;
      }
      unsafe = unsafe || outcome.latest > 1 || outcome.doubled;
    }
    found.unsafe += unsafe ? 1 : 0;
    found.close += close ? 1 : 0;
  }
  return found;
}

// No run of any admitted set is over a bound or late for a local deadline; in many the worst one comes near its bound.
TEST(Overlap, BoundsEveryRunThatAnAdversaryFinds) {
  const Found found = attack(test::rounds(1500), 1, test::kSanitized ? 6 : 30);
  EXPECT_EQ(found.unsafe, 0);
  EXPECT_GT(found.sets, test::rounds(1500) / 5);
  EXPECT_GT(found.close, found.sets / 5);
}

// Longest times that are 2 % too short: the adversary finds it.
TEST(Overlap, IsFoundOutWhereItsTimesAreTooShort) { EXPECT_GT(attack(test::rounds(300), 0.98).unsafe, 3); }

/// The set where a GPU has so many copy engines.
TaskSet with_engines(const TaskSet& set, std::size_t gpu, int engines) {
  MachineSpec spec = set.machine->spec();
  spec.vertices[set.machine->gpus()[gpu].index()].copy_engines = engines;
  return test::on_machine(set, compile(spec).value());
}

// A GPU with one engine more can do as one without it: sets that are stretched until they just hold hold there, too.
TEST(Overlap, OneCopyEngineMoreIsNeverWorse) {
  Random random(7);
  const Topology machine = test::overlap_machine();
  for (int round = 0; round < test::rounds(60); ++round) {
    const TaskSet set = test::random_overlap_set(random, machine);
    const auto gpu = random.below(machine.gpus().size());
    const int engines = random.between(1, 2);
    const auto holds = [&](double factor, int with) {
      return answer_overlapping(with_engines(stretched(set, factor), gpu, with)) == Answer::Schedulable;
    };
    double low = 0.02, high = 4;
    for (int step = 0; step < 8; ++step) {
      const double middle = std::sqrt(low * high);
      (holds(middle, engines) ? high : low) = middle;
    }
    EXPECT_TRUE(!holds(high, engines) || holds(high, engines + 1))
        << "round " << round << ", GPU " << gpu << ", " << engines << " engines, " << high;
  }
}

}  // namespace
}  // namespace tutti::internal
