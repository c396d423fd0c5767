// User code that throws, and GPUs that fail, while the batches of other jobs are armed. Each run in a process of its
// own, which must end by itself: memory that is unpinned behind a closed gate waits for ever.
#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/dispatch/dispatcher.hpp"
#include "tests/runtime/small_machine.hpp"
#include "tests/runtime/task_runs.hpp"
#include "tests/support/host_cuda/host_cuda.hpp"

namespace tutti::internal {
namespace {

using std::chrono::milliseconds;
using test::copy_stream;
using test::Station;

constexpr unsigned kTimeLimit = 60;  // s

/// A copy to a GPU with a kernel behind it, a host step, and a copy back, every 20 ms.
Task round_trip(const Station& station, std::string name, const char* gpu) {
  const VertexId mem = station.at("mem0"), device = station.at(gpu);
  CommandStream up = copy_stream("up", mem, device, 2000);
  up.kernel = Kernel{device, std::chrono::microseconds{10}, std::chrono::microseconds{20}, "checksum"};
  Task task;
  task.name = std::move(name);
  task.period = task.deadline = milliseconds{20};
  task.steps = {station.batch({up}), HostStep{}, station.batch({copy_stream("down", device, mem, 2000)})};
  return task;
}

/// Where a program goes wrong.
enum class Place { Ready, Run, Finished, Nowhere };

/// Copies patterns, and throws from its fourth job on: a busy host may drop some.
class ThrowingProgram final : public TaskProgram {
 public:
  ThrowingProgram(const Topology& machine, const Task& task, Place place) : pattern_(machine, task, 1), place_(place) {}

  Expected<std::vector<StreamBinding>> bind(DeviceBackend& backend, const Batch& operation, std::size_t batch,
                                            std::size_t buffer_set) override {
    return pattern_.bind(backend, operation, batch, buffer_set);
  }
  void on_ready(const Job& job) override { throw_at(Place::Ready, job); }
  Expected<void> on_host_step(Job& job, std::size_t) override {
    throw_at(Place::Run, job);
    return {};
  }
  void on_finished(const Job& job) override { throw_at(Place::Finished, job); }

 private:
  void throw_at(Place place, const Job& job) const {
    if (place == place_ && job.index >= 3) throw std::runtime_error("the wafer fell off");
  }

  PatternProgram pattern_;
  Place place_;
};

/// Three tasks, of which one throws, in turn on two GPUs.
struct ThrowingRun {
  ThrowingRun(Station::MakeBackend make_backend, Place place)
      : station(std::make_unique<test::DeviceClock>(), make_backend), set{station.machine, Policy::Edf, {}} {
    set.tasks = {round_trip(station, "a", "gpu0"), round_trip(station, "b", "gpu1"), round_trip(station, "c", "gpu2")};
    for (std::size_t i = 0; i < set.tasks.size(); ++i) {
      programs.push_back(
          std::make_unique<ThrowingProgram>(station.machine, set.tasks[i], i == 1 ? place : Place::Nowhere));
      table.push_back(programs.back().get());
    }
    options.jobs = 30;
    options.on_job_end = [this](const JobRecord&) { ++ended; };
  }

  /// Prints how the run ended, and ends the process.
  void run() {
    alarm(kTimeLimit);
    const auto record = run_tasks(station.executor, test::admit(set), table, options);
    std::fprintf(stderr, "%s\n",
                 !record         ? record.error().message.c_str()
                 : record->fatal ? record->fatal->message.c_str()
                                 : "ended");
    if (!record) return;
    const auto never_run = std::ranges::count(record->jobs, JobVerdict::NeverRun, &JobRecord::verdict);
    const bool all = record->jobs.size() == ended + static_cast<std::size_t>(never_run);
    std::fprintf(stderr, "%s\n", all ? "all recorded" : "records are lost");
  }

  Station station;
  TaskSet set;
  std::vector<std::unique_ptr<ThrowingProgram>> programs;
  std::vector<TaskProgram*> table;
  RunOptions options;
  std::size_t ended = 0;
};

/// The same backend runs a batch afterwards.
void throw_and_go_on(Station::MakeBackend make_backend, Place place) {
  {
    ThrowingRun throwing(make_backend, place);
    throwing.run();
    Station& station = throwing.station;
    auto batch = station.prepare({test::kernel_stream("s", station.at("gpu0"), "spin")}, {{}});
    std::fprintf(stderr, "%s\n", station.executor.run(batch) ? "goes on" : "stands still");
  }
  std::exit(0);
}

class ThrowingProgramDeathTest : public testing::TestWithParam<Place> {};

INSTANTIATE_TEST_SUITE_P(Places, ThrowingProgramDeathTest, testing::Values(Place::Ready, Place::Run, Place::Finished),
                         [](const auto& place) {
                           return place.param == Place::Ready ? "Ready"
                                  : place.param == Place::Run ? "Run"
                                                              : "Finished";
                         });

TEST_P(ThrowingProgramDeathTest, LeavesNoGateThatAnybodyWaitsFor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const auto make_backend : {test::make_cuda<GateKind::PollingKernel>, test::make_cuda<GateKind::MemoryWait>,
                                  test::make_cuda<GateKind::HostTimed>, test::make_cuda<GateKind::DeviceTimer>})
    EXPECT_EXIT(throw_and_go_on(make_backend, GetParam()), testing::ExitedWithCode(0),
                "of task 'b' threw: the wafer fell off; catch it there\nall recorded\ngoes on");
}

/// A GPU fails in the middle of a run.
void run_on_failing_gpu(void (*fail)(host_cuda::Device)) {
  {
    ThrowingRun run(test::make_cuda<GateKind::PollingKernel, test::kDeviceWait, 2>, Place::Nowhere);
    run.options.on_job_end = [&](const JobRecord&) {
      if (++run.ended == 12) fail(host_cuda::device(1));
    };
    run.run();
  }
  std::exit(0);
}

TEST(FailingGpuDeathTest, EndsTheRunWithAllRecords) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_on_failing_gpu([](host_cuda::Device gpu) { gpu.lose(); }), testing::ExitedWithCode(0),
              "cudaErrorUnknown.*\nall recorded");
  EXPECT_EXIT(run_on_failing_gpu([](host_cuda::Device gpu) { gpu.hang_next_kernel(); }), testing::ExitedWithCode(0),
              "has not returned within .*\nall recorded");
}

}  // namespace
}  // namespace tutti::internal
