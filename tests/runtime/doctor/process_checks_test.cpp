// Each row: ok on the quiet host (host_checks_test), a risk, and unread.
#include <string>

#include <gtest/gtest.h>

#include "runtime/doctor/host_checks.hpp"
#include "tests/support/fake_host.hpp"

namespace tutti::internal {
namespace {

class ProcessChecks : public testing::Test {
 protected:
  [[nodiscard]] std::string found(Finding (*check)(const HostQuestion&)) const {
    const Finding finding = check(host_.question());
    return std::string(to_string(finding.state)) + ": " + finding.value;
  }

  test::QuietHost host_;
};

TEST_F(ProcessChecks, PriorityIsAllowed) {
  EXPECT_EQ(found(check_priority_limit), "ok: 99 at most");
  HostQuestion question = host_.question();
  question.priority = 50;  // and 51 for the thread that opens gates
  for (const auto& [limit, state] : {std::pair("51", FindingState::Ok), std::pair("50", FindingState::Risk)}) {
    host_.write("proc/self/limits", test::QuietHost::limits("0", limit));
    EXPECT_EQ(check_priority_limit(question).state, state) << limit;
  }
  host_.write("proc/self/limits", test::QuietHost::limits("0", "0"));
  EXPECT_EQ(found(check_priority_limit), "risk: 0 at most");
  host_.remove("proc/self/limits");
  EXPECT_EQ(found(check_priority_limit), "unread: no limit in /proc/self/limits");
}

// Bit 23 is CAP_SYS_NICE, bit 14 CAP_IPC_LOCK.
TEST_F(ProcessChecks, CapabilitiesStandAboveLimits) {
  host_.remove("proc/self/limits");
  host_.write("proc/self/status", "CapEff:\t0000000000800000\n");
  EXPECT_EQ(found(check_priority_limit), "ok: any (CAP_SYS_NICE)");
  EXPECT_EQ(found(check_memory_limit), "unread: no limit in /proc/self/limits");
  host_.write("proc/self/status", "CapEff:\t0000000000004000\n");
  EXPECT_EQ(found(check_priority_limit), "unread: no limit in /proc/self/limits");
  EXPECT_EQ(found(check_memory_limit), "ok: any (CAP_IPC_LOCK)");
}

TEST_F(ProcessChecks, MemoryMayBeLocked) {
  EXPECT_EQ(found(check_memory_limit), "ok: unlimited");
  host_.write("proc/self/limits", test::QuietHost::limits("8388608", "0"));
  EXPECT_EQ(found(check_memory_limit), "risk: 8388608 B at most");
}

TEST_F(ProcessChecks, QuotaOfAnyGroupAboveCounts) {
  EXPECT_EQ(found(check_quota), "ok: none");
  host_.write("sys/fs/cgroup/station/cpu.max", "150000 100000\n");
  EXPECT_EQ(found(check_quota), "risk: 1.50 cores in each 100000 us");
  host_.write("sys/fs/cgroup/station/cpu.max", "max 100000\n");
  host_.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");  // version 1
  host_.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(found(check_quota), "risk: 0.50 cores in each 100000 us");
  host_.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(found(check_quota), "ok: none");
}

// A group outside the container's own root has no folder here: nothing outside of the root is read.
TEST_F(ProcessChecks, QuotaIsUnreadWhereTheGroupIsNotKnown) {
  for (const char* const text : {"", "0::/../above\n", "0:://etc\n", "1:name=systemd:/x\n"}) {
    host_.write("proc/self/cgroup", text);
    EXPECT_EQ(found(check_quota), "unread: no group of the process") << text;
  }
}

TEST_F(ProcessChecks, NobodyPollsTheDriver) {
  EXPECT_EQ(found(check_pollers), "ok: none");
  host_.write("proc/77/comm", "nvidia_gpu_expo\n");
  host_.write("proc/78/comm", "nvidia-smi\n");
  host_.write("proc/79/comm", "nvidia-smi\n");
  EXPECT_EQ(found(check_pollers), "risk: nvidia-smi, nvidia_gpu_expo");
  for (const char* const entry : {"proc/1", "proc/77", "proc/78", "proc/79"}) host_.remove(entry);
  EXPECT_EQ(found(check_pollers), "unread: no processes in /proc");
}

TEST_F(ProcessChecks, SwapIsNotUsed) {
  EXPECT_EQ(found(check_swap), "ok: none");
  host_.write("proc/meminfo", "SwapTotal: 1000 kB\nSwapFree: 1000 kB\n");
  EXPECT_EQ(found(check_swap), "ok: 0 of 1000 kB used");
  host_.write("proc/meminfo", "SwapTotal: 1000 kB\nSwapFree: 900 kB\n");
  EXPECT_EQ(found(check_swap), "risk: 100 of 1000 kB used");
  host_.write("proc/meminfo", "MemTotal: 1 kB\n");
  EXPECT_EQ(found(check_swap), "unread: no SwapTotal in /proc/meminfo");
}

TEST_F(ProcessChecks, HugePagesAreJoinedOnRequestAlone) {
  const std::string file = "sys/kernel/mm/transparent_hugepage/enabled";
  host_.write(file, "[always] madvise never\n");
  EXPECT_EQ(found(check_huge_pages), "risk: always");
  host_.write(file, "always madvise [never]\n");
  EXPECT_EQ(found(check_huge_pages), "ok: never");
  for (const char* const text : {"", "]always[", "[always", "always"}) {
    host_.write(file, text);
    EXPECT_EQ(found(check_huge_pages), "unread: no state of transparent huge pages") << text;
  }
}

TEST_F(ProcessChecks, CoresAndGpusAreAtOneNode) {
  EXPECT_EQ(found(check_memory_nodes), "ok: cores 2,3 at node 0");
  HostQuestion question = host_.question();
  question.gpus = {"0000:06:00.0", "0000:07:00.0"};
  host_.write("sys/bus/pci/devices/0000:06:00.0/numa_node", "0\n");
  host_.write("sys/bus/pci/devices/0000:07:00.0/numa_node", "-1\n");  // not known
  EXPECT_EQ(check_memory_nodes(question), Finding::ok("cores 2,3 at node 0, GPUs at 0"));
  host_.write("sys/bus/pci/devices/0000:07:00.0/numa_node", "1\n");
  EXPECT_EQ(check_memory_nodes(question).value, "cores 2,3 at node 0, GPUs at 0,1");
  EXPECT_EQ(check_memory_nodes(question).state, FindingState::Risk);
  host_.write("sys/devices/system/node/node0/cpulist", "0-2\n");
  host_.write("sys/devices/system/node/node1/cpulist", "3\n");
  EXPECT_EQ(found(check_memory_nodes), "risk: cores 2,3 at node 0,1");
  host_.remove("sys/devices/system/node");
  EXPECT_EQ(found(check_memory_nodes), "unread: no memory nodes in /sys/devices/system/node");
}

TEST_F(ProcessChecks, BalancingIsOffOrHasNothingToBalance) {
  host_.write("proc/sys/kernel/numa_balancing", "1\n");
  EXPECT_EQ(found(check_balancing), "risk: on");
  host_.remove("proc/sys/kernel/numa_balancing");
  EXPECT_EQ(found(check_balancing), "unread: no numa_balancing");
  host_.write("sys/devices/system/node/online", "0\n");
  EXPECT_EQ(found(check_balancing), "ok: one memory node");
}

}  // namespace
}  // namespace tutti::internal
