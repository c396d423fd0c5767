#include "runtime/doctor/gpu_checks.hpp"

#include <array>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "model/base/joined.hpp"

namespace tutti::internal {
namespace {

std::string link_words(const PcieLink& link) { return fmt::format("{}.0 x{}", link.generation, link.width); }

Finding not_reported(std::string what) {
  return Finding::unread(std::move(what), "the driver does not say; look at nvidia-smi -q");
}

Finding check_link(const GpuCondition& gpu) {
  const std::string at_best = gpu.link_at_best ? link_words(*gpu.link_at_best) : "?";
  if (!gpu.no_load.empty())
    return Finding::unread(fmt::format("no link under load, {} at best", at_best),
                           "idle links are slower, so copies must run while it is read: " + gpu.no_load);
  if (!gpu.link_under_load || !gpu.link_at_best) return not_reported("no link");
  return Finding::risk_if(narrower(gpu.link_under_load, gpu.link_at_best) != gpu.link_at_best,
                          fmt::format("{} under load, {} at best", link_words(*gpu.link_under_load), at_best),
                          "copies are slower than the slot allows; put the GPU in anew, look at the slot and at its "
                          "settings in the firmware");
}

/// A bit of NVML's reasons for lower clocks that means trouble. A clock that the user set, and an idle GPU's, do not.
struct ClockLimit {
  std::uint64_t bit;
  std::string_view words;
};
constexpr std::array kClockLimits{ClockLimit{0x04, "power cap"},       ClockLimit{0x08, "slowdown by the hardware"},
                                  ClockLimit{0x10, "sync boost"},      ClockLimit{0x20, "heat (driver)"},
                                  ClockLimit{0x40, "heat (hardware)"}, ClockLimit{0x80, "power brake"}};

Finding check_clock_limits(const GpuCondition& gpu) {
  if (!gpu.clock_limits) return not_reported("no reasons of clock limits");
  std::vector<std::string> reasons;
  for (const auto& [bit, words] : kClockLimits)
    if ((*gpu.clock_limits & bit) != 0) reasons.emplace_back(words);
  return Finding::risk_if(!reasons.empty(), reasons.empty() ? "none" : joined(reasons),
                          "kernels take longer than at full clocks; see to cooling and power, or lock a clock that the "
                          "GPU can hold (nvidia-smi -lgc) and measure again");
}

Finding check_persistence(const GpuCondition& gpu) {
  if (!gpu.stays_loaded) return not_reported("no persistence mode");
  return Finding::risk_if(!*gpu.stays_loaded, *gpu.stays_loaded ? "on" : "off",
                          "the driver forgets the GPU when its last program ends, and its settings with it; the next "
                          "start takes seconds: nvidia-smi -pm 1");
}

Finding check_memory_errors(const GpuCondition& gpu) {
  if (gpu.corrects_memory == false) return Finding::ok("ECC off");
  if (!gpu.corrected || !gpu.uncorrected) return not_reported("no counts of ECC errors");
  return Finding::risk_if(*gpu.uncorrected > 0, fmt::format("{} corrected, {} not", *gpu.corrected, *gpu.uncorrected),
                          "programs on the GPU are ended by such an error; run its diagnosis (dcgmi diag -r 3)");
}

Finding check_retired(const GpuCondition& gpu) {
  if (!gpu.retired) return not_reported("no retired memory");
  const RetiredMemory& retired = *gpu.retired;
  const std::string value =
      fmt::format("{} place{}{}{}", retired.places, retired.places == 1 ? "" : "s",
                  retired.is_pending ? ", more pending" : "", retired.has_failed ? ", no spare left" : "");
  return Finding::risk_if(retired.is_pending || retired.has_failed, value,
                          retired.has_failed
                              ? "the memory has errors that nothing can stand in for; have the GPU replaced"
                              : "memory with errors is in use until the GPU is reset; reset it while "
                                "nothing runs (nvidia-smi -r)");
}

Finding check_compute_mode(const GpuCondition& gpu) {
  if (!gpu.compute_mode) return not_reported("no compute mode");
  if (*gpu.compute_mode == 2)
    return Finding::risk("prohibited", "no program may compute on the GPU: nvidia-smi -c EXCLUSIVE_PROCESS");
  return Finding::ok(*gpu.compute_mode == 0 ? "default" : "exclusive");
}

Finding check_mig(const GpuCondition& gpu) {
  if (!gpu.is_divided) return gpu.stays_loaded ? Finding::ok("not there") : not_reported("no MIG mode");
  return Finding::risk_if(*gpu.is_divided, *gpu.is_divided ? "on" : "off",
                          "the parts of a divided GPU share its link and engines, which no machine file describes; "
                          "nvidia-smi -mig 0");
}

Finding check_display(const GpuCondition& gpu) {
  if (!gpu.has_display) return not_reported("no state of the display");
  return Finding::risk_if(*gpu.has_display, *gpu.has_display ? "attached" : "none",
                          "drawing delays kernels and copies; attach the display to another GPU");
}

/// One GPU can open the gates of all that it reaches, and so lead their jobs.
Finding check_reach(const GpuCondition& gpu) {
  if (!gpu.others) return not_reported("no peer access");
  return Finding::risk_if(gpu.reached < *gpu.others,
                          *gpu.others == 0 ? "no other GPU" : fmt::format("{} of {}", gpu.reached, *gpu.others),
                          "copies to the others go through the memory of the host, and jobs that use both are led by a "
                          "thread of the host, whose pauses are then in every bound; nvidia-smi topo -p2p r says why");
}

/// What can lead jobs whose deadlines are at the device.
Finding check_conductor(const GpuCondition& gpu) {
  if (!gpu.limits_kernels) return not_reported("no limit on the time of kernels");
  if (*gpu.limits_kernels)
    return Finding::risk("the host",
                         "the driver ends kernels that take seconds, and a GPU that leads jobs runs one until the end, "
                         "so a thread of the host leads, whose pauses are in every bound; attach the display to "
                         "another GPU");
  return Finding::risk_if(gpu.gate_sms == 0,
                          gpu.gate_sms == 0 ? "a GPU, gates beside kernels"
                                            : fmt::format("a GPU, gates on {} multiprocessors", gpu.gate_sms),
                          "where jobs overlap, a copy may wait for room beside a kernel that fills the GPU; a driver "
                          "since CUDA 12.5 sets multiprocessors apart for gates");
}

Finding check_other_users(const GpuCondition& gpu) {
  if (gpu.other_run)
    return Finding::risk("another run of tutti", "its copies are in none of your guarantees; run one at a time");
  if (!gpu.other_programs) return not_reported("no list of processes");
  return Finding::risk_if(*gpu.other_programs > 0,
                          fmt::format("{} other process{}", *gpu.other_programs, *gpu.other_programs == 1 ? "" : "es"),
                          "where they copy or compute, yours is slower than promised; nvidia-smi lists them");
}

constexpr std::array kGpuChecks{
    GpuCheck{"PCIe link", check_link},
    GpuCheck{"clock limits", check_clock_limits},
    GpuCheck{"persistence mode", check_persistence},
    GpuCheck{"memory errors", check_memory_errors},
    GpuCheck{"retired memory", check_retired},
    GpuCheck{"compute mode", check_compute_mode},
    GpuCheck{"MIG", check_mig},
    GpuCheck{"display", check_display},
    GpuCheck{"GPUs reached", check_reach},
    GpuCheck{"conductor", check_conductor},
    GpuCheck{"other users", check_other_users},
};

}  // namespace

std::span<const GpuCheck> gpu_checks() { return kGpuChecks; }

Findings look_at_gpu(const GpuCondition& gpu) {
  Findings findings;
  for (const GpuCheck& check : kGpuChecks) {
    findings.push_back(check.look(gpu));
    findings.back().subject = gpu.name;
    findings.back().check = check.name;
  }
  return findings;
}

}  // namespace tutti::internal
