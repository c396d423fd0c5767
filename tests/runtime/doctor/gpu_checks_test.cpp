#include "runtime/doctor/gpu_checks.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

/// A GPU on which nothing endangers timing.
GpuCondition quiet_gpu() {
  GpuCondition gpu{.name = "gpu0", .bus_id = "0000:06:00.0"};
  gpu.link_under_load = gpu.link_at_best = PcieLink{5, 16};
  gpu.clock_limits = 0x1;  // idle between two copies
  gpu.stays_loaded = true;
  gpu.corrects_memory = true;
  gpu.corrected = gpu.uncorrected = 0;
  gpu.retired = RetiredMemory{};
  gpu.compute_mode = 0;
  gpu.is_divided = false;
  gpu.has_display = false;
  gpu.other_programs = 0;
  gpu.others = gpu.reached = 3;
  gpu.limits_kernels = false;
  gpu.gate_sms = 8;
  return gpu;
}

/// "risk: value" of a check, on a quiet GPU that one thing was changed of.
std::string found(std::string_view check, const std::function<void(GpuCondition&)>& change) {
  GpuCondition gpu = quiet_gpu();
  change(gpu);
  const Findings findings = look_at_gpu(gpu);
  const auto row = std::ranges::find(findings, check, &Finding::check);
  if (row == findings.end()) return "no such check";
  EXPECT_EQ(row->subject, "gpu0");
  EXPECT_EQ(row->remedy.empty(), row->state == FindingState::Ok) << check;
  return std::string(to_string(row->state)) + ": " + row->value;
}

TEST(GpuChecks, FindNothingWrongWithAQuietGpu) {
  for (const Finding& finding : look_at_gpu(quiet_gpu()))
    EXPECT_EQ(finding.state, FindingState::Ok) << finding.check << ": " << finding.value;
}

TEST(GpuChecks, SayWhatTheDriverDoesNotReport) {
  const GpuCondition silent{.name = "gpu0"};
  for (const Finding& finding : look_at_gpu(silent))
    EXPECT_EQ(finding.state, FindingState::Unread) << finding.check << ": " << finding.value;
}

TEST(GpuChecks, LinkIsAsFastAsTheSlotUnderLoad) {
  const auto link = [](PcieLink now) {
    return found("PCIe link", [&](GpuCondition& gpu) { gpu.link_under_load = now; });
  };
  EXPECT_EQ(link({5, 16}), "ok: 5.0 x16 under load, 5.0 x16 at best");
  EXPECT_EQ(link({5, 8}), "risk: 5.0 x8 under load, 5.0 x16 at best");
  EXPECT_EQ(link({3, 16}), "risk: 3.0 x16 under load, 5.0 x16 at best");
  EXPECT_EQ(found("PCIe link", [](GpuCondition& gpu) { gpu.no_load = "another run uses it"; }),
            "unread: no link under load, 5.0 x16 at best");
}

// The bits of nvml.h: 0x1 idle and 0x2 a clock that the user set are no trouble.
TEST(GpuChecks, ClocksAreNotHeldDown) {
  const auto limits = [](std::uint64_t bits) {
    return found("clock limits", [&](GpuCondition& gpu) { gpu.clock_limits = bits; });
  };
  EXPECT_EQ(limits(0x103), "ok: none");
  EXPECT_EQ(limits(0x04), "risk: power cap");
  EXPECT_EQ(limits(0x40 | 0x08 | 0x01), "risk: slowdown by the hardware, heat (hardware)");
  EXPECT_EQ(limits(0x20), "risk: heat (driver)");
  EXPECT_EQ(limits(0x80), "risk: power brake");
}

TEST(GpuChecks, MemoryHasNoErrors) {
  EXPECT_EQ(found("memory errors", [](GpuCondition& gpu) { gpu.corrected = 5; }), "ok: 5 corrected, 0 not");
  EXPECT_EQ(found("memory errors", [](GpuCondition& gpu) { gpu.uncorrected = 1; }), "risk: 0 corrected, 1 not");
  EXPECT_EQ(found("memory errors", [](GpuCondition& gpu) { gpu.corrects_memory = false; }), "ok: ECC off");
  EXPECT_EQ(found("retired memory", [](GpuCondition& gpu) { gpu.retired->places = 2; }), "ok: 2 places");
  EXPECT_EQ(found("retired memory",
                  [](GpuCondition& gpu) {
                    gpu.retired = {1, true, false};
                  }),
            "risk: 1 place, more pending");
  EXPECT_EQ(found("retired memory",
                  [](GpuCondition& gpu) {
                    gpu.retired = {8, false, true};
                  }),
            "risk: 8 places, no spare left");
}

TEST(GpuChecks, ModesAreThoseOfAMachineForComputing) {
  EXPECT_EQ(found("persistence mode", [](GpuCondition& gpu) { gpu.stays_loaded = false; }), "risk: off");
  EXPECT_EQ(found("compute mode", [](GpuCondition& gpu) { gpu.compute_mode = 3; }), "ok: exclusive");
  EXPECT_EQ(found("compute mode", [](GpuCondition& gpu) { gpu.compute_mode = 2; }), "risk: prohibited");
  EXPECT_EQ(found("MIG", [](GpuCondition& gpu) { gpu.is_divided = true; }), "risk: on");
  EXPECT_EQ(found("MIG", [](GpuCondition& gpu) { gpu.is_divided.reset(); }), "ok: not there");
  EXPECT_EQ(found("display", [](GpuCondition& gpu) { gpu.has_display = true; }), "risk: attached");
}

TEST(GpuChecks, OneReachesTheOthers) {
  EXPECT_EQ(found("GPUs reached", [](GpuCondition&) {}), "ok: 3 of 3");
  EXPECT_EQ(found("GPUs reached", [](GpuCondition& gpu) { gpu.reached = 1; }), "risk: 1 of 3");
  EXPECT_EQ(found("GPUs reached", [](GpuCondition& gpu) { gpu.others = gpu.reached = 0; }), "ok: no other GPU");
}

TEST(GpuChecks, AGpuCanLeadJobs) {
  EXPECT_EQ(found("conductor", [](GpuCondition&) {}), "ok: a GPU, gates on 8 multiprocessors");
  EXPECT_EQ(found("conductor", [](GpuCondition& gpu) { gpu.gate_sms = 0; }), "risk: a GPU, gates beside kernels");
  EXPECT_EQ(found("conductor", [](GpuCondition& gpu) { gpu.limits_kernels = true; }), "risk: the host");
}

TEST(GpuChecks, NobodyElseUsesTheGpu) {
  EXPECT_EQ(found("other users", [](GpuCondition& gpu) { gpu.other_programs = 1; }), "risk: 1 other process");
  EXPECT_EQ(found("other users", [](GpuCondition& gpu) { gpu.other_programs = 2; }), "risk: 2 other processes");
  EXPECT_EQ(found("other users", [](GpuCondition& gpu) { gpu.other_run = true; }), "risk: another run of tutti");
}

}  // namespace
}  // namespace tutti::internal
