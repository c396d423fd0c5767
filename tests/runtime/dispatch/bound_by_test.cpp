#include "runtime/dispatch/bound_by.hpp"

#include <gtest/gtest.h>

#include "tests/runtime/random_jobs.hpp"
#include "tests/runtime/task_runs.hpp"

namespace tutti::internal {
namespace {

using test::copy_stream;
using test::first_jobs;

// Half of the time on one processor: 2 / (2 * 0.5 + 0.5). All of it divided: 2. None: 1.
TEST(AmdahlCeiling, IsTheSpeedUpByTwoProcessors) {
  EXPECT_DOUBLE_EQ(amdahl_ceiling(0.5), 4.0 / 3);
  EXPECT_DOUBLE_EQ(amdahl_ceiling(1), 2);
  EXPECT_DOUBLE_EQ(amdahl_ceiling(0), 1);
}

// 30 of 100 on the host and 70 on the machine: 30 of each could overlap, which leaves 70, and 100 / 70 of the speed.
TEST(BoundBy, IsTheProcessorWithTheLargerShare) {
  const BoundBy bound = bound_by({Duration{100}, Duration{30}, Duration{70}});
  EXPECT_DOUBLE_EQ(bound.cpu_share, 0.3);
  EXPECT_DOUBLE_EQ(bound.gpu_share, 0.7);
  EXPECT_EQ(bound.processor, Processor::Gpu);
  EXPECT_DOUBLE_EQ(bound.amdahl_ceiling, 100.0 / 70);
}

// Of 100, 50 went by for others: overlapping saves 20, and leaves 80.
TEST(BoundBy, LeavesWhatOthersTookAsItIs) {
  const BoundBy bound = bound_by({Duration{100}, Duration{30}, Duration{20}});
  EXPECT_EQ(bound.processor, Processor::Cpu);
  EXPECT_DOUBLE_EQ(bound.amdahl_ceiling, 100.0 / 80);
}

TEST(BoundBy, IsNeitherWhereTheyAreEqual) {
  EXPECT_EQ(bound_by({}).processor, std::nullopt);
  EXPECT_DOUBLE_EQ(bound_by({}).amdahl_ceiling, 1);
  EXPECT_EQ(bound_by({Duration{8}, Duration{4}, Duration{4}}).processor, std::nullopt);
  EXPECT_DOUBLE_EQ(bound_by({Duration{8}, Duration{4}, Duration{4}}).amdahl_ceiling, 2);
}

// ---- made-up programs

/// A task that works on the host, copies so many bytes, which take as many ns, and works on the host again.
Task made_up(const Topology& machine, std::string name, std::int64_t host, std::int64_t copy) {
  Task task = test::task(std::move(name), 0, 100'000);
  task.declared_wcet.reset();
  task.steps = {
      HostStep{Duration{host}},
      Batch::make(machine, {copy_stream("up", *machine.find_vertex("mem0"), *machine.find_vertex("gpu0"), copy)})
          .value(),
      HostStep{Duration{host}}};
  return task;
}

RunRecord run_of(test::Station& station, const TaskSet& set, std::uint64_t jobs) {
  const AdmittedTaskSet admitted = test::admit(set);
  return test::with_patterns(station, admitted.tasks(), 1, [&](std::span<TaskProgram* const> programs) {
    return run_tasks(station.executor, admitted, programs, first_jobs(jobs));
  });
}

class MadeUpPrograms : public testing::TestWithParam<Overlap> {};

INSTANTIATE_TEST_SUITE_P(Overlap, MadeUpPrograms, testing::Values(Overlap::Off, Overlap::On),
                         [](const auto& mode) { return mode.param == Overlap::On ? "On" : "Off"; });

// The first has 2 * 4500 ns on the host and 1000 in its batch, the second 2 * 500 and 9000; each 3 jobs.
TEST_P(MadeUpPrograms, AreClassified) {
  test::Station station;
  const Topology& machine = station.machine;
  TaskSet set{machine, Policy::Edf, {made_up(machine, "thinks", 4500, 1000), made_up(machine, "moves", 500, 9000)}};
  set.tasks[1].offset = Duration{50'000};
  set.overlap = GetParam();
  const RunRecord record = run_of(station, set, 6);
  ASSERT_EQ(record.loads.size(), 2U);
  EXPECT_EQ(record.loads[0], (JobLoad{Duration{30'000}, Duration{27'000}, Duration{3000}}));
  EXPECT_EQ(record.loads[1], (JobLoad{Duration{30'000}, Duration{3000}, Duration{27'000}}));
  EXPECT_EQ(bound_by(record.loads[0]).processor, Processor::Cpu);
  EXPECT_EQ(bound_by(record.loads[1]).processor, Processor::Gpu);
  EXPECT_DOUBLE_EQ(bound_by(record.loads[0]).amdahl_ceiling, 10.0 / 9);
}

// A program that takes 2000 ns to fill its input holds its job: 2000 + 2 * 500 on the host, 4000 in the batch.
TEST(MadeUpProgram, CountsWhatItsProgramHoldsItUp) {
  const Topology machine = test::small_machine();
  class Filling final : public TaskProgram {
   public:
    Filling(const Topology& topology, const Task& task) : pattern_(topology, task, 1) {}
    Expected<std::vector<StreamBinding>> bind(DeviceBackend& backend, const Batch& batch, std::size_t number,
                                              std::size_t set) override {
      return pattern_.bind(backend, batch, number, set);
    }
    void on_ready(const Job& job) override {
      Clock& clock = job.executor().clock();
      clock.wait_until(clock.now() + Duration{2000});
    }

   private:
    PatternProgram pattern_;
  };
  const TaskSet set{machine, Policy::Edf, {made_up(machine, "fills", 500, 4000)}};
  const AdmittedTaskSet admitted = test::admit(set);
  test::Station station;
  Filling program(machine, admitted.tasks().tasks[0]);
  TaskProgram* const table[] = {&program};
  const RunRecord record = run_tasks(station.executor, admitted, table, first_jobs(1)).value();
  EXPECT_EQ(record.loads[0], (JobLoad{Duration{7000}, Duration{3000}, Duration{4000}}));
}

// Jobs that fill the machine, one at a time and beside each other.
TEST_P(MadeUpPrograms, HaveSharesThatAreTogetherAtMostOne) {
  test::Random random(31);
  int runs = 0;
  for (int round = 0; round < test::rounds(100); ++round) {
    test::Station station;
    TaskSet set = test::random_batch_set(station, random, Policy::Edf);
    set.overlap = GetParam();
    if (!AdmissionController(planners().front()).decide(set).admitted) continue;
    ++runs;
    const RunRecord record = run_of(station, set, 40);
    for (const JobRecord& job : record.jobs) {
      ASSERT_GE(job.load.host, Duration{0}) << "round " << round;
      ASSERT_GE(job.load.machine, Duration{0}) << "round " << round;
      ASSERT_LE(job.load.host + job.load.machine, job.load.length) << "round " << round;
      ASSERT_LE(job.load.length, *job.finish - job.ready) << "round " << round;
    }
    for (const JobLoad& load : record.loads) {
      const BoundBy bound = bound_by(load);
      ASSERT_LE(bound.cpu_share + bound.gpu_share, 1 + 1e-12) << "round " << round;
      ASSERT_GE(bound.amdahl_ceiling, 1) << "round " << round;
      ASSERT_LE(bound.amdahl_ceiling, 2) << "round " << round;
    }
  }
  EXPECT_GT(runs, test::rounds(30));
}

}  // namespace
}  // namespace tutti::internal
