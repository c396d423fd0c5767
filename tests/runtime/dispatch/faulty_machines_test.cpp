// Runs of tasks with the faults of a list: which jobs they meet, and what the record says of it. Times in ns.
#include "runtime/dispatch/faulty_machines.hpp"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/dispatch/partitioned_run.hpp"
#include "tests/runtime/task_runs.hpp"
#include "tests/support/two_sides.hpp"

namespace tutti::internal {
namespace {

using test::first_jobs;
using test::Station;

/// t copies 1000 bytes to gpu0 and has a kernel of 100 behind, then a host step of 500, every 100'000: 1600 in all. It
/// runs 4 times.
struct RunWithFaults {
  explicit RunWithFaults(std::vector<RunFault> list) : faults{std::move(list)} {
    Task task = test::task("t", 0, 100'000);
    task.declared_wcet.reset();
    CommandStream stream = test::copy_stream("s", station.at("mem0"), station.at("gpu0"), 1000);
    stream.kernel = Kernel{station.at("gpu0"), Duration{100}, Duration{100}, "spin"};
    task.steps = {station.batch({stream}), HostStep{Duration{500}}};
    set = {station.machine, Policy::Dm, {task}};
  }

  RunRecord run(std::uint64_t jobs = 4, std::uint64_t seed = 1) {
    const AdmittedTaskSet admitted = test::admit(set);
    std::vector<std::unique_ptr<PatternProgram>> programs;
    std::vector<TaskProgram*> table;
    for (const Task& task : set.tasks)
      table.push_back(programs.emplace_back(std::make_unique<PatternProgram>(station.machine, task, 1)).get());
    Executor* const machines[] = {&station.executor};
    const FaultyMachines faulty(machines, table, admitted.planned(), faults, {2, Duration{10'000}}, seed);
    auto record = run_tasks(faulty.executors(), admitted, faulty.programs(), first_jobs(jobs));
    counts = faulty.counts();
    EXPECT_TRUE(record.has_value());
    return *std::move(record);
  }

  Station station;
  TaskSet set;
  RunFaults faults;
  std::vector<std::uint64_t> counts;
};

using Broken = std::vector<std::optional<BrokenBound>>;

Broken broken_of(const RunRecord& record) {
  Broken all;
  for (const JobRecord& job : record.jobs) all.push_back(job.broken);
  return all;
}

/// Four jobs, of which the second is over its bound.
Broken second_job_by(BoundCause cause, std::int64_t excess) {
  return {std::nullopt, BrokenBound{cause, Duration{excess}}, std::nullopt, std::nullopt};
}

/// The fault meets the second job alone.
RunFault in_the_second(RunFault fault) {
  fault.first_job = fault.last_job = 1;
  return fault;
}

TEST(FaultyMachines, AreThePlanWithoutFaults) {
  RunWithFaults run({});
  EXPECT_EQ(broken_of(run.run()), Broken(4));
}

struct Expectation {
  RunFault fault;
  BoundCause cause;
  std::int64_t excess;
};

// Each fault makes the second job longer by as much as it says, and that is what is attributed.
TEST(FaultyMachines, AttributeEveryFaultToItsCause) {
  const Expectation rows[] = {
      {{.kind = FaultKind::SlowTransfers, .times = 3}, BoundCause::Transfer, 2000},
      {{.kind = FaultKind::SlowTransfers, .by = Duration{70}}, BoundCause::Transfer, 70},
      {{.kind = FaultKind::SlowKernels, .times = 1.5, .by = Duration{10}}, BoundCause::Kernel, 60},
      {{.kind = FaultKind::SlowHostSteps, .times = 1.2}, BoundCause::Host, 100},
      {{.kind = FaultKind::SlowCommands, .by = Duration{40}, .of = CommandCost::Transfer}, BoundCause::Transfer, 40},
      {{.kind = FaultKind::SlowCommands, .by = Duration{40}, .of = CommandCost::Kernel}, BoundCause::Kernel, 40},
      {{.kind = FaultKind::SlowCommands, .by = Duration{40}, .of = CommandCost::Batch}, BoundCause::Gate, 40},
      {{.kind = FaultKind::SlowCommands, .by = Duration{40}, .of = CommandCost::Dispatch}, BoundCause::Dispatch, 40},
      {{.kind = FaultKind::LateCompletion, .by = Duration{90}}, BoundCause::Dispatch, 90},
  };
  for (const auto& [fault, cause, excess] : rows) {
    SCOPED_TRACE(to_string(fault.kind));
    RunWithFaults run({in_the_second(fault)});
    EXPECT_EQ(broken_of(run.run()), second_job_by(cause, excess));
    EXPECT_EQ(run.counts, std::vector<std::uint64_t>{1});
  }
}

// From 100'000 on, the instant of the second job, to before the third one's. The copy takes 4000 in place of 1000.
TEST(FaultyMachines, HaveASlowLinkForATime) {
  RunWithFaults run(
      {{.kind = FaultKind::SlowLink, .from = Duration{100'000}, .until = Duration{200'000}, .rate = 0.25}});
  const Topology& machine = run.station.machine;
  run.faults.faults[0].links = {*machine.find_link(*machine.find_vertex("hub0"), *machine.find_vertex("gpu0"))};
  EXPECT_EQ(broken_of(run.run()), second_job_by(BoundCause::Transfer, 3000));
  run.faults.faults[0].links = {*machine.find_link(*machine.find_vertex("hub0"), *machine.find_vertex("gpu1"))};
  EXPECT_EQ(broken_of(run.run()), Broken(4)) << "no copy crosses it";
  EXPECT_EQ(run.counts, std::vector<std::uint64_t>{0});
}

// A stall from 100'500 to 103'600 meets the second batch, which ends at 101'100 by itself; one from 199'000 to 201'000
// meets the dispatcher asleep, which then sees the third job late.
TEST(FaultyMachines, HaveAHostThatStands) {
  RunWithFaults run({{.kind = FaultKind::HostStall, .at = Duration{100'500}, .lasts = Duration{3100}},
                     {.kind = FaultKind::HostStall, .at = Duration{199'000}, .lasts = Duration{2000}},
                     {.kind = FaultKind::HostStall, .at = Duration{210'000}, .lasts = Duration{10}}});
  const RunRecord record = run.run();
  EXPECT_EQ(broken_of(record), (Broken{std::nullopt, BrokenBound{BoundCause::Dispatch, Duration{2500}},
                                       BrokenBound{BoundCause::Release, Duration{1000}}, std::nullopt}));
  EXPECT_EQ(record.jobs[1].finish, Duration{104'100});
  EXPECT_EQ(record.jobs[2].late, Duration{1000});
  EXPECT_EQ(run.counts, (std::vector<std::uint64_t>{1, 1, 0})) << "all slept through the last one";
}

// The watchdog, twice the plan and 10'000 beyond, gives the run up 12'200 after its start, 11'100 after its bound.
TEST(FaultyMachines, GiveUpWhatDoesNotEnd) {
  for (const FaultKind kind : {FaultKind::HungKernel, FaultKind::LostCompletion}) {
    SCOPED_TRACE(to_string(kind));
    RunWithFaults run({in_the_second({.kind = kind})});
    const RunRecord record = run.run();
    const bool hung = kind == FaultKind::HungKernel;
    ASSERT_TRUE(record.fatal.has_value());
    EXPECT_EQ(record.fatal->code, ErrorCode::Machine);
    EXPECT_EQ(record.fatal->message,
              std::string("batch 1 of task 't': ") + (hung ? "kernel 'spin' of stream 's'" : "its completion") +
                  " has not returned within 12.2 us, the limit of --watchdog 2x+10us where 1.1 us were planned; the "
                  "run cannot go on");
    ASSERT_EQ(record.jobs.size(), 2U);
    EXPECT_EQ(record.jobs[1].verdict, JobVerdict::Failed);
    EXPECT_EQ(record.jobs[1].finish, Duration{112'200});
    EXPECT_EQ(record.jobs[1].broken, (BrokenBound{hung ? BoundCause::Kernel : BoundCause::Dispatch, Duration{11'100}}));
  }
}

TEST(FaultyMachines, FailOneJobByItsKernelAndGoOn) {
  RunWithFaults run({in_the_second({.kind = FaultKind::FailingKernel})});
  const RunRecord record = run.run();
  EXPECT_FALSE(record.fatal.has_value());
  std::vector<JobVerdict> verdicts;
  for (const JobRecord& job : record.jobs) verdicts.push_back(job.verdict);
  EXPECT_EQ(verdicts, (std::vector{JobVerdict::Met, JobVerdict::Failed, JobVerdict::Met, JobVerdict::Met}));
  EXPECT_NE(record.jobs[1].error->message.find("kernel 'spin' of stream 's' failed"), std::string::npos);
}

// gpu1, which t does not use, is lost before the first job; gpu0 before the third.
TEST(FaultyMachines, EndARunWhoseGpuIsLost) {
  RunWithFaults run({{.kind = FaultKind::LostGpu}, {.kind = FaultKind::LostGpu, .at = Duration{150'000}}});
  run.faults.faults[0].gpu = run.station.at("gpu1");
  run.faults.faults[1].gpu = run.station.at("gpu0");
  const RunRecord record = run.run();
  ASSERT_TRUE(record.fatal.has_value());
  EXPECT_EQ(record.fatal->message, "batch 1 of task 't': gpu0 was lost; nothing more can run on it");
  EXPECT_EQ(record.jobs.size(), 3U);
  EXPECT_EQ(run.counts, (std::vector<std::uint64_t>{0, 1}));
}

TEST(FaultyMachines, EndARunWithAStickyError) {
  RunWithFaults run({{.kind = FaultKind::StickyError, .at = Duration{100'000}}});
  const RunRecord record = run.run();
  ASSERT_TRUE(record.fatal.has_value());
  EXPECT_NE(record.fatal->message.find("an error before has broken the GPU"), std::string::npos);
  EXPECT_EQ(record.jobs.size(), 2U);
}

// Both partitions have their own machine; tasks have the ids that they have in the whole set.
TEST(FaultyMachines, LoseOnePartitionsGpuAndTheOtherGoesOn) {
  const Topology machine = test::two_sides();
  const TaskSet set = test::tasks_of(machine, {"from: mem0, to: gpu0, size: 6 kB", "from: mem1, to: gpu2, size: 6 kB"});
  const AdmittedTaskSet admitted = test::admit(set);
  ASSERT_EQ(admitted.partitions().size(), 2U);
  Station first(std::make_unique<VirtualClock>(), Station::make_sim, machine);
  Station second(std::make_unique<VirtualClock>(), Station::make_sim, machine);
  Executor* const machines[] = {&first.executor, &second.executor};
  std::vector<PatternProgram> programs;
  for (const Task& task : set.tasks) programs.emplace_back(machine, task, 1);
  TaskProgram* const table[] = {&programs[0], &programs[1]};
  RunFaults faults;
  faults.faults.push_back({.kind = FaultKind::LostGpu, .gpu = machine.find_vertex("gpu2")});
  faults.faults.push_back({.kind = FaultKind::LateCompletion, .task = TaskId{0U}, .by = Duration{1}});
  faults.faults.push_back({.kind = FaultKind::SlowTransfers, .task = TaskId{1U}, .times = 2});
  const FaultyMachines faulty(machines, table, admitted.planned(), faults, {}, 1);
  const auto record = run_tasks(faulty.executors(), admitted, faulty.programs(), first_jobs(8));
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(std::ranges::count(record->jobs, TaskId{0U}, &JobRecord::task), 4);
  EXPECT_EQ(std::ranges::count(record->jobs, TaskId{1U}, &JobRecord::task), 1);
  EXPECT_EQ(faulty.counts(), (std::vector<std::uint64_t>{1, 4, 1}));
}

TEST(FaultyMachines, AreTheSameForTheSameSeed) {
  const auto late = [](std::uint64_t seed) {
    RunWithFaults run({{.kind = FaultKind::SlowKernels, .chance = 0.3, .times = 2},
                       {.kind = FaultKind::SlowHostSteps, .chance = 0.3, .times = 2}});
    return broken_of(run.run(60, seed));
  };
  EXPECT_EQ(late(1), late(1));
  EXPECT_NE(late(1), late(2));
  EXPECT_NE(late(1), Broken(60));
}

// The time that a task without steps declares is work of the host.
TEST(FaultyMachines, LengthenWorkThatIsDeclared) {
  RunWithFaults run({in_the_second({.kind = FaultKind::SlowHostSteps, .by = Duration{30}})});
  run.set.tasks = {test::task("t", 2000, 100'000)};
  EXPECT_EQ(broken_of(run.run()), second_job_by(BoundCause::Host, 30));
}

}  // namespace
}  // namespace tutti::internal
