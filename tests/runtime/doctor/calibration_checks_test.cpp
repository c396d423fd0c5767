#include "runtime/doctor/calibration_checks.hpp"

#include <string>

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

/// A machine of two GPUs that was calibrated with driver 13.0.
MachineSpec calibrated(const std::string& date) {
  MachineSpec machine{.name = "station"};
  machine.provenance = Provenance{.date = date,
                                  .host = "2 x NVIDIA H200, PCIe 5.0 x16 under load; driver for CUDA 13.0",
                                  .fingerprint = "",
                                  .combinations = 4,
                                  .batches = 40};
  machine.vertices = {{.name = "mem0", .kind = VertexKind::Memory},
                      {.name = "gpu0", .kind = VertexKind::Gpu, .bus_id = "0000:06:00.0"},
                      {.name = "gpu1", .kind = VertexKind::Gpu, .bus_id = "0000:07:00.0", .uuid = "GPU-7"}};
  return machine;
}

HostFacts this_host() {
  HostFacts host;
  host.driver = host.runtime = "13.0";
  host.devices.resize(2);
  host.devices[0].bus_id = "0000:06:00.0";
  host.devices[0].uuid = "GPU-6";
  host.devices[1].bus_id = "0000:07:00.0";
  host.devices[1].uuid = "GPU-7";
  return host;
}

/// "risk: value" of row 0 the date, 1 the driver, 2 the GPUs.
std::string found(std::size_t row, const MachineSpec& machine, const HostFacts* host) {
  const Findings findings = look_at_calibration(machine, host, "2026-11-24");
  EXPECT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[row].subject, "machine");
  EXPECT_EQ(findings[row].remedy.empty(), findings[row].state == FindingState::Ok);
  return std::string(to_string(findings[row].state)) + ": " + findings[row].value;
}

TEST(CalibrationChecks, DateIsNotLongAgo) {
  EXPECT_EQ(found(0, calibrated("2026-11-23"), nullptr), "ok: 2026-11-23, 1 day ago");
  EXPECT_EQ(found(0, calibrated("2026-08-26"), nullptr), "ok: 2026-08-26, 90 days ago");
  EXPECT_EQ(found(0, calibrated("2026-08-25"), nullptr), "risk: 2026-08-25, 91 days ago");
  EXPECT_EQ(found(0, calibrated("2026-11-25"), nullptr), "risk: 2026-11-25");
  EXPECT_EQ(found(0, calibrated("unknown"), nullptr), "unread: no date of the calibration");
  EXPECT_EQ(found(0, MachineSpec{.name = "guessed"}, nullptr), "risk: none");
}

TEST(CalibrationChecks, DriverIsTheOneOfThatTime) {
  HostFacts host = this_host();
  EXPECT_EQ(found(1, calibrated("2026-11-23"), &host), "ok: CUDA 13.0 when it was calibrated, 13.0 now");
  host.driver = "13.1";
  EXPECT_EQ(found(1, calibrated("2026-11-23"), &host), "risk: CUDA 13.0 when it was calibrated, 13.1 now");
  EXPECT_EQ(found(1, calibrated("2026-11-23"), nullptr), "unread: no driver on this host");
  MachineSpec machine = calibrated("2026-11-23");
  machine.provenance->host = "some host";
  EXPECT_EQ(found(1, machine, &host), "unread: no driver in the machine file");
}

TEST(CalibrationChecks, GpusAreInTheirPlaces) {
  HostFacts host = this_host();
  MachineSpec machine = calibrated("2026-11-23");
  EXPECT_EQ(found(2, machine, &host), "ok: all 2 here");
  host.devices[1].uuid = "GPU-8";  // another one in its slot
  EXPECT_EQ(found(2, machine, &host), "risk: not here: gpu1 (0000:07:00.0)");
  host.devices.clear();
  EXPECT_EQ(found(2, machine, &host), "risk: not here: gpu0 (0000:06:00.0), gpu1 (0000:07:00.0)");
  EXPECT_EQ(found(2, machine, nullptr), "unread: no GPUs on this host");
  machine.vertices.resize(1);
  EXPECT_EQ(found(2, machine, &host), "unread: no bus ids in the machine file");
}

// 2024 has a 29th of February; from there to the 1st of March is one day.
TEST(DaysBetween, CountsCalendarDays) {
  EXPECT_EQ(days_between("2024-02-29", "2024-03-01"), 1);
  EXPECT_EQ(days_between("2026-01-01", "2025-12-31"), -1);
  for (const char* const date : {"", "2026-02-30", "2026-13-01", "2026-1-1", "26-01-001", "2026/01/01", "2026-00-10"})
    EXPECT_EQ(days_between(date, "2026-01-01"), std::nullopt) << date;
}

}  // namespace
}  // namespace tutti::internal
