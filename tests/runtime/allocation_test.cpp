// A program of its own: it replaces `operator new` to count what the real-time path takes from the heap.
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/trace/job_summary.hpp"
#include "runtime/trace/journal.hpp"
#include "tests/runtime/task_runs.hpp"
#include "tests/support/allocations.hpp"
#include "tests/support/fault_function.hpp"

namespace tutti::internal {
namespace {

using test::bound;
using test::copy_stream;
using test::Station;

TEST(Allocation, IsCountedHere) {
  const std::uint64_t before = test::allocations();
  std::vector<int> some(10);
  EXPECT_GT(test::allocations(), before);
}

/// Copies over every path, a kernel behind each.
struct AllPaths {
  explicit AllPaths(Station& station) {
    for (const auto& [from, to] : {std::pair("mem0", "gpu0"), {"gpu0", "mem0"}, {"gpu0", "gpu1"}, {"gpu1", "gpu2"}}) {
      streams.push_back(copy_stream(std::string(from) + to, station.at(from), station.at(to), 3007));
      if (station.at(to) != station.at("mem0"))
        streams.back().kernel = Kernel{station.at(to), Duration{50}, Duration{50}, "checksum"};
      buffers.push_back(station.allocate(station.at(from), 3007));
      buffers.push_back(station.allocate(station.at(to), 3007));
      bindings.push_back(bound(buffers[buffers.size() - 2].view(), buffers.back().view()));
    }
  }

  std::vector<CommandStream> streams;
  std::vector<Buffer> buffers;
  std::vector<StreamBinding> bindings;
};

TEST(Allocation, HappensNowhereBetweenIssueAndCompletion) {
  Station station;
  const AllPaths paths(station);
  auto first = station.prepare(paths.streams, paths.bindings);
  auto second = station.prepare(paths.streams, paths.bindings);
  const std::uint64_t before = test::allocations();
  bool fine = true;
  for (int run = 0; run < 50; ++run) {
    fine &= station.executor.issue(first).has_value();
    fine &= station.executor.issue(second).has_value();
    while (!station.executor.query(second)) {
    }
    fine &= station.executor.synchronize(first).has_value();
    fine &= station.executor.synchronize(second).has_value();
    fine &= station.executor.run(first).has_value();
  }
  EXPECT_EQ(test::allocations() - before, 0U);
  EXPECT_TRUE(fine);
}

/// A program that does nothing itself, and notes what was allocated between its first and its last job.
class CountingProgram final : public TaskProgram {
 public:
  explicit CountingProgram(Station& station) : paths_(station) {}

  Expected<std::vector<StreamBinding>> bind(DeviceBackend&, const Batch&, std::size_t, std::size_t) override {
    return paths_.bindings;
  }
  void on_ready(const Job& job) override {
    if (job.index == 0) at_first_ = test::allocations();
    at_last_ = test::allocations();
  }

  [[nodiscard]] const AllPaths& paths() const { return paths_; }
  [[nodiscard]] std::uint64_t allocated() const { return at_last_ - at_first_; }

 private:
  AllPaths paths_;
  std::uint64_t at_first_ = 0;
  std::uint64_t at_last_ = 0;
};

// Two tasks with jitter and several buffer sets: a job of batches every 100 us, and declared Wcets between.
TEST(Allocation, HappensNowhereInTheDispatchersLoop) {
  for (const Policy policy : {Policy::Edf, Policy::Rm, Policy::Dm, Policy::CwEdf}) {
    Station station;
    CountingProgram batches(station);
    test::WatchedProgram declared;
    TaskSet set{station.machine,
                policy,
                {test::with_jitter(test::task("batches", 0, 100'000), 500),
                 test::with_jitter(test::task("declared", 700, 30'000), 9'000)}};
    set.tasks[0].declared_wcet.reset();
    set.tasks[0].steps = {station.batch(batches.paths().streams), HostStep{Duration{5}}};
    for (Task& task : set.tasks) task.deadline = 3 * task.period;
    if (policy == Policy::CwEdf) set.arrivals = Arrivals::Periodic;
    const AdmittedTaskSet admitted = test::admit(set);
    TaskProgram* const table[] = {&batches, &declared};
    RunOptions options = test::first_jobs(400);
    const auto record = run_tasks(station.executor, admitted, table, options);
    ASSERT_TRUE(record.has_value());
    EXPECT_EQ(record->jobs.size(), 400U);
    EXPECT_EQ(batches.allocated(), 0U) << to_string(policy);
  }
}

// The same two batches every 100 us, whose copies and kernels overlap with those of the job before, and a host step.
TEST(Allocation, HappensNowhereWhereJobsOverlap) {
  Station station;
  CountingProgram batches(station);
  test::WatchedProgram declared;
  TaskSet set{station.machine,
              Policy::Edf,
              {test::with_jitter(test::task("batches", 0, 100'000), 500),
               test::with_jitter(test::task("host", 0, 30'000), 9'000)}};
  set.overlap = Overlap::On;
  for (Task& task : set.tasks) task.declared_wcet.reset(), task.deadline = 3 * task.period;
  set.tasks[0].steps = {station.batch(batches.paths().streams), HostStep{Duration{5}}};
  set.tasks[1].steps = {HostStep{Duration{700}}};
  const AdmittedTaskSet admitted = test::admit(set);
  ASSERT_TRUE(admitted.planned().overlap.has_value());
  TaskProgram* const table[] = {&batches, &declared};
  const auto record = run_tasks(station.executor, admitted, table, test::first_jobs(400));
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->jobs.size(), 400U);
  EXPECT_EQ(batches.allocated(), 0U);
}

// Every job's batch has a late gate, so each is judged and its cause found.
TEST(Allocation, HappensNowhereWhereEveryJobIsOverItsBound) {
  Station station;
  test::FaultyBackend backend(*station.backend, *station.clock);
  const BatchFault fault{.times = [](Timeline& run) {
    for (StreamTimeline& line : run.streams) {
      if (line.transfer) line.transfer->start += Duration{900}, line.transfer->end += Duration{900};
      if (line.kernel) line.kernel->start += Duration{900}, line.kernel->end += Duration{900};
    }
  }};
  backend.faults = test::FaultFunction([&](const BatchRun&) { return &fault; });
  Executor executor(station.machine, backend, *station.clock);
  CountingProgram program(station);
  TaskSet set{station.machine, Policy::Dm, {test::task("batches", 0, 100'000)}};
  set.tasks[0].declared_wcet.reset();
  set.tasks[0].steps = {station.batch(program.paths().streams), HostStep{Duration{5}}};
  const AdmittedTaskSet admitted = test::admit(set);
  TaskProgram* const table[] = {&program};
  const auto record = run_tasks(executor, admitted, table, test::first_jobs(50));
  ASSERT_TRUE(record.has_value());
  for (const JobRecord& job : record->jobs) EXPECT_EQ(job.broken->cause, BoundCause::Gate);
  EXPECT_EQ(program.allocated(), 0U);
}

// The journal keeps the times of 2048 streams of a job; it has 40 more. What is left out takes no memory either.
TEST(Allocation, HappensNowhereForStreamsThatTheJournalLeavesOut) {
  Station station;
  class ManyStreams final : public TaskProgram {
   public:
    Expected<std::vector<StreamBinding>> bind(DeviceBackend&, const Batch& batch, std::size_t, std::size_t) override {
      return std::vector<StreamBinding>(batch.streams().size());
    }
    void on_ready(const Job& job) override { (job.index == 0 ? at_first : at_last) = test::allocations(); }
    std::uint64_t at_first = 0, at_last = 0;
  } program;
  TaskSet set{station.machine, Policy::Edf, {test::task("t", 0, 1'000'000)}};
  set.tasks[0].declared_wcet.reset();
  std::vector<CommandStream> streams;
  for (int s = 0; s < 261; ++s)
    streams.push_back(test::kernel_stream("k" + std::to_string(s), station.at("gpu0"), "spin"));
  set.tasks[0].steps.assign(8, station.batch(streams));  // 8 * 261 = 2088
  const AdmittedTaskSet admitted = test::admit(set);
  JobRecorder recorder({});
  JobRecorder* const recorders[] = {&recorder};
  TaskProgram* const table[] = {&program};
  RunOptions options = test::first_jobs(2);
  options.recorders = recorders;
  ASSERT_TRUE(run_tasks(station.executor, admitted, table, options).has_value());
  EXPECT_EQ(recorder.lost(), 0U);
  EXPECT_EQ(program.at_last - program.at_first, 0U);
}

// Neither in the thread that hands jobs over nor in the one that writes them, and not for summaries.
TEST(Allocation, HappensNowhereForAJobOfTheJournal) {
  const std::string path = testing::TempDir() + "tutti-journal-that-allocates-nothing";
  auto journal = Journal::open(path, {"m", "edf", "sim", "virtual", {}, {}}, {.when_full = WhenFull::Wait});
  ASSERT_TRUE(journal.has_value()) << journal.error().text();
  JobRecorder& recorder = (*journal)->recorder(0);
  const std::vector<StreamTime> streams(kMostStreamTimes);
  JobSummary summary;
  JobEntry job;
  job.start = job.finish = Duration{5};
  const std::uint64_t before = test::allocations();
  for (std::size_t i = 0; i < 20'000; ++i) {
    recorder.record(job, std::span(streams).first(i % 1000 == 0 ? kMostStreamTimes : i % 3));
    summary.add(job);
  }
  EXPECT_EQ(test::allocations() - before, 0U);
  EXPECT_EQ((*journal)->close().written, 20'000U);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tutti::internal
