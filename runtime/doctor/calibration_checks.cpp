#include "runtime/doctor/calibration_checks.hpp"

#include <array>
#include <chrono>
#include <vector>

#include <fmt/format.h>

#include "model/base/joined.hpp"
#include "runtime/doctor/host_files.hpp"

namespace tutti::internal {
namespace {

constexpr const char* kAgain = "tutti calibrate measures it anew";

std::optional<std::chrono::sys_days> day_of(std::string_view date) {
  if (date.size() != 10 || date[4] != '-' || date[7] != '-') return std::nullopt;
  const auto year = whole_number(date.substr(0, 4));
  const auto month = whole_number(date.substr(5, 2));
  const auto day = whole_number(date.substr(8, 2));
  if (!year || !month || !day || *month < 1 || *day < 1) return std::nullopt;
  const std::chrono::year_month_day found{std::chrono::year(static_cast<int>(*year)),
                                          std::chrono::month(static_cast<unsigned>(*month)),
                                          std::chrono::day(static_cast<unsigned>(*day))};
  return found.ok() ? std::optional(std::chrono::sys_days(found)) : std::nullopt;
}

Finding check_date(const MachineSpec& machine, std::string_view today) {
  if (!machine.provenance)
    return Finding::risk("none", "the figures were not measured; calibrate the machine (tutti calibrate)");
  const auto age = days_between(machine.provenance->date, today);
  if (!age) return Finding::unread("no date of the calibration", kAgain);
  if (*age < 0)
    return Finding::risk(machine.provenance->date, "the calibration comes after today; set the clock of the host");
  return Finding::risk_if(*age > kStaleDays,
                          fmt::format("{}, {} day{} ago", machine.provenance->date, *age, *age == 1 ? "" : "s"),
                          fmt::format("the host may have changed since; {}", kAgain));
}

/// "13.0" of a host's words like "4 x NVIDIA H200; driver for CUDA 13.0"; empty where they name no driver.
std::string driver_in(std::string_view words) {
  constexpr std::string_view kMark = "driver for CUDA ";
  const std::size_t at = words.find(kMark);
  if (at == words.npos) return "";
  const std::string_view rest = words.substr(at + kMark.size());
  return std::string(rest.substr(0, rest.find_first_not_of("0123456789.")));
}

Finding check_driver(const MachineSpec& machine, const HostFacts* host) {
  const std::string then = machine.provenance ? driver_in(machine.provenance->host) : "";
  if (then.empty()) return Finding::unread("no driver in the machine file", kAgain);
  if (host == nullptr) return Finding::unread("no driver on this host", "look at its GPUs (--backend cuda)");
  return Finding::risk_if(then != host->driver,
                          fmt::format("CUDA {} when it was calibrated, {} now", then, host->driver),
                          fmt::format("costs of commands depend on the driver; {}", kAgain));
}

/// Whether the host has a GPU of the machine, in its old place.
bool is_here(const Vertex& gpu, const HostFacts& host) {
  const DeviceFacts* const by_bus = find_device(host, gpu.bus_id.empty() ? gpu.uuid : gpu.bus_id);
  return by_bus != nullptr && (gpu.uuid.empty() || find_device(host, gpu.uuid) == by_bus);
}

Finding check_gpus(const MachineSpec& machine, const HostFacts* host) {
  std::vector<std::string> missing;
  std::size_t named = 0;
  for (const Vertex& vertex : machine.vertices) {
    if (vertex.kind != VertexKind::Gpu || (vertex.bus_id.empty() && vertex.uuid.empty())) continue;
    ++named;
    if (host != nullptr && !is_here(vertex, *host))
      missing.push_back(fmt::format("{} ({})", vertex.name, vertex.bus_id.empty() ? vertex.uuid : vertex.bus_id));
  }
  if (named == 0)
    return Finding::unread("no bus ids in the machine file", "tutti topology detect --out writes a file that has them");
  if (host == nullptr) return Finding::unread("no GPUs on this host", "look at them (--backend cuda)");
  if (missing.empty()) return Finding::ok(fmt::format("all {} here", named));
  return Finding::risk("not here: " + joined(missing),
                       fmt::format("the file describes another host, or GPUs that were moved; {}", kAgain));
}

}  // namespace

std::optional<int> days_between(std::string_view from, std::string_view to) {
  const auto first = day_of(from);
  const auto last = day_of(to);
  if (!first || !last) return std::nullopt;
  return static_cast<int>((*last - *first).count());
}

Findings look_at_calibration(const MachineSpec& machine, const HostFacts* host, std::string_view today) {
  Findings findings{check_date(machine, today), check_driver(machine, host), check_gpus(machine, host)};
  constexpr std::array<std::string_view, 3> kNames{"calibration", "driver", "GPUs"};
  for (std::size_t i = 0; i < findings.size(); ++i) {
    findings[i].subject = "machine";
    findings[i].check = kNames[i];
  }
  return findings;
}

}  // namespace tutti::internal
