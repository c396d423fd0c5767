#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include "runtime/doctor/host_question.hpp"
#include "tests/apps/temporary_folder.hpp"

namespace tutti::internal::test {

/// A folder with files as Linux has them below "/", gone with the test.
class FakeHost {
 public:
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories((root() / path).parent_path());
    std::ofstream(root() / path, std::ios::binary) << text;
  }
  void remove(const std::string& path) const { std::filesystem::remove_all(root() / path); }

  [[nodiscard]] const std::filesystem::path& root() const { return folder_.path(); }
  [[nodiscard]] HostFiles files() const { return HostFiles(root()); }

 private:
  wafer::TemporaryFolder folder_;
};

/// A host of four cores on which nothing endangers timing: 2 and 3 are isolated for the threads that keep the time.
class QuietHost : public FakeHost {
 public:
  QuietHost() {
    const std::string cpu = "sys/devices/system/cpu/";
    for (int core = 0; core < 4; ++core) {
      const std::string own = fmt::format("{}cpu{}/", cpu, core);
      write(own + "cpufreq/scaling_governor", "performance\n");
      write(own + "cpuidle/state0/name", "POLL\n");
      write(own + "cpuidle/state0/latency", "0\n");
      write(own + "cpuidle/state0/disable", "0\n");
      write(own + "cpuidle/state1/name", "C6\n");
      write(own + "cpuidle/state1/latency", "133\n");
      write(own + "cpuidle/state1/disable", "1\n");
      write(own + "thermal_throttle/core_throttle_count", "0\n");
      write(own + "thermal_throttle/package_throttle_count", "0\n");
      write(own + "topology/thread_siblings_list", fmt::format("{}\n", core));
    }
    write(cpu + "cpufreq/boost", "0\n");
    write(cpu + "isolated", "2-3\n");
    write(cpu + "nohz_full", "2-3\n");
    write(cpu + "online", "0-3\n");
    write("dev/cpu_dma_latency", std::string("\0\x94\x35\x77", 4));  // 2,000,000,000, low byte first
    write("proc/irq/24/smp_affinity_list", "0-3\n");
    write("proc/irq/24/effective_affinity_list", "0\n");
    write("proc/irq/25/smp_affinity_list", "0-1\n");
    write("proc/self/status", "Name:\ttutti\nCapEff:\t0000000000000000\nCpus_allowed_list:\t0-3\n");
    write("proc/self/limits", limits("unlimited", "99"));
    write("proc/1/comm", "init\n");
    write("proc/self/cgroup", "0::/station/line\n");
    write("sys/fs/cgroup/station/cpu.max", "max 100000\n");
    write("proc/loadavg", "0.08 0.20 0.30 1/345 6789\n");
    write("proc/meminfo", "MemTotal:  65536 kB\nSwapTotal:  0 kB\nSwapFree:  0 kB\n");
    write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    write("sys/devices/system/node/node0/cpulist", "0-3\n");
    write("proc/sys/kernel/numa_balancing", "0\n");
    write("sys/kernel/iommu_groups/0/type", "identity\n");
    write("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
    write("proc/sys/kernel/sched_rt_runtime_us", "-1\n");
    write("proc/sys/kernel/version", "#1 SMP PREEMPT_RT Debian\n");
    write("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu tsc sse\n");
    write("dev/kmsg", "6,1,0,-;Linux version 6.1\n");
  }

  /// "proc/self/limits" with these soft limits.
  static std::string limits(const std::string& locked, const std::string& priority) {
    return fmt::format("{:<26}{:<21}{:<21}{}\n{:<26}{:<21}{:<21}bytes\n{:<26}{:<21}{:<21}\n", "Limit", "Soft Limit",
                       "Hard Limit", "Units", "Max locked memory", locked, "unlimited", "Max realtime priority",
                       priority, "99");
  }

  /// A question about it. In between core 3 worked for 1 of 100 ticks.
  [[nodiscard]] HostQuestion question() const {
    HostQuestion question{.files = files(), .cores = {0, 1, 2, 3}, .own = {2, 3}};
    question.processor_times = {times(100, 900, 0), times(101, 999, 0)};
    return question;
  }

  /// "proc/stat" after so many ticks of work, idling and stolen time; of core 2, 3 and of all.
  static std::string times(int worked, int idle, int stolen) {
    std::string text;
    for (const char* const line : {"cpu ", "cpu2", "cpu3"})
      text += fmt::format("{} {} 0 0 {} 0 0 0 {} 0 0\n", line, worked, idle, stolen);
    return text + "intr 1 2 3\n";
  }
};

}  // namespace tutti::internal::test
