#include "runtime/dispatch/task_program.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/runtime/task_runs.hpp"

namespace tutti::internal {
namespace {

using test::copy_stream;
using test::first_jobs;
using test::Station;
using Byteses = std::vector<std::byte>;

Task job_of(std::vector<JobStep> steps) {
  Task task;
  task.name = "t";
  task.period = task.deadline = Duration{100'000};
  task.steps = std::move(steps);
  return task;
}

CommandStream inspected(const Station& station, const char* name, const char* gpu, std::int64_t size,
                        const char* kernel = "spin") {
  CommandStream stream = copy_stream(name, station.at("mem0"), station.at(gpu), size);
  stream.kernel = Kernel{station.at(gpu), Duration{50}, Duration{50}, kernel};
  return stream;
}

CommandStream report(const Station& station, const char* name, const char* gpu, std::int64_t size) {
  return copy_stream(name, station.at(gpu), station.at("mem0"), size);
}

// 300 bytes with 50 ns behind them, 20 ns on the host, 300 bytes back: 350 + 20 + 300 = 670.
TEST(TaskProgram, TakesTheStepsInOrder) {
  Station station;
  const Task task = job_of({station.batch({inspected(station, "s", "gpu0", 300)}), HostStep{Duration{20}},
                            station.batch({report(station, "s", "gpu0", 300)})});
  const AdmittedTaskSet admitted = test::admit({station.machine, Policy::Edf, {task}});
  EXPECT_EQ(admitted.timings()[0].wcet, Duration{670});
  PatternProgram program(station.machine, task, 1);
  TaskProgram* const table[] = {&program};
  const auto record = run_tasks(station.executor, admitted, table, first_jobs(2));
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->jobs[0].finish, Duration{670});
  EXPECT_EQ(record->jobs[1].finish, Duration{100'670});
}

/// A program whose own work on the host takes no time.
class QuickProgram final : public TaskProgram {
 public:
  Expected<std::vector<StreamBinding>> bind(DeviceBackend&, const Batch&, std::size_t, std::size_t) override {
    return std::vector<StreamBinding>{};
  }
  Expected<void> on_host_step(Job&, std::size_t) override { return {}; }
};

// Work takes no time on a virtual clock, so what is declared for it passes: 20, then 30.
TEST(TaskProgram, HostStepsTakeTheirDeclaredTimeOnAVirtualClock) {
  Station station;
  const Task task = job_of({HostStep{Duration{20}}, HostStep{Duration{30}}});
  const AdmittedTaskSet admitted = test::admit({station.machine, Policy::Edf, {task}});
  QuickProgram program;
  TaskProgram* const table[] = {&program};
  const auto record = run_tasks(station.executor, admitted, table, first_jobs(1));
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->jobs[0].finish, Duration{50});
}

/// A program with bindings that a test gives it, for one batch.
class BoundProgram final : public TaskProgram {
 public:
  explicit BoundProgram(std::vector<StreamBinding> bindings) : bindings_(std::move(bindings)) {}
  Expected<std::vector<StreamBinding>> bind(DeviceBackend&, const Batch&, std::size_t, std::size_t) override {
    return bindings_;
  }

 private:
  std::vector<StreamBinding> bindings_;
};

/// A kernel alone, and a copy of 1000 bytes that is cut into three chunks of at most 400.
struct CutBatch {
  CutBatch() {
    CommandStream alone = test::kernel_stream("alone", station.at("gpu0"), "count");
    EXPECT_TRUE(station.kernels
                    .add("count",
                         [this](const KernelLaunch& launch) {
                           ++launched;
                           seen = launch.input.size();
                         })
                    .has_value());
    TaskSet set{station.machine,
                Policy::Edf,
                {job_of({station.batch({alone, copy_stream("s", station.at("mem0"), station.at("gpu0"), 1000)})})}};
    set.preemption = Preemption::BetweenBatches;
    set.cut = Bytes{400};
    admitted.emplace(test::admit(set));
    EXPECT_EQ(admitted->planned().bounds[0].plans.at(0).size(), 3U);
  }
  Expected<RunRecord> run(Bytes copied) {
    TaskProgram* const table[] = {&program};
    StreamBinding alone;
    alone.kernel_input = input.view();
    program = BoundProgram({alone, test::bound(source.view().first(copied), destination.view())});
    return run_tasks(station.executor, *admitted, table, first_jobs(2));
  }

  Station station;
  int launched = 0;
  std::size_t seen = 0;  ///< bytes of its input
  std::optional<AdmittedTaskSet> admitted;
  Buffer input = station.allocate(station.at("gpu0"), 5);
  Buffer source = station.allocate(station.at("mem0"), 1000), destination = station.allocate(station.at("gpu0"), 1000);
  BoundProgram program{{}};
};

// It runs in the last chunk alone, and so once in each of two jobs.
TEST(TaskProgram, AKernelAloneRunsOnceInACutBatch) {
  CutBatch batch;
  std::ranges::fill(batch.source.view().bytes(), std::byte{7});
  ASSERT_TRUE(batch.run(Bytes{1000}).has_value());
  EXPECT_EQ(batch.launched, 2);
  EXPECT_EQ(batch.seen, 5U);
  EXPECT_EQ(std::ranges::count(batch.destination.view().bytes(), std::byte{7}), 1000);
}

// The chunks of the batch would have buffers of their lengths, beyond the end of the last one.
TEST(TaskProgram, ABufferThatIsTooShortForACutBatchIsRefused) {
  const auto record = CutBatch().run(Bytes{999});
  ASSERT_FALSE(record.has_value());
  EXPECT_EQ(record.error().code, ErrorCode::InvalidInput);
}

TEST(TaskProgram, LeavesTheRestOfAJobWhenABatchFails) {
  Station station;
  ASSERT_TRUE(station.kernels.add("fail", [](const KernelLaunch&) { throw 1; }).has_value());
  int launched = 0;
  ASSERT_TRUE(station.kernels.add("count", [&](const KernelLaunch&) { ++launched; }).has_value());
  const Task task = job_of({station.batch({inspected(station, "s", "gpu0", 300, "fail")}), HostStep{Duration{20}},
                            station.batch({inspected(station, "s", "gpu0", 300, "count")})});
  const AdmittedTaskSet admitted = test::admit({station.machine, Policy::Edf, {task}});
  PatternProgram program(station.machine, task, 1);
  TaskProgram* const table[] = {&program};
  const auto record = run_tasks(station.executor, admitted, table, first_jobs(2));
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->jobs.size(), 2U);
  EXPECT_FALSE(record->fatal.has_value());
  for (const JobRecord& job : record->jobs) EXPECT_EQ(job.error.value().code, ErrorCode::Kernel);
  EXPECT_EQ(launched, 0);
}

std::vector<StreamBinding> bind(PatternProgram& program, Station& station, const Task& task, std::size_t step,
                                std::size_t set) {
  return program.bind(*station.backend, std::get<Batch>(task.steps[step]), step, set).value();
}

TEST(PatternProgram, FillsWhatItSendsFromTheSeed) {
  Station station;
  const Task task =
      job_of({station.batch({inspected(station, "a", "gpu0", 1001), inspected(station, "b", "gpu1", 1001)})});
  const auto sources = [&](std::uint64_t seed) {
    PatternProgram program(station.machine, task, seed);
    std::vector<Byteses> bytes;
    for (const StreamBinding& binding : bind(program, station, task, 0, 0))
      bytes.push_back(station.read(binding.source));
    return bytes;
  };
  const auto first = sources(1);
  EXPECT_EQ(first, sources(1));
  EXPECT_NE(first, sources(2));
  EXPECT_NE(first[0], first[1]);
  EXPECT_NE(first[0], Byteses(1001));
}

// The kernels of a and b each write 500 bytes on gpu0; the report brings back those of a, and those of b only where
// there is a second report of that size.
TEST(PatternProgram, BringsBackWhatTheKernelsWrote) {
  Station station;
  const Batch there = station.batch({inspected(station, "a", "gpu0", 500), inspected(station, "b", "gpu0", 500)});
  for (const bool both : {false, true}) {
    std::vector<CommandStream> reports{report(station, "a", "gpu0", 500)};
    if (both) reports.push_back(report(station, "b", "gpu0", 500));
    const Task task = job_of({there, station.batch(reports)});
    PatternProgram program(station.machine, task, 1);
    for (const std::size_t set : {0U, 1U}) {
      const auto first = bind(program, station, task, 0, set);
      const auto second = bind(program, station, task, 1, set);
      EXPECT_EQ(second[0].source.data, first[0].kernel_output.data);
      EXPECT_EQ(first[1].kernel_output.data != nullptr, both);
      if (both) {
        EXPECT_EQ(second[1].source.data, first[1].kernel_output.data);
      }
    }
  }
}

TEST(PatternProgram, KeepsTheBufferSetsApart) {
  Station station;
  const Task task = job_of(
      {station.batch({inspected(station, "a", "gpu0", 500)}), station.batch({report(station, "a", "gpu0", 500)})});
  PatternProgram program(station.machine, task, 1);
  std::set<std::byte*> seen;
  for (const std::size_t set : {0U, 1U, 2U}) {
    const auto there = bind(program, station, task, 0, set);
    const auto back = bind(program, station, task, 1, set);
    for (const BufferView& view :
         {there[0].source, there[0].destination, there[0].kernel_output, back[0].destination}) {
      EXPECT_TRUE(seen.insert(view.data).second);
    }
  }
}

// What admission counts is what a run takes. gpu2 has 100 kB: 30 kB in, 30 kB compared and brought back, 40 kB in.
TEST(PatternProgram, TakesNoMoreDeviceMemoryThanAdmissionCounts) {
  Station station;
  const Task task =
      job_of({station.batch({inspected(station, "a", "gpu2", 30'000), inspected(station, "b", "gpu2", 40'000)}),
              station.batch({report(station, "a", "gpu2", 30'000)})});
  TaskSet set{station.machine, Policy::Edf, {task}};
  set.tasks[0].period = set.tasks[0].deadline = Duration{1'000'000};
  const AdmittedTaskSet admitted = test::admit(set);
  PatternProgram program(station.machine, set.tasks[0], 1);
  TaskProgram* const table[] = {&program};
  for (int run = 0; run < 3; ++run) {
    const auto record = run_tasks(station.executor, admitted, table, first_jobs(2));
    ASSERT_TRUE(record.has_value()) << "run " << run << ": " << record.error().text();
  }
}

// Two kernels want their 30 kB brought back, and one report does: 30 + 30 in and 30 compared, not 30 + 30 + 30 + 30.
TEST(PatternProgram, WritesNoOutputThatNobodyBringsBack) {
  Station station;
  const Task task =
      job_of({station.batch({inspected(station, "a", "gpu2", 30'000), inspected(station, "b", "gpu2", 30'000)}),
              station.batch({report(station, "a", "gpu2", 30'000)})});
  TaskSet set{station.machine, Policy::Edf, {task}};
  set.tasks[0].period = set.tasks[0].deadline = Duration{1'000'000};
  const AdmittedTaskSet admitted = test::admit(set);
  PatternProgram program(station.machine, set.tasks[0], 1);
  TaskProgram* const table[] = {&program};
  const auto record = run_tasks(station.executor, admitted, table, first_jobs(1));
  EXPECT_TRUE(record.has_value()) << record.error().text();
}

// gpu2 has 100 kB, of which somebody else took 90.
TEST(PatternProgram, SaysWhatItCouldNotAllocate) {
  Station station;
  const Buffer occupied = station.allocate(station.at("gpu2"), 90'000);
  const Task task = job_of({station.batch({inspected(station, "a", "gpu2", 40'000)})});
  const AdmittedTaskSet admitted = test::admit({station.machine, Policy::Edf, {task}});
  PatternProgram program(station.machine, task, 1);
  TaskProgram* const table[] = {&program};
  const auto record = run_tasks(station.executor, admitted, table, first_jobs(1));
  ASSERT_FALSE(record.has_value());
  EXPECT_EQ(record.error().code, ErrorCode::Machine);
  EXPECT_EQ(station.clock->now(), Duration{0}) << "nothing has run";
}

}  // namespace
}  // namespace tutti::internal
