// What a tool sees of a run: NVTX loads tests/support/host_cuda/nvtx_tool in place of Nsight Systems.
#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/dispatch/partitioned_run.hpp"
#include "tests/runtime/small_machine.hpp"
#include "tests/runtime/task_runs.hpp"
#include "tests/support/host_cuda/nvtx_tool.hpp"

namespace tutti::internal {
namespace {

using std::chrono::milliseconds;
using test::copy_stream;
using test::Station;
using test::ToolCall;

constexpr std::uint64_t kJobs = 4;

/// Two batches, to a GPU and back, with a host step between. A busy host has time for each of its jobs.
TaskSet round_trips(const Station& station, Overlap overlap) {
  const VertexId mem = station.at("mem0"), gpu = station.at("gpu0");
  TaskSet set{station.machine, Policy::Edf, {}};
  set.overlap = overlap;
  Task task;
  task.name = "inspect";
  task.period = task.deadline = milliseconds{200};
  task.steps = {station.batch({copy_stream("up", mem, gpu, 2000)}), HostStep{},
                station.batch({copy_stream("down", gpu, mem, 2000)})};
  set.tasks = {task};
  return set;
}

/// The calls of a run, and how many ranges were under way before it.
std::vector<ToolCall> calls_of_run(Overlap overlap) {
  const std::size_t before = test::tool_calls().size();
  Station station(std::make_unique<test::DeviceClock>(), test::make_cuda<GateKind::PollingKernel>);
  const TaskSet set = round_trips(station, overlap);
  PatternProgram program(station.machine, set.tasks.front(), 1);
  TaskProgram* const programs[] = {&program};
  Executor* const executors[] = {&station.executor};
  RunOptions options;
  options.jobs = kJobs;
  const auto record = run_tasks(executors, test::admit(set), programs, options);
  EXPECT_TRUE(record && !record->fatal);
  std::vector<ToolCall> calls = test::tool_calls();
  calls.erase(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(before));
  return calls;
}

/// The begin and the end of each range of a category, as places in the calls.
std::vector<std::pair<std::size_t, std::size_t>> ranges_of(const std::vector<ToolCall>& calls,
                                                           const std::string& category) {
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].kind != ToolCall::Kind::Begin || calls[i].category != category) continue;
    EXPECT_EQ(calls[i].domain, "tutti");
    const auto ends = [&](const ToolCall& call) {
      return call.kind == ToolCall::Kind::End && call.range == calls[i].range;
    };
    EXPECT_EQ(std::ranges::count_if(calls, ends), 1) << calls[i].name;
    ranges.emplace_back(i, static_cast<std::size_t>(std::ranges::find_if(calls, ends) - calls.begin()));
  }
  return ranges;
}

class ToolRanges : public testing::TestWithParam<Overlap> {};

INSTANTIATE_TEST_SUITE_P(Overlap, ToolRanges, testing::Values(Overlap::Off, Overlap::On),
                         [](const auto& mode) { return mode.param == Overlap::On ? "On" : "Off"; });

// Four jobs of two batches: ranges of jobs, "inspect 0" to "inspect 3", one after the other, and in each of them two
// ranges of batches with the number of the job. Batches that warm up the GPUs before are of no job. A busy host may
// drop some jobs.
TEST_P(ToolRanges, ShowJobsAndTheirBatches) {
  const std::vector<ToolCall> calls = calls_of_run(GetParam());
  const auto jobs = ranges_of(calls, "jobs"), batches = ranges_of(calls, "batches");
  ASSERT_FALSE(jobs.empty());
  EXPECT_LE(jobs.size(), kJobs);
  std::size_t inside = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto [begin, end] = jobs[i];
    const std::uint64_t job = calls[begin].payload;
    EXPECT_EQ(calls[begin].name, "inspect " + std::to_string(job));
    EXPECT_LT(job, kJobs);
    if (i > 0) {
      EXPECT_LT(jobs[i - 1].second, begin);
      EXPECT_LT(calls[jobs[i - 1].first].payload, job);
    }
    std::vector<std::string> names;
    for (const auto& [first, last] : batches) {
      if (first < begin || last > end) continue;
      names.push_back(calls[first].name);
      EXPECT_EQ(calls[first].payload, job);
    }
    EXPECT_EQ(names.size(), 2U) << "job " << job;
    for (const std::string& name : names) EXPECT_NE(name.find("inspect"), std::string::npos) << name;
    inside += names.size();
  }
  EXPECT_EQ(inside, 2 * jobs.size());
}

TEST(ToolNames, AreThoseOfTheConductorAndOfStreams) {
  const std::vector<ToolCall> calls = calls_of_run(Overlap::Off);
  const auto count = [&](ToolCall::Kind kind, const std::string& name) {
    return std::ranges::count_if(calls, [&](const ToolCall& call) { return call.kind == kind && call.name == name; });
  };
  EXPECT_EQ(count(ToolCall::Kind::NameThread, "tutti conductor"), 1);
  for (const char* name : {"tutti gpu 0 service", "tutti gpu 0 lane 0", "tutti gpu 2 lane 1"})
    EXPECT_EQ(count(ToolCall::Kind::NameStream, name), 1) << name;
}

}  // namespace
}  // namespace tutti::internal
