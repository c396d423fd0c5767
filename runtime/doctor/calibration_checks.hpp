#pragma once
#include <optional>
#include <string_view>

#include "model/machine/machine_spec.hpp"
#include "runtime/doctor/finding.hpp"
#include "runtime/host/host_facts.hpp"

namespace tutti::internal {

/// A calibration that is older is a risk, in days.
inline constexpr int kStaleDays = 90;

/// Whether a machine's figures still belong to this host: the date of its calibration, the driver at that time, its
/// GPUs. The subject of each finding is "machine".
/// @param host   null where its GPUs could not be looked at
/// @param today  "2026-11-24"
[[nodiscard]] Findings look_at_calibration(const MachineSpec& machine, const HostFacts* host, std::string_view today);

/// The days from one date to another, "2026-11-24"; nothing where one of them is none.
[[nodiscard]] std::optional<int> days_between(std::string_view from, std::string_view to);

}  // namespace tutti::internal
