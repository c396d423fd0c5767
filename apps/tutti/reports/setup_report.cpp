#include "apps/tutti/reports/setup_report.hpp"

#include <fmt/format.h>

#include "apps/table.hpp"
#include "model/base/units.hpp"

namespace tutti::internal {
namespace {

std::string us_text(Duration time) { return fmt::format("{:.2f}", as_ns(time) / 1e3); }

/// Whether a class is of copies that most machines were not calibrated for.
bool is_further(CopyKind route) { return route > CopyKind::Staged; }

std::string below_text(const CopyCost& cost) {
  if (!cost.small) return "";
  return cost.below == kEverySize ? "every size" : to_string(cost.below);
}

}  // namespace

std::string setup_text(const SetupTimes& setup) {
  programs::Table table({"cost", "nominal us", "guaranteed us", "below", "GB/s there"});
  table.align_left(0);
  std::size_t nothing = 0;
  const auto add = [&](std::string_view what, const Cost& cost) {
    if (cost == Cost{})
      ++nothing;
    else
      table.add({std::string(what), us_text(cost.nominal), us_text(cost.guaranteed), "", ""});
  };
  add("a batch", setup.batch);
  for (const CopyKind route : kCopyKinds) {
    const CopyCost& cost = setup.transfer.of(route);
    if (cost == CopyCost{}) {
      nothing += is_further(route) ? 0 : 1;
      continue;
    }
    table.add({fmt::format("a copy, {}", to_string(route)), us_text(cost.each.nominal), us_text(cost.each.guaranteed),
               below_text(cost), cost.small ? fmt::format("{:.2f}", cost.small->nominal.value) : ""});
    for (const SizeCost& size : cost.sizes)
      if (size.size > Bytes{0}) add(fmt::format("more for {}", to_string(size.size)), size.more);
  }
  for (const CopyKind route : kCopyKinds)
    if (!is_further(route))
      add(fmt::format("an engine queue's first copy, {}", to_string(route)), setup.transfer.of(route).first);
  for (const CopyKind route : kCopyKinds)
    if (const auto& led = setup.transfer.of(route).led_first)
      add(fmt::format("an engine queue's first copy, {}, where a GPU leads", to_string(route)), *led);
  if (const SizeCost& carried = setup.transfer.of(CopyKind::Up).carried; carried.size > Bytes{0})
    add(fmt::format("an engine queue's only copy, up to {}, usually", to_string(carried.size)), carried.more);
  for (const NamedCost& named : kFurtherCosts) add(named.what, setup.*named.cost);
  for (const ConductorCost& cost : kConductorCosts)
    if (setup.*cost.cost) add(cost.what, *(setup.*cost.cost));
  if (setup.conductor_jobs) add("jobs in a row that a GPU leads, together", *setup.conductor_jobs);
  if (setup.conductor_visit) add("a visit of a GPU that leads", *setup.conductor_visit);
  if (setup.conductor_lane) add("a batch that a GPU leads, for each further lane", *setup.conductor_lane);
  return table.text() + (nothing > 0 ? fmt::format("{} further costs are 0\n", nothing) : "");
}

}  // namespace tutti::internal
