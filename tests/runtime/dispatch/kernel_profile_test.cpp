// Kernels measured one by one on the simulated machine, which takes what is declared unless a fault adds to it.
#include "runtime/dispatch/kernel_profile.hpp"

#include <atomic>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/sharing/compile_machine.hpp"
#include "tests/runtime/task_runs.hpp"
#include "tests/support/fault_function.hpp"

namespace tutti::internal {
namespace {

using test::copy_stream;
using test::kernel_stream;

/// Tasks on the small machine with costs, a fault in every run, and what is measured.
struct Profile {
  explicit Profile(Topology machine = test::small_machine())
      : station(std::make_unique<VirtualClock>(), test::Station::make_sim, std::move(machine)) {}

  void add(std::string name, std::vector<JobStep> steps) {
    Task task = test::task(std::move(name), 0, 1'000'000);
    task.declared_wcet.reset();
    task.steps = std::move(steps);
    set.tasks.push_back(std::move(task));
  }
  Expected<std::vector<MeasuredKernel>> measure(int repeats = 5) {
    set.machine = station.machine;
    std::vector<PatternProgram> programs;
    programs.reserve(set.tasks.size());
    std::vector<TaskProgram*> table;
    for (const Task& task : set.tasks) table.push_back(&programs.emplace_back(station.machine, task, 1));
    return profile_kernels(executor, set, table, {repeats, give_outputs, &interrupted});
  }

  test::Station station;
  test::FaultyBackend backend{*station.backend, *station.clock};
  Executor executor{station.machine, backend, *station.clock};
  TaskSet set;
  bool give_outputs = false;
  std::atomic<bool> interrupted = false;
};

CommandStream with_kernel(CommandStream stream, VertexId on, std::string name, std::int64_t ns) {
  stream.kernel = Kernel{on, Duration{ns}, Duration{2 * ns}, std::move(name)};
  return stream;
}

std::vector<double> runs_of(std::size_t count, double ns) { return std::vector<double>(count, ns); }

// Of two batches and a host step, the kernels in the order of the set; costs of the machine are no part of them.
TEST(KernelProfile, MeasuresEveryKernelInEveryWay) {
  Profile profile(test::changed(test::small_machine(), [](MachineSpec& spec) {
    spec.setup.kernel = {Duration{30}, Duration{40}};
  }));
  const VertexId mem = profile.station.at("mem0"), gpu0 = profile.station.at("gpu0"), gpu1 = profile.station.at("gpu1");
  profile.add("a", {profile.station.batch({with_kernel(copy_stream("x", mem, gpu0, 1000), gpu0, "spin", 500),
                                           copy_stream("y", mem, gpu1, 1000)}),
                    HostStep{Duration{10}}, profile.station.batch({kernel_stream("z", gpu0, "checksum", 70)})});
  profile.add("b", {profile.station.batch({kernel_stream("w", gpu1, "spin", 90)})});
  const auto measured = profile.measure().value();
  ASSERT_EQ(measured.size(), 3U);
  const std::vector<KernelPlace> places{{0, 0, 0}, {0, 1, 0}, {1, 0, 0}};
  const std::vector<double> declared{500, 70, 90};
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_EQ(measured[k].at, places[k]);
    EXPECT_EQ(measured[k].alone, runs_of(5, declared[k])) << k;
    EXPECT_EQ(measured[k].beside_copies, runs_of(5, declared[k])) << k;
    EXPECT_EQ(measured[k].beside_kernels, runs_of(5, declared[k])) << k;
  }
}

// Beside copies it takes 50 ns more, beside another kernel 7, in one run of all 1000.
TEST(KernelProfile, KeepsTheWaysApart) {
  Profile profile;
  const VertexId gpu0 = profile.station.at("gpu0"), gpu1 = profile.station.at("gpu1");
  profile.add("a", {profile.station.batch({kernel_stream("k", gpu0, "spin", 500)})});
  profile.add("b", {profile.station.batch({kernel_stream("k", gpu1, "spin", 500)})});
  int runs = 0;
  BatchFault longer;
  longer.times = [&](Timeline& timeline) {
    const bool copies = timeline.streams.back().transfer.has_value();
    Duration& end = timeline.streams.front().kernel->end;
    end += Duration{copies ? 50 : timeline.streams.size() > 1 ? 7 : 0};
    if (++runs == 20) end += Duration{1000};
  };
  profile.backend.faults = test::FaultFunction([&](const BatchRun&) { return &longer; });
  const auto measured = profile.measure(100).value();
  ASSERT_EQ(measured.size(), 2U);
  EXPECT_EQ(measured[1].alone, runs_of(100, 500));
  EXPECT_EQ(measured[1].beside_copies, runs_of(100, 550));
  EXPECT_EQ(measured[1].beside_kernels, runs_of(100, 507));
  const DeclaredTime declared = measured[0].declared(0.1, "2026-11-24");
  EXPECT_EQ(declared.at, (KernelPlace{0, 0, 0}));
  EXPECT_EQ(declared.time, Duration{507});    // the median of 500, 507 and 550
  EXPECT_GE(declared.worst, Duration{1650});  // 1.1 x one of 1500, 1507 and 1550
  EXPECT_LE(declared.worst, Duration{1705});
  EXPECT_EQ(declared.remark.find("on 2026-11-24: 300 runs, at most 1.5"), 0U) << declared.remark;
  EXPECT_NE(declared.remark.find(", and 10 %"), std::string::npos) << declared.remark;
}

// A kernel runs on what its job brought it: the pattern that lies in main memory.
TEST(KernelProfile, RunsKernelsOnTheDataOfTheirJobs) {
  Profile profile;
  std::vector<std::vector<std::byte>> inputs;
  const auto look = [&](const KernelLaunch& launch) { inputs.emplace_back(launch.input.begin(), launch.input.end()); };
  ASSERT_TRUE(profile.station.kernels.add("look", look).has_value());
  const VertexId mem = profile.station.at("mem0"), gpu = profile.station.at("gpu1");
  profile.add("t", {profile.station.batch({with_kernel(copy_stream("s", mem, gpu, 64), gpu, "look", 5)})});
  ASSERT_TRUE(profile.measure(4).has_value());
  // The job; 3 to warm up; 3 more and 4 alone, and as many beside copies: no other kernel is there.
  ASSERT_EQ(inputs.size(), 1U + 3U + 2U * 7U);
  EXPECT_EQ(inputs.front().size(), 64U);
  EXPECT_NE(inputs.front(), std::vector<std::byte>(64));
  for (const auto& input : inputs) EXPECT_EQ(input, inputs.front());
}

TEST(KernelProfile, GivesOutputsWhereAsked) {
  for (const bool give : {false, true}) {
    Profile profile;
    std::set<std::size_t> outputs;
    const auto look = [&](const KernelLaunch& launch) { outputs.insert(launch.output.size()); };
    ASSERT_TRUE(profile.station.kernels.add("look", look).has_value());
    const VertexId mem = profile.station.at("mem0"), gpu = profile.station.at("gpu1");
    profile.add("t", {profile.station.batch({with_kernel(copy_stream("s", mem, gpu, 64), gpu, "look", 5)})});
    profile.give_outputs = give;
    ASSERT_TRUE(profile.measure(4).has_value());
    EXPECT_EQ(outputs, give ? (std::set<std::size_t>{0, 64}) : (std::set<std::size_t>{0}));  // 0: in the job itself
  }
}

// Two GPUs behind a switch, and no memory: there is nothing to copy from.
TEST(KernelProfile, DoesWithoutCopiesWhereThereIsNoMemory) {
  Profile profile(compile({.name = "far",
                           .vertices = {{.name = "sw0", .kind = VertexKind::Switch},
                                        {.name = "gpu0", .kind = VertexKind::Gpu},
                                        {.name = "gpu1", .kind = VertexKind::Gpu}},
                           .links = {{.from = "sw0", .to = "gpu0", .bandwidth = GBps{1}, .back = GBps{1}},
                                     {.from = "sw0", .to = "gpu1", .bandwidth = GBps{1}, .back = GBps{1}}},
                           .peer_access = {.mode = PeerMode::All}})
                      .value());
  profile.add("t", {profile.station.batch({kernel_stream("k", profile.station.at("gpu0"), "spin", 50)})});
  const auto measured = profile.measure().value();
  EXPECT_EQ(measured[0].alone, runs_of(5, 50));
  EXPECT_TRUE(measured[0].beside_copies.empty());
}

TEST(KernelProfile, EndsWithAnError) {
  Profile none;
  none.add("t", {none.station.batch({copy_stream("s", none.station.at("mem0"), none.station.at("gpu0"), 64)})});
  EXPECT_EQ(none.measure().error().message, "no task of the set has a kernel, so there is nothing to measure");

  Profile throws;
  int calls = 0;
  const auto fail = [&](const KernelLaunch&) {
    if (++calls > 3) throw std::runtime_error("enough");
  };
  ASSERT_TRUE(throws.station.kernels.add("fail", fail).has_value());
  throws.add("t", {throws.station.batch({kernel_stream("k", throws.station.at("gpu0"), "fail", 5)})});
  EXPECT_NE(throws.measure().error().message.find("enough"), std::string::npos);

  Profile stopped;
  stopped.add("t", {stopped.station.batch({kernel_stream("k", stopped.station.at("gpu0"), "spin", 5)})});
  stopped.interrupted = true;
  EXPECT_EQ(stopped.measure().error().message, "interrupted; there is nothing to report yet");
}

}  // namespace
}  // namespace tutti::internal
