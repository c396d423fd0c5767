#pragma once
#include <cstddef>
#include <span>
#include <string_view>

#include "runtime/doctor/finding.hpp"
#include "runtime/doctor/host_question.hpp"

namespace tutti::internal {

/// A check of the host: a row of the table in `host_checks.cpp`.
///
/// To add one, write its function in one of the three sources, declare it in its group below and add a row. It reads
/// through `HostQuestion::files`, changes nothing, and takes any text: files may be missing, empty or full of garbage.
struct HostCheck {
  std::string_view name;  ///< "governor"
  /// @return  subject and check are left open.
  Finding (*look)(const HostQuestion& question);
};

/// All of them, in the order of the report.
[[nodiscard]] std::span<const HostCheck> host_checks();

/// What every check of the host finds; the subject of each is "host".
[[nodiscard]] Findings look_at_host(const HostQuestion& question);

/// A core that is awake again later than this is a risk.
inline constexpr int kWakeLimitUs = 20;
/// A core that is busy with other work for a larger share is a risk.
inline constexpr double kBusyLimit = 0.1;
/// Names from files are cut to so many bytes.
inline constexpr std::size_t kLongestName = 40;

// ---- cores: core_checks.cpp
[[nodiscard]] Finding check_governor(const HostQuestion& question);
[[nodiscard]] Finding check_boost(const HostQuestion& question);
[[nodiscard]] Finding check_idle_states(const HostQuestion& question);
[[nodiscard]] Finding check_core_throttling(const HostQuestion& question);
[[nodiscard]] Finding check_isolation(const HostQuestion& question);
[[nodiscard]] Finding check_ticks(const HostQuestion& question);
[[nodiscard]] Finding check_interrupts(const HostQuestion& question);
[[nodiscard]] Finding check_siblings(const HostQuestion& question);
[[nodiscard]] Finding check_load(const HostQuestion& question);
[[nodiscard]] Finding check_busy_cores(const HostQuestion& question);

// ---- what the process may do, and memory: process_checks.cpp
[[nodiscard]] Finding check_priority_limit(const HostQuestion& question);
[[nodiscard]] Finding check_memory_limit(const HostQuestion& question);
[[nodiscard]] Finding check_quota(const HostQuestion& question);
[[nodiscard]] Finding check_pollers(const HostQuestion& question);
[[nodiscard]] Finding check_swap(const HostQuestion& question);
[[nodiscard]] Finding check_huge_pages(const HostQuestion& question);
[[nodiscard]] Finding check_memory_nodes(const HostQuestion& question);
[[nodiscard]] Finding check_balancing(const HostQuestion& question);

// ---- the kernel: kernel_checks.cpp
[[nodiscard]] Finding check_throttling(const HostQuestion& question);
[[nodiscard]] Finding check_preemption(const HostQuestion& question);
[[nodiscard]] Finding check_clock_source(const HostQuestion& question);
[[nodiscard]] Finding check_hypervisor(const HostQuestion& question);
[[nodiscard]] Finding check_iommu(const HostQuestion& question);
[[nodiscard]] Finding check_acs(const HostQuestion& question);
[[nodiscard]] Finding check_link_rest(const HostQuestion& question);
[[nodiscard]] Finding check_gpu_faults(const HostQuestion& question);

}  // namespace tutti::internal
