#include "apps/tutti/reports/remedies_report.hpp"

#include <fmt/format.h>

#include "sched/whatif/capacity.hpp"

namespace tutti::internal {
namespace {

Json word_or_null(const std::string& word) { return word.empty() ? Json(nullptr) : Json(word); }

}  // namespace

void put_value(Json& json, const TunableParameter& tunable, const std::string& key, std::optional<std::int64_t> value) {
  switch (unit_of(tunable.kind)) {
    case TunableUnit::Bytes: json[key + "_bytes"] = value ? Json(*value) : Json(nullptr); break;
    case TunableUnit::Nanoseconds: json[key + "_ms"] = value ? Json(to_ms(Duration{*value})) : Json(nullptr); break;
    case TunableUnit::Millionths: json[key] = value ? Json(static_cast<double>(*value) / 1e6) : Json(nullptr); break;
    case TunableUnit::Word: json[key] = value ? Json(value_text(tunable, *value)) : Json(nullptr); break;
  }
}

std::string name_of(const TunableParameter& tunable) {
  switch (tunable.kind) {
    case TunableKind::Parameter: return fmt::format("'{}'", tunable.name);
    case TunableKind::Size: return fmt::format("size of '{}' in '{}'", tunable.name, tunable.task);
    case TunableKind::Chunk: return "staging chunk of the machine";
    case TunableKind::RelativeMargin: return "relative margin of the machine";
    case TunableKind::AbsoluteMargin: return "absolute margin of the machine";
    case TunableKind::Cut: return tunable.name.empty() ? "cut" : fmt::format("{}, cut", tunable.name);
    case TunableKind::Preemption:
    case TunableKind::Policy:
    case TunableKind::Overlap: return std::string(to_string(tunable.kind));
    default: return fmt::format("{} of '{}'", to_string(tunable.kind), tunable.task);
  }
}

Json scaling_json(const std::optional<std::int64_t>& scaling) {
  return scaling ? Json(static_cast<double>(*scaling) / kScalingOne) : Json(nullptr);
}

Json remedies_json(const Remedies& remedies) {
  Json list = Json::array();
  for (const Remedy& remedy : remedies.remedies) {
    const TunableParameter& tunable = remedy.tunable;
    Json json{{"quantity", to_string(tunable.kind)},
              {"task", word_or_null(tunable.task)},
              {"name", word_or_null(tunable.name)},
              {"line", tunable.place.line > 0 ? Json(tunable.place.line) : Json(nullptr)}};
    const bool has_none = tunable.kind == TunableKind::Cut && tunable.value == 0;
    put_value(json, tunable, "from", has_none ? std::nullopt : std::optional(tunable.value));
    put_value(json, tunable, "to", remedy.to);
    json["relative"] = remedy.relative ? Json(*remedy.relative) : Json(nullptr);
    list.push_back(std::move(json));
  }
  return list;
}

std::string remedies_text(const Remedies& remedies) {
  std::string text;
  for (const Remedy& remedy : remedies.remedies) {
    text += fmt::format("it would hold with: {} {} instead of {}{}\n", name_of(remedy.tunable),
                        value_text(remedy.tunable, remedy.to), value_text(remedy.tunable, remedy.tunable.value),
                        remedy.relative ? fmt::format(" ({:+.3g} %)", 100 * *remedy.relative) : "");
  }
  if (remedies.remedies.empty() && remedies.left_out.empty())
    text +=
        "no single change of a size, period, deadline, wcet, margin, preemption, overlap, cut or GPU was found that "
        "makes it hold\n";
  if (remedies.critical_scaling_factor)
    text += fmt::format("it would hold with: all worst-case times at {:.2f} % of what they are\n",
                        100.0 * static_cast<double>(*remedies.critical_scaling_factor) / kScalingOne);
  if (!remedies.left_out.empty()) text += fmt::format("note: {}\n", remedies.left_out);
  return text;
}

}  // namespace tutti::internal
