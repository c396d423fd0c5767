// Each row: ok on the quiet host (host_checks_test), a risk, and unread.
#include <string>

#include <gtest/gtest.h>

#include "runtime/doctor/host_checks.hpp"
#include "tests/support/fake_host.hpp"

namespace tutti::internal {
namespace {

class KernelChecks : public testing::Test {
 protected:
  [[nodiscard]] std::string found(Finding (*check)(const HostQuestion&)) const {
    const Finding finding = check(host_.question());
    return std::string(to_string(finding.state)) + ": " + finding.value;
  }

  test::QuietHost host_;
};

TEST_F(KernelChecks, RealTimeThreadsAreNotStopped) {
  EXPECT_EQ(found(check_throttling), "ok: off");
  host_.write("proc/sys/kernel/sched_rt_runtime_us", "950000\n");
  EXPECT_EQ(found(check_throttling), "risk: after 950000 of 1000000 us");
  host_.write("proc/sys/kernel/sched_rt_period_us", "950000\n");  // all of it
  EXPECT_EQ(found(check_throttling), "ok: after 950000 of 950000 us");
  host_.remove("proc/sys/kernel/sched_rt_runtime_us");
  EXPECT_EQ(found(check_throttling), "unread: no sched_rt_runtime_us");
}

TEST_F(KernelChecks, PreemptionModelIsFull) {
  const std::string version = "proc/sys/kernel/version";
  EXPECT_EQ(found(check_preemption), "ok: PREEMPT_RT");
  host_.write(version, "#1 SMP PREEMPT Debian\n");
  EXPECT_EQ(found(check_preemption), "ok: full");
  host_.write(version, "#1 SMP Debian\n");
  EXPECT_EQ(found(check_preemption), "risk: none or voluntary");
  EXPECT_NE(check_preemption(host_.question()).remedy.find("install a kernel with PREEMPT_RT"), std::string::npos);
  host_.write("proc/driver/nvidia/version", "NVRM version: 580\n");
  EXPECT_NE(check_preemption(host_.question()).remedy.find("refused by NVIDIA's driver"), std::string::npos);
  host_.write("sys/kernel/realtime", "1\n");
  EXPECT_EQ(found(check_preemption), "ok: PREEMPT_RT");
  host_.remove("sys/kernel/realtime");
  host_.remove(version);
  EXPECT_EQ(found(check_preemption), "unread: no version of the kernel");
}

TEST_F(KernelChecks, PreemptionModelMayBeChosenAtTheStart) {
  host_.write("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian\n");
  EXPECT_EQ(found(check_preemption), "unread: PREEMPT_DYNAMIC, the model is not readable");
  host_.write("proc/cmdline", "quiet preempt=voluntary splash\n");
  EXPECT_EQ(found(check_preemption), "risk: voluntary");
  host_.write("sys/kernel/debug/sched/preempt", "none voluntary (full)\n");  // as it is now
  EXPECT_EQ(found(check_preemption), "ok: full");
}

TEST_F(KernelChecks, ClockIsReadWithoutASystemCall) {
  const std::string file = "sys/devices/system/clocksource/clocksource0/current_clocksource";
  host_.write(file, "hpet\n");
  EXPECT_EQ(found(check_clock_source), "risk: hpet");
  host_.write(file, "kvm-clock\n");
  EXPECT_EQ(found(check_clock_source), "ok: kvm-clock");
  host_.remove(file);
  EXPECT_EQ(found(check_clock_source), "unread: no clock source");
}

// 1 of 100 ticks was taken by others.
TEST_F(KernelChecks, HostIsNotVirtual) {
  EXPECT_EQ(found(check_hypervisor), "ok: none");
  host_.write("proc/cpuinfo", "flags\t\t: fpu hypervisor sse\n");
  HostQuestion question = host_.question();
  question.processor_times = {test::QuietHost::times(0, 0, 0), test::QuietHost::times(0, 99, 1)};
  EXPECT_EQ(check_hypervisor(question).value, "a virtual machine, 1.0 % of its time taken by others");
  EXPECT_EQ(check_hypervisor(question).state, FindingState::Risk);
  question.processor_times = {};
  EXPECT_EQ(check_hypervisor(question).value, "a virtual machine, an unknown share of its time taken by others");
  host_.write("sys/hypervisor/type", "xen\n");
  EXPECT_EQ(found(check_hypervisor), "risk: xen, 0.0 % of its time taken by others");
}

// Processors of arm64 have no flag for it. Servers have a DMI, Jetsons a device tree.
TEST_F(KernelChecks, FirmwareOfArmSaysWhetherTheHostIsVirtual) {
  host_.write("proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd\n");
  EXPECT_EQ(found(check_hypervisor), "unread: neither processors nor firmware say");
  host_.write("sys/class/dmi/id/sys_vendor", "NVIDIA\n");
  host_.write("sys/class/dmi/id/product_name", "Grace Hopper x4 P4496\n");
  EXPECT_EQ(found(check_hypervisor), "ok: none");
  host_.write("sys/class/dmi/id/product_name", "KVM Virtual Machine\n");
  EXPECT_EQ(found(check_hypervisor), "risk: a virtual machine, 0.0 % of its time taken by others");
  host_.remove("sys/class/dmi");
  host_.write("proc/device-tree/model", std::string("NVIDIA Jetson AGX Orin Developer Kit\0", 37));
  EXPECT_EQ(found(check_hypervisor), "ok: none");
  host_.write("proc/device-tree/hypervisor/compatible", "linux,kvm");
  EXPECT_EQ(found(check_hypervisor), "risk: a virtual machine, 0.0 % of its time taken by others");
}

TEST_F(KernelChecks, IommuTranslatesNothing) {
  EXPECT_EQ(found(check_iommu), "ok: identity of 1 group");
  host_.write("sys/kernel/iommu_groups/1/type", "DMA-FQ\n");
  EXPECT_EQ(found(check_iommu), "risk: DMA-FQ of 1 group, identity of 1 group");
  HostQuestion question = host_.question();
  question.gpus = {"0000:06:00.0"};  // its group alone counts
  host_.write("sys/bus/pci/devices/0000:06:00.0/iommu_group/type", "identity\n");
  EXPECT_EQ(check_iommu(question), Finding::ok("identity of 1 group"));
  host_.remove("sys/kernel/iommu_groups");
  EXPECT_EQ(found(check_iommu), "unread: no groups of the IOMMU");
  host_.write("sys/kernel/iommu_groups/0/type", "");
  host_.remove("sys/kernel/iommu_groups/0");
  EXPECT_EQ(found(check_iommu), "ok: off");
}

/// Settings of a PCIe device: a capability of errors at 0x100, and behind it ACS with this control.
std::string settings_with(char control) {
  std::string bytes(4096, '\0');
  const auto capability = [&](std::size_t at, int id, std::size_t next) {
    bytes[at] = static_cast<char>(id);
    bytes[at + 2] = static_cast<char>(1 | (next & 0xf) << 4);
    bytes[at + 3] = static_cast<char>(next >> 4);
  };
  capability(0x100, 0x01, 0x148);
  capability(0x148, 0x0d, 0);
  bytes[0x148 + 6] = control;
  return bytes;
}

TEST_F(KernelChecks, BridgesLetGpusReachEachOther) {
  EXPECT_EQ(found(check_acs), "ok: no copies between GPUs");
  HostQuestion question = host_.question();
  question.gpus = {"0000:06:00.0", "0000:07:00.0"};
  const std::string devices = "sys/bus/pci/devices/";
  host_.write(devices + "0000:00:01.0/class", "0x060400\n");
  host_.write(devices + "0000:06:00.0/class", "0x030200\n");
  const auto with = [&](std::string settings) {
    host_.write(devices + "0000:00:01.0/config", settings);
    const Finding finding = check_acs(question);
    return std::string(to_string(finding.state)) + ": " + finding.value;
  };
  EXPECT_EQ(with(settings_with(0)), "ok: off");
  EXPECT_EQ(with(settings_with(0b10011)), "ok: off");
  EXPECT_EQ(with(settings_with(0b00100)), "risk: redirects at 1 of 1 bridges");
  EXPECT_EQ(with(settings_with(0b01000)), "risk: redirects at 1 of 1 bridges");
  EXPECT_EQ(with(settings_with(0b11101).substr(0, 256)), "unread: no settings of PCIe bridges");
  EXPECT_EQ(with(""), "unread: no settings of PCIe bridges");
  EXPECT_EQ(with(std::string(4096, '\xff')), "ok: off") << "of a device that is gone";
  std::string circle = settings_with(0b11101);
  circle[0x148] = 2;
  circle[0x148 + 2] = '\x01';
  circle[0x148 + 3] = '\x10';
  EXPECT_EQ(with(circle), "ok: off");
}

TEST_F(KernelChecks, LinksOfGpusStayAwake) {
  EXPECT_EQ(found(check_link_rest), "ok: no GPUs");
  HostQuestion question = host_.question();
  question.gpus = {"0000:06:00.0", "0000:07:00.0"};
  const auto now = [&] {
    const Finding finding = check_link_rest(question);
    return std::string(to_string(finding.state)) + ": " + finding.value;
  };
  EXPECT_EQ(now(), "unread: no pcie_aspm");
  host_.write("sys/module/pcie_aspm/parameters/policy", "[default] performance powersave powersupersave\n");
  EXPECT_EQ(now(), "ok: policy [default] performance powersave powersupersave");
  host_.write("sys/module/pcie_aspm/parameters/policy", "default performance powersave [powersupersave]\n");
  EXPECT_EQ(now(), "risk: policy default performance powersave [powersupersave]");
  host_.write("sys/bus/pci/devices/0000:06:00.0/link/l1_aspm", "0\n");
  host_.write("sys/bus/pci/devices/0000:07:00.0/link/l1_aspm", "1\n");
  EXPECT_EQ(now(), "risk: 1 of 2 GPUs let their links sleep");
  host_.write("sys/bus/pci/devices/0000:06:00.0/link/l0s_aspm", "1\n");
  EXPECT_EQ(now(), "risk: 2 of 2 GPUs let their links sleep");
}

TEST_F(KernelChecks, LogHasNoFaultsOfGpus) {
  EXPECT_EQ(found(check_gpu_faults), "ok: none in the kernel's log");
  host_.write("dev/kmsg",
              "3,1,0,-;NVRM: Xid (PCI:0000:06:00): 31, pid=1, name=a\n"
              "3,2,0,-;NVRM: Xid (PCI:0000:07:00): 79, pid=2, GPU has fallen off the bus.\n");
  EXPECT_EQ(found(check_gpu_faults), "risk: 2, the last: (PCI:0000:07:00): 79");
  host_.write("dev/kmsg", "NVRM: Xid (");  // cut off
  EXPECT_EQ(found(check_gpu_faults), "risk: 1, the last: (");
  host_.remove("dev/kmsg");
  EXPECT_EQ(found(check_gpu_faults), "unread: the kernel's log");
}

}  // namespace
}  // namespace tutti::internal
