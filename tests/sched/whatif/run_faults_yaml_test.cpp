#include "sched/whatif/run_faults_yaml.hpp"

#include <chrono>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/apps/temporary_folder.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// Two GPUs behind a hub; left copies to gpu0 and has a kernel there, right declares its Wcet.
class RunFaultsYaml : public ::testing::Test {
 protected:
  RunFaultsYaml() {
    for (const char* name : {"left", "right"}) set_.tasks.emplace_back().name = name;
    set_.machine = test::make_machine(R"(  vertices:
    mem0: {kind: memory}
    hub0: {kind: hub}
    gpu0: {kind: gpu}
    gpu1: {kind: gpu}
  links:
    - {from: mem0, to: hub0, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: hub0, to: gpu0, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: hub0, to: gpu1, bandwidth: 1 GB/s, back: 1 GB/s}
)");
    const VertexId gpu0 = *set_.machine->find_vertex("gpu0");
    CommandStream stream{"s", Transfer{*set_.machine->find_vertex("mem0"), gpu0, Bytes{8}, {}, {}}, {}, {}};
    stream.kernel = Kernel{gpu0, Duration{1}, Duration{1}, "spin"};
    set_.tasks[0].steps = {Batch::make(*set_.machine, {stream}).value()};
    set_.tasks[1].declared_wcet = Duration{7};
  }

  [[nodiscard]] Expected<RunFaults> load(const std::string& faults) const {
    const std::string path = folder_.file("f.yaml");
    std::ofstream(path) << "version: 1\nfaults:\n" << faults;
    return load_run_faults(path, set_);
  }
  /// The only fault of a list.
  [[nodiscard]] RunFault only(const std::string& fault) const {
    const auto loaded = load("  - " + fault + "\n");
    EXPECT_TRUE(loaded.has_value()) << fault << ": " << loaded.error().text();
    return loaded ? loaded->faults.at(0) : RunFault{};
  }
  /// What a list is refused with, without the folder.
  [[nodiscard]] std::string error(const std::string& fault) const {
    const auto loaded = load("  - " + fault + "\n");
    if (loaded) return "fine";
    const std::string message = loaded.error().text();
    return message.substr(message.find("f.yaml"));
  }

  [[nodiscard]] LinkId link(const char* from, const char* to) const {
    return *set_.machine->find_link(*set_.machine->find_vertex(from), *set_.machine->find_vertex(to));
  }

  TaskSet set_;
  wafer::TemporaryFolder folder_;
};

TEST_F(RunFaultsYaml, ReadsEveryKindWithItsFields) {
  EXPECT_EQ(only("{kind: slow_link, route: [hub0, gpu0], rate: 0.25, from: 1 ms, until: 2 ms}"),
            (RunFault{.kind = FaultKind::SlowLink,
                      .from = milliseconds{1},
                      .until = milliseconds{2},
                      .links = {link("hub0", "gpu0")},
                      .rate = 0.25}));
  EXPECT_EQ(only("{kind: slow_transfers, task: left, times: 2, by: 3 us, chance: 0.5, jobs: [3, 10]}"),
            (RunFault{.kind = FaultKind::SlowTransfers,
                      .task = TaskId{0U},
                      .first_job = 3,
                      .last_job = 10,
                      .chance = 0.5,
                      .times = 2,
                      .by = microseconds{3}}));
  EXPECT_EQ(only("{kind: slow_kernels, times: 1.5}"), (RunFault{.kind = FaultKind::SlowKernels, .times = 1.5}));
  EXPECT_EQ(only("{kind: slow_host_steps, task: right, by: 1 us}"),
            (RunFault{.kind = FaultKind::SlowHostSteps, .task = TaskId{1U}, .by = microseconds{1}}));
  EXPECT_EQ(only("{kind: slow_commands, of: handover, by: 1 us}"),
            (RunFault{.kind = FaultKind::SlowCommands, .by = microseconds{1}, .of = CommandCost::Handover}));
  EXPECT_EQ(only("{kind: late_completion, by: 1 us}"),
            (RunFault{.kind = FaultKind::LateCompletion, .by = microseconds{1}}));
  EXPECT_EQ(only("{kind: lost_completion, task: left}"),
            (RunFault{.kind = FaultKind::LostCompletion, .task = TaskId{0U}}));
  EXPECT_EQ(only("{kind: hung_kernel}"), RunFault{.kind = FaultKind::HungKernel});
  EXPECT_EQ(only("{kind: failing_kernel}"), RunFault{.kind = FaultKind::FailingKernel});
  EXPECT_EQ(only("{kind: lost_gpu, gpu: gpu1, at: 5 ms}"),
            (RunFault{.kind = FaultKind::LostGpu, .gpu = *set_.machine->find_vertex("gpu1"), .at = milliseconds{5}}));
  EXPECT_EQ(only("{kind: sticky_error, at: 0}"), RunFault{.kind = FaultKind::StickyError});
  EXPECT_EQ(only("{kind: host_stall, at: 1 ms, lasts: 2 ms}"),
            (RunFault{.kind = FaultKind::HostStall, .at = milliseconds{1}, .lasts = milliseconds{2}}));
}

// Of two ends that no link joins, the links of the machine's route.
TEST_F(RunFaultsYaml, TakesALinkARouteOrTheEndsOfOne) {
  const std::vector<LinkId> way{link("mem0", "hub0"), link("hub0", "gpu1")};
  EXPECT_EQ(only("{kind: slow_link, route: [mem0, hub0, gpu1], rate: 1}").links, way);
  EXPECT_EQ(only("{kind: slow_link, route: [mem0, gpu1], rate: 1}").links, way);
  EXPECT_EQ(only("{kind: slow_link, route: [gpu1, hub0], rate: 1}").links, std::vector{link("gpu1", "hub0")});
}

TEST_F(RunFaultsYaml, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(error("{kind: slow_lnk, route: [hub0, gpu0]}"),
            "f.yaml:3:12: 'slow_lnk' is no kind of fault; did you mean 'slow_link'? write one of slow_link, "
            "slow_transfers, slow_kernels, slow_host_steps, slow_commands, late_completion, lost_completion, "
            "hung_kernel, failing_kernel, lost_gpu, sticky_error, host_stall, early_trigger, late_trigger, "
            "double_trigger, missing_trigger");
  EXPECT_EQ(error("{kind: hung_kernel, task: lefd}"),
            "f.yaml:3:31: the task set has no task 'lefd'; did you mean 'left'?");
  EXPECT_EQ(error("{kind: hung_kernel, task: right}"), "f.yaml:3:31: task 'right' has no kernel; name another one");
  EXPECT_EQ(error("{kind: slow_host_steps, task: left, times: 2}"),
            "f.yaml:3:35: task 'left' has no host step; name another one");
  EXPECT_EQ(error("{kind: slow_link, rate: 0.5}"), "f.yaml:3:5: 'route' is missing in a slow_link; add it");
  EXPECT_EQ(error("{kind: slow_kernels}"), "f.yaml:3:5: a slow_kernels has 'times', 'by' or both; add one of them");
  EXPECT_EQ(error("{kind: hung_kernel, at: 1 ms}"), "f.yaml:3:29: a hung_kernel has no 'at'; leave it out");
  EXPECT_EQ(error("{kind: slow_kernels, times: 2, jobs: [4, 3]}"),
            "f.yaml:3:42: 'jobs' is the first and the last job that may have it, from 0; write [3, 10]");
  EXPECT_EQ(error("{kind: slow_kernels, times: 2, from: 2 ms, until: 2 ms}"),
            "f.yaml:3:55: the fault ends before it begins; write a time behind 'from'");
  EXPECT_EQ(error("{kind: slow_host_steps, times: 0.5}"),
            "f.yaml:3:36: host steps are declared, and no run makes them shorter; write 1 or more");
  EXPECT_EQ(error("{kind: slow_link, route: [mem0, gpu0, hub0], rate: 0.5}"),
            "f.yaml:3:37: no link leads from 'mem0' to 'gpu0'; a route follows the machine's links");
  EXPECT_EQ(error("{kind: slow_link, route: [mem0], rate: 0.5}"),
            "f.yaml:3:30: a route has at least its two ends; write [mem0, cpu0, gpu0]");
  EXPECT_EQ(error("{kind: lost_gpu, gpu: gpu7, at: 0}"),
            "f.yaml:3:27: machine 'm' has no vertex 'gpu7'; did you mean 'gpu0'?");
  EXPECT_EQ(error("{kind: lost_gpu, gpu: hub0, at: 0}"), "f.yaml:3:27: 'hub0' is a hub; name a gpu");
  EXPECT_EQ(error("{kind: late_completion, by: 25 h}").substr(0, 12), "f.yaml:3:33:") << "no unit of ours";
  EXPECT_EQ(error("{kind: late_completion, by: 86401 s}"), "f.yaml:3:33: a fault takes at most 86400 s; write less");
  EXPECT_NE(error("{kind: slow_link, route: [hub0, gpu0], rate: 1.5}").find("f.yaml:3:50:"), std::string::npos);
  EXPECT_NE(error("{kind: slow_kernels, times: 0}").find("f.yaml:3:33:"), std::string::npos);
  EXPECT_NE(error("{kind: hung_kernel, chance: 1.1}").find("f.yaml:3:33:"), std::string::npos);
  EXPECT_NE(error("{kind: slow_commands, of: batches, by: 1 us}").find("did you mean 'batch'?"), std::string::npos);
}

TEST_F(RunFaultsYaml, NamesAllFaults) {
  const std::string text = error("{kind: hung_kernel, task: lefd}\n  - {kind: lost_gpu, gpu: gpu0}");
  EXPECT_NE(text.find(":3:31:"), std::string::npos) << text;
  EXPECT_NE(text.find(":4:5: 'at' is missing in a lost_gpu"), std::string::npos) << text;
}

TEST_F(RunFaultsYaml, NeedsAMachineForLinksAndGpus) {
  set_.machine.reset();
  set_.tasks[0].steps.clear();
  EXPECT_EQ(error("{kind: lost_gpu, gpu: gpu0, at: 0}"),
            "f.yaml:3:27: the task set has no machine; leave this fault out, or give --machine");
  EXPECT_EQ(error("{kind: hung_kernel}"), "f.yaml:3:12: no task has a kernel; leave this fault out");
}

TEST_F(RunFaultsYaml, RefusesMoreFaultsThanARunCanHave) {
  std::string text;
  for (std::size_t i = 0; i <= kMostFaults; ++i) text += "  - {kind: hung_kernel}\n";
  const auto loaded = load(text);
  ASSERT_FALSE(loaded.has_value());
  EXPECT_NE(loaded.error().text().find("65 faults are too many; 64 are the most"), std::string::npos);
}

}  // namespace
}  // namespace tutti::internal
