#include "apps/tutti/reports/capacity_report.hpp"

#include <fmt/format.h>

#include "apps/table.hpp"

namespace tutti::internal {
namespace {

PlannerCapacityOutput row_output(const CapacityAnswer& answer, const CapacityRow& row) {
  const auto valued = [&](std::int64_t value) { return TunableValue(answer.tunable, value); };
  PlannerCapacityOutput output;
  if (row.planner != nullptr) output.planner = row.planner->name;
  output.overlap = row.planner != nullptr ? Overlap::Off : Overlap::On;
  output.value = {answer.tunable, row.capacity.value};
  output.beyond = {answer.tunable, row.capacity.beyond};
  if (row.there) {
    output.utilization = row.there->utilization;
    output.scaling = scaling_factor(row.there->scaling);
  }
  for (const Hole& hole : row.capacity.holes) output.holes.push_back({valued(hole.from), valued(hole.to)});
  output.tried = row.capacity.tried;
  for (const CapacityPoint& point : row.curve)
    output.curve.push_back(
        {valued(point.value), point.answer == Answer::Schedulable, point.utilization, scaling_factor(point.scaling)});
  return output;
}

}  // namespace

std::string_view to_string(Extreme extreme) { return extreme == Extreme::Largest ? "largest" : "smallest"; }

CapacityOutput capacity_output(const CapacityAnswer& answer) {
  CapacityOutput output;
  output.quantity = answer.tunable.kind;
  output.name = text_if_any(answer.tunable.name);
  output.task = text_if_any(answer.tunable.task);
  output.wanted = answer.wanted;
  output.policy = answer.tasks.policy;
  output.preemption = answer.tasks.preemption;
  output.arrivals = answer.tasks.arrivals;
  output.now = {answer.tunable, answer.tunable.value};
  for (const CapacityRow& row : answer.rows) output.planners.push_back(row_output(answer, row));
  output.assumption = assumption();
  return output;
}

std::string capacity_text(const CapacityAnswer& answer) {
  const auto text_of = [&](std::int64_t value) { return value_text(answer.tunable, value); };
  programs::Table table({"planner", std::string(to_string(answer.wanted)), "no more at", "utilization", "tried"});
  std::string notes;
  for (const CapacityRow& row : answer.rows) {
    const Capacity& found = row.capacity;
    table.add({std::string(row.name()), found.value ? text_of(*found.value) : "none",
               found.beyond ? text_of(*found.beyond) : "-",
               row.there ? fmt::format("{:.4f}", row.there->utilization) : "-", fmt::to_string(found.tried)});
    for (const Hole& hole : found.holes) {
      notes += fmt::format("{}: not schedulable {}, although {} is\n", row.name(),
                           hole.from == hole.to ? "at " + text_of(hole.from)
                                                : fmt::format("from {} to {}", text_of(hole.from), text_of(hole.to)),
                           text_of(*found.value));
    }
  }
  return fmt::format("{} {} with which every deadline is guaranteed ({}; now {})\n\n{}{}{}\n{}\n",
                     to_string(answer.wanted), name_of(answer.tunable), discipline(answer.tasks),
                     text_of(answer.tunable.value), table.text(), notes.empty() ? "" : "\n", notes, assumption());
}

}  // namespace tutti::internal
