#include "apps/tutti/reports/capacity_report.hpp"

#include <fmt/format.h>

#include "apps/table.hpp"

namespace tutti::internal {
namespace {

std::string_view word(Extreme extreme) { return extreme == Extreme::Largest ? "largest" : "smallest"; }

Json curve_json(const CapacityAnswer& answer, const CapacityRow& row) {
  Json curve = Json::array();
  for (const CapacityPoint& point : row.curve) {
    Json json;
    put_value(json, answer.tunable, "value", point.value);
    json["schedulable"] = point.answer == Answer::Schedulable;
    json["utilization"] = point.utilization;
    json["wcet_growth"] = scaling_json(point.scaling);
    curve.push_back(std::move(json));
  }
  return curve;
}

Json row_json(const CapacityAnswer& answer, const CapacityRow& row) {
  Json json{{"planner", row.planner != nullptr ? Json(row.planner->name) : Json(nullptr)},
            {"overlap", to_string(row.planner != nullptr ? Overlap::Off : Overlap::On)}};
  put_value(json, answer.tunable, "value", row.capacity.value);
  put_value(json, answer.tunable, "beyond", row.capacity.beyond);
  json["utilization"] = row.there ? Json(row.there->utilization) : Json(nullptr);
  json["wcet_growth"] = row.there ? scaling_json(row.there->scaling) : Json(nullptr);
  Json holes = Json::array();
  for (const Hole& hole : row.capacity.holes) {
    Json entry = Json::object();
    put_value(entry, answer.tunable, "from", hole.from);
    put_value(entry, answer.tunable, "to", hole.to);
    holes.push_back(std::move(entry));
  }
  json["holes"] = std::move(holes);
  json["tried"] = row.capacity.tried;
  json["curve"] = curve_json(answer, row);
  return json;
}

}  // namespace

Json capacity_json(const CapacityAnswer& answer) {
  Json json{{"schema_version", 1},
            {"quantity", to_string(answer.tunable.kind)},
            {"name", answer.tunable.name.empty() ? Json(nullptr) : Json(answer.tunable.name)},
            {"task", answer.tunable.task.empty() ? Json(nullptr) : Json(answer.tunable.task)},
            {"wanted", word(answer.wanted)},
            {"policy", to_string(answer.tasks.policy)},
            {"preemption", to_string(answer.tasks.preemption)},
            {"arrivals", to_string(answer.tasks.arrivals)}};
  put_value(json, answer.tunable, "now", answer.tunable.value);
  json["planners"] = Json::array();
  for (const CapacityRow& row : answer.rows) json["planners"].push_back(row_json(answer, row));
  json["assumption"] = assumption();
  return json;
}

std::string capacity_text(const CapacityAnswer& answer) {
  const auto text_of = [&](std::int64_t value) { return value_text(answer.tunable, value); };
  programs::Table table({"planner", std::string(word(answer.wanted)), "no more at", "utilization", "tried"});
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
  return fmt::format("{} {} with which every deadline is guaranteed ({}; now {})\n\n{}{}{}\n{}\n", word(answer.wanted),
                     name_of(answer.tunable), discipline(answer.tasks), text_of(answer.tunable.value), table.text(),
                     notes.empty() ? "" : "\n", notes, assumption());
}

}  // namespace tutti::internal
