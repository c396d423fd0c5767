// Each row: ok on the quiet host (host_checks_test), a risk, and unread.
#include <string>

#include <gtest/gtest.h>

#include "runtime/doctor/host_checks.hpp"
#include "runtime/doctor/processor_times.hpp"
#include "tests/support/fake_host.hpp"

namespace tutti::internal {
namespace {

const std::string kCpu = "sys/devices/system/cpu/";

class CoreChecks : public testing::Test {
 protected:
  /// "risk: value" of a check.
  [[nodiscard]] static std::string found(const Finding& finding) {
    return std::string(to_string(finding.state)) + ": " + finding.value;
  }

  test::QuietHost host_;
};

TEST_F(CoreChecks, GovernorIsPerformanceOnEveryCore) {
  EXPECT_EQ(found(check_governor(host_.question())), "ok: performance of 4 cores");
  host_.write(kCpu + "cpu1/cpufreq/scaling_governor", "powersave\n");
  EXPECT_EQ(found(check_governor(host_.question())), "risk: performance of 3 cores, powersave of 1 core");
  for (int core = 0; core < 4; ++core) host_.remove(kCpu + "cpu" + std::to_string(core) + "/cpufreq");
  EXPECT_EQ(found(check_governor(host_.question())), "unread: no cpufreq");
}

TEST_F(CoreChecks, BoostHasTwoFiles) {
  host_.write(kCpu + "cpufreq/boost", "1\n");
  EXPECT_EQ(found(check_boost(host_.question())), "risk: on");
  host_.remove(kCpu + "cpufreq/boost");
  EXPECT_EQ(found(check_boost(host_.question())), "unread: no switch for boost");
  host_.write(kCpu + "intel_pstate/no_turbo", "1\n");
  EXPECT_EQ(found(check_boost(host_.question())), "ok: off");
  host_.write(kCpu + "intel_pstate/no_turbo", "0\n");
  EXPECT_EQ(found(check_boost(host_.question())), "risk: on");
}

TEST_F(CoreChecks, DeepestStateIsOneThatIsOnAndAllowed) {
  EXPECT_EQ(found(check_idle_states(host_.question())), "ok: POLL wakes in 0 us, cpu_dma_latency 2000000000 us");
  host_.write(kCpu + "cpu2/cpuidle/state1/disable", "0\n");
  EXPECT_EQ(found(check_idle_states(host_.question())), "risk: C6 wakes in 133 us, cpu_dma_latency 2000000000 us");
  // 100 us are asked for: 133 us are too long for the kernel, too.
  host_.write("dev/cpu_dma_latency", std::string("\x64\0\0\0", 4));
  EXPECT_EQ(found(check_idle_states(host_.question())), "ok: POLL wakes in 0 us, cpu_dma_latency 100 us");
  host_.remove("dev/cpu_dma_latency");
  EXPECT_EQ(found(check_idle_states(host_.question())), "risk: C6 wakes in 133 us, cpu_dma_latency not readable");
  for (int core = 0; core < 4; ++core) host_.remove(kCpu + "cpu" + std::to_string(core) + "/cpuidle");
  EXPECT_EQ(found(check_idle_states(host_.question())), "unread: no cpuidle");
}

TEST_F(CoreChecks, DeepStatesAreNoRiskForARunThatForbidsThem) {
  host_.write(kCpu + "cpu2/cpuidle/state1/disable", "0\n");
  HostQuestion question = host_.question();
  question.priority = 50;
  EXPECT_EQ(check_idle_states(question).state, FindingState::Ok);
  host_.remove("dev/cpu_dma_latency");  // which it needs for that
  EXPECT_EQ(check_idle_states(question).state, FindingState::Risk);
}

TEST_F(CoreChecks, ThrottlingCounts) {
  EXPECT_EQ(found(check_core_throttling(host_.question())), "ok: 0 times since the start");
  host_.write(kCpu + "cpu0/thermal_throttle/package_throttle_count", "7\n");
  EXPECT_EQ(found(check_core_throttling(host_.question())), "risk: 7 times since the start");
  for (int core = 0; core < 4; ++core) host_.remove(kCpu + "cpu" + std::to_string(core) + "/thermal_throttle");
  EXPECT_EQ(found(check_core_throttling(host_.question())), "unread: no counters");
}

TEST_F(CoreChecks, OwnCoresAreIsolatedAndWithoutTicks) {
  host_.write(kCpu + "isolated", "3\n");
  EXPECT_EQ(found(check_isolation(host_.question())), "risk: core 2 not isolated");
  host_.remove(kCpu + "isolated");
  EXPECT_EQ(found(check_isolation(host_.question())), "unread: no list of isolated cores");
  host_.write(kCpu + "nohz_full", "(null)\n");
  EXPECT_EQ(found(check_ticks(host_.question())), "risk: cores 2,3 with ticks");
  host_.remove(kCpu + "nohz_full");
  EXPECT_EQ(found(check_ticks(host_.question())), "unread: no nohz_full");
}

// Where an interrupt really goes is what counts: 24 may come to all cores, and comes to 0.
TEST_F(CoreChecks, InterruptsComeToOtherCores) {
  EXPECT_EQ(found(check_interrupts(host_.question())), "ok: 0 of 2 on cores 2,3");
  host_.write("proc/irq/24/effective_affinity_list", "\n");
  EXPECT_EQ(found(check_interrupts(host_.question())), "risk: 1 of 2 on cores 2,3");
  host_.write("proc/irq/25/effective_affinity_list", "3\n");
  EXPECT_EQ(found(check_interrupts(host_.question())), "risk: 2 of 2 on cores 2,3");
  host_.remove("proc/irq");
  EXPECT_EQ(found(check_interrupts(host_.question())), "unread: no interrupts in /proc/irq");
}

TEST_F(CoreChecks, SiblingsRunNothingElse) {
  host_.write(kCpu + "cpu2/topology/thread_siblings_list", "0,2\n");
  EXPECT_EQ(found(check_siblings(host_.question())), "risk: core 0 beside cores 2,3");
  host_.write(kCpu + "isolated", "0,2-3\n");  // then nothing runs on 0
  EXPECT_EQ(found(check_siblings(host_.question())), "ok: none that runs other work");
  for (const char* const core : {"cpu2", "cpu3"}) host_.write(kCpu + core + "/topology/thread_siblings_list", "2-3\n");
  EXPECT_EQ(found(check_siblings(host_.question())), "risk: cores 2,3 beside cores 2,3");
  for (const char* const core : {"cpu2", "cpu3"}) host_.remove(kCpu + core + "/topology");
  EXPECT_EQ(found(check_siblings(host_.question())), "unread: no topology of the cores");
}

// Four cores less two of their own leave two.
TEST_F(CoreChecks, LoadLeavesTheOwnCoresFree) {
  host_.write("proc/loadavg", "2.00 0 0 1/2 3\n");
  EXPECT_EQ(found(check_load(host_.question())), "ok: 2.00 in the last minute, 4 cores");
  host_.write("proc/loadavg", "2.01 0 0 1/2 3\n");
  EXPECT_EQ(found(check_load(host_.question())), "risk: 2.01 in the last minute, 4 cores");
  for (const char* const text : {"", "nan 0 0", "-1 0 0", "1e99 0 0", "x y z"}) {
    host_.write("proc/loadavg", text);
    EXPECT_EQ(found(check_load(host_.question())), "unread: no load average") << text;
  }
}

// 1 of 100 ticks; then 11.
TEST_F(CoreChecks, OwnCoresAreIdle) {
  HostQuestion question = host_.question();
  EXPECT_EQ(found(check_busy_cores(question)), "ok: cores 2,3 busy up to 1 %");
  question.processor_times[1] = test::QuietHost::times(111, 989, 0);
  EXPECT_EQ(found(check_busy_cores(question)), "risk: cores 2,3 busy up to 11 %");
  question.processor_times[1] = question.processor_times[0];  // no time went by
  EXPECT_EQ(found(check_busy_cores(question)), "unread: no times in /proc/stat");
}

// Of 200 ticks that passed, 50 were work, 100 idle, 50 stolen.
TEST(ProcessorTimes, AreSharesOfWhatPassed) {
  const ProcessorTimes times{test::QuietHost::times(100, 100, 100), test::QuietHost::times(150, 200, 150)};
  EXPECT_DOUBLE_EQ(*busy_share(times, "cpu2 "), 0.5);
  EXPECT_DOUBLE_EQ(*stolen_share(times, "cpu "), 0.25);
  EXPECT_EQ(busy_share(times, "cpu7 "), std::nullopt);
  EXPECT_EQ(busy_share({std::nullopt, times[1]}, "cpu2 "), std::nullopt);
  EXPECT_EQ(busy_share({"cpu2 1 2 3", times[1]}, "cpu2 "), std::nullopt);
}

}  // namespace
}  // namespace tutti::internal
