#include "runtime/doctor/host_checks.hpp"

#include <array>

namespace tutti::internal {
namespace {

constexpr std::array kHostChecks{
    HostCheck{"governor", check_governor},
    HostCheck{"boost", check_boost},
    HostCheck{"idle states", check_idle_states},
    HostCheck{"thermal throttling", check_core_throttling},
    HostCheck{"isolated cores", check_isolation},
    HostCheck{"timer ticks", check_ticks},
    HostCheck{"interrupts", check_interrupts},
    HostCheck{"SMT siblings", check_siblings},
    HostCheck{"load", check_load},
    HostCheck{"busy cores", check_busy_cores},
    HostCheck{"CPU quota", check_quota},
    HostCheck{"real-time priority", check_priority_limit},
    HostCheck{"real-time throttling", check_throttling},
    HostCheck{"locked memory", check_memory_limit},
    HostCheck{"swap", check_swap},
    HostCheck{"huge pages", check_huge_pages},
    HostCheck{"memory nodes", check_memory_nodes},
    HostCheck{"NUMA balancing", check_balancing},
    HostCheck{"IOMMU", check_iommu},
    HostCheck{"PCIe ACS", check_acs},
    HostCheck{"PCIe links at rest", check_link_rest},
    HostCheck{"clock source", check_clock_source},
    HostCheck{"preemption", check_preemption},
    HostCheck{"hypervisor", check_hypervisor},
    HostCheck{"GPU pollers", check_pollers},
    HostCheck{"GPU faults (Xid)", check_gpu_faults},
};

}  // namespace

std::span<const HostCheck> host_checks() { return kHostChecks; }

Findings look_at_host(const HostQuestion& question) {
  Findings findings;
  for (const HostCheck& check : kHostChecks) {
    findings.push_back(check.look(question));
    findings.back().value = printable(findings.back().value);  // it has text of files
    findings.back().subject = "host";
    findings.back().check = check.name;
  }
  return findings;
}

}  // namespace tutti::internal
