#include "apps/tutti/reports/remedies_report.hpp"

#include <fmt/format.h>

#include "sched/whatif/capacity.hpp"

namespace tutti::internal {
namespace {

constexpr std::string_view ending_of(TunableUnit unit) {
  switch (unit) {
    case TunableUnit::Bytes: return "_bytes";
    case TunableUnit::Nanoseconds: return "_ms";
    case TunableUnit::Millionths:
    case TunableUnit::Word: break;
  }
  return "";
}

/// One of the keys that a quantity's value can have, each of one type.
void add_keys_of_units(Json& object, const FieldRules& rules, bool has_null) {
  Json one_of = Json::array();
  const auto add = [&](TunableUnit unit, const Json& schema) {
    const std::string key = fmt::format("{}{}", rules.key, ending_of(unit));
    FieldRules keyed = rules;
    keyed.key = key;
    keyed.if_any = true;
    add_key(object, keyed, has_null ? or_null(schema) : schema);
    one_of.push_back(Json{{"required", Json::array({key})}});
  };
  add(TunableUnit::Bytes, schema_of_result_number(rules, true));
  add(TunableUnit::Nanoseconds, schema_of_result_number(rules, false));
  Json share_or_word = schema_of_result_number(rules, false);
  share_or_word["type"] = Json::array({"number", "string"});
  add(TunableUnit::Millionths, share_or_word);
  object["allOf"].push_back(Json{{"oneOf", std::move(one_of)}});
}

}  // namespace

TunableValueIfAny::TunableValueIfAny(const TunableParameter& tunable, std::optional<std::int64_t> of_file)
    : unit(unit_of(tunable.kind)),
      value(of_file),
      word(unit == TunableUnit::Word && of_file ? value_text(tunable, *of_file) : "") {}

void JsonForm<TunableValueIfAny>::put(Json& object, const TunableValueIfAny& value, const FieldRules& rules) {
  Json& json = object[fmt::format("{}{}", rules.key, ending_of(value.unit))];
  if (!value.value) return;
  switch (value.unit) {
    case TunableUnit::Bytes: json = *value.value; break;
    case TunableUnit::Nanoseconds: json = to_ms(Duration{*value.value}); break;
    case TunableUnit::Millionths: json = static_cast<double>(*value.value) / 1e6; break;
    case TunableUnit::Word: json = value.word; break;
  }
}
void JsonForm<TunableValueIfAny>::add_schema(Json& object, const FieldRules& rules) {
  add_keys_of_units(object, rules, true);
}
void JsonForm<TunableValue>::put(Json& object, const TunableValue& value, const FieldRules& rules) {
  JsonForm<TunableValueIfAny>::put(object, value, rules);
}
void JsonForm<TunableValue>::add_schema(Json& object, const FieldRules& rules) {
  add_keys_of_units(object, rules, false);
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

std::optional<double> scaling_factor(const std::optional<std::int64_t>& scaling) {
  return scaling ? std::optional(static_cast<double>(*scaling) / kScalingOne) : std::nullopt;
}

std::vector<RemedyOutput> remedies_output(const Remedies& remedies) {
  std::vector<RemedyOutput> list;
  for (const Remedy& remedy : remedies.remedies) {
    const TunableParameter& tunable = remedy.tunable;
    const bool has_none = tunable.kind == TunableKind::Cut && tunable.value == 0;
    RemedyOutput& output = list.emplace_back();
    output.quantity = tunable.kind;
    output.task = text_if_any(tunable.task);
    output.name = text_if_any(tunable.name);
    if (tunable.place.line > 0) output.line = tunable.place.line;
    output.from = {tunable, has_none ? std::nullopt : std::optional(tunable.value)};
    output.to = {tunable, remedy.to};
    output.relative = remedy.relative;
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
