// A run of tasks that loses a GPU, on GPUs that are executed on the host: the others go on.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/dispatch/partitioned_run.hpp"
#include "runtime/dispatch/spare_machines.hpp"
#include "tests/runtime/task_runs.hpp"
#include "tests/support/host_cuda/host_cuda.hpp"

namespace tutti::internal {
namespace {

using std::chrono::milliseconds;

/// Three GPUs of the host.
Topology three_gpus() {
  return test::make_machine(R"(  vertices:
    mem0: {kind: memory}
    gpu0: {kind: gpu, bus_id: "7e57:01:00.0"}
    gpu1: {kind: gpu, bus_id: "7e57:02:00.0"}
    gpu2: {kind: gpu, bus_id: "7e57:03:00.0"}
  links:
    - {from: mem0, to: gpu0, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: mem0, to: gpu1, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: mem0, to: gpu2, bandwidth: 1 GB/s, back: 1 GB/s}
  peer_access: none
)");
}

/// Backends of the GPUs that are left, on one clock.
class GpusLeft final : public SpareMachines {
 public:
  explicit GpusLeft(const Topology& machine) : machine_(machine) {}

  Expected<Executor*> without(std::size_t, std::span<const VertexId> lost) override {
    CudaOptions options;
    options.waiting = test::kDeviceWait;
    options.watchdog = {1, milliseconds{300}};
    options.gpus.emplace(machine_.gpus().begin(), machine_.gpus().end());
    std::erase_if(*options.gpus, [&](VertexId gpu) { return std::ranges::find(lost, gpu) != lost.end(); });
    return make_cuda_backend(machine_, kernels_, clock_, options).map([&](auto&& made) {
      backends_.push_back(std::move(made));
      return executors_.emplace_back(std::make_unique<Executor>(machine_, *backends_.back(), clock_)).get();
    });
  }

 private:
  const Topology& machine_;
  KernelRegistry kernels_ = KernelRegistry::with_builtins();
  test::DeviceClock clock_;
  std::vector<std::unique_ptr<DeviceBackend>> backends_;
  std::vector<std::unique_ptr<Executor>> executors_;
};

/// Every 50 ms a task copies to each GPU; a task of the host makes them one partition.
TaskSet tasks_on(const Topology& machine, Overlap overlap) {
  TaskSet set{machine, Policy::Edf, {}};
  set.overlap = overlap;
  for (const char* gpu : {"gpu0", "gpu1", "gpu2"}) {
    Task task = test::task(gpu, 0, milliseconds{50} / Duration{1});
    task.declared_wcet.reset();
    task.steps = {
        Batch::make(machine, {test::copy_stream("copy", *machine.find_vertex("mem0"), *machine.find_vertex(gpu), 4096)})
            .value()};
    set.tasks.push_back(std::move(task));
  }
  set.tasks.push_back(test::task("host", 1000, milliseconds{50} / Duration{1}));
  if (overlap == Overlap::On) {  // what it holds must be known
    set.tasks.back().declared_wcet.reset();
    set.tasks.back().steps = {HostStep{Duration{1000}}};
  }
  return set;
}

/// The GPU goes behind the fourth job of the host. Prints what the record says.
void lose_in_a_run(int ordinal, Overlap overlap) {
  alarm(60);
  {
    const Topology machine = three_gpus();
    const AdmittedTaskSet admitted = test::admit(tasks_on(machine, overlap));
    GpusLeft machines(machine);
    Executor* const executors[] = {machines.without(0, {}).value()};
    std::vector<std::unique_ptr<PatternProgram>> programs;
    std::vector<TaskProgram*> table;
    for (const Task& task : admitted.tasks().tasks)
      table.push_back(programs.emplace_back(std::make_unique<PatternProgram>(machine, task, 1)).get());
    RunOptions options;
    options.arrivals_before = std::chrono::seconds{2};
    options.spares = &machines;
    options.on_job_end = [&](const JobRecord& job) {
      if (job.task == TaskId{3U} && job.index == 3) host_cuda::device(ordinal).lose();
    };
    const RunRecord record = run_tasks(executors, admitted, table, options).value();
    for (const std::string& note : record.notes)
      if (note.find(" was lost at ") != std::string::npos) std::fprintf(stderr, "%s\n", note.c_str());
    const Duration at = record.replanned.at(0).at;
    for (std::size_t task = 0; task < 4; ++task)
      std::fprintf(stderr, "%s",
                   std::ranges::count_if(record.jobs,
                                         [&](const JobRecord& job) {
                                           return job.task == TaskId{task} && job.arrival >= at && !job.error &&
                                                  job.finish;
                                         }) > 0
                       ? "on "
                       : "off ");
    std::fprintf(stderr, "%s\n", record.fatal ? "fatal" : "fine");
  }
  std::exit(0);
}

class LostGpuRunDeathTest : public testing::TestWithParam<Overlap> {};

INSTANTIATE_TEST_SUITE_P(Overlap, LostGpuRunDeathTest, testing::Values(Overlap::Off, Overlap::On),
                         [](const auto& mode) { return mode.param == Overlap::On ? "On" : "Off"; });

// Once the first GPU, which is the current one of most threads, and once another.
TEST_P(LostGpuRunDeathTest, TasksOfTheOtherGpusGoOn) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(lose_in_a_run(0, GetParam()), testing::ExitedWithCode(0),
              "gpu0 was lost at .*: 'gpu0' needs it and has ended; 'gpu1', 'gpu2', 'host' go on, admitted anew after "
              ".*\noff on on on fatal");
  EXPECT_EXIT(lose_in_a_run(1, GetParam()), testing::ExitedWithCode(0),
              "gpu1 was lost at .*: 'gpu1' needs it and has ended; 'gpu0', 'gpu2', 'host' go on, admitted anew after "
              ".*\non off on on fatal");
}

}  // namespace
}  // namespace tutti::internal
