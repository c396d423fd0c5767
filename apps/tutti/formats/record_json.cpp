#include "apps/tutti/formats/record_json.hpp"

#include <cmath>

#include <fmt/format.h>

namespace tutti::internal {

Json time_json(Duration time, std::string_view key) {
  const std::string_view unit = unit_of_key(key);
  if (unit == "ns") return time.count();
  return unit == "us" ? as_ns(time) / 1e3 : to_ms(time);
}

Json schema_of_result_number(const FieldRules& rules, bool whole) {
  Json schema{{"type", whole ? "integer" : "number"}};
  if (std::isfinite(rules.least))
    schema["minimum"] = rules.least;
  else if (!rules.may_be_negative)
    schema["minimum"] = 0;
  if (std::isfinite(rules.most)) schema["maximum"] = rules.most;
  return schema;
}

Json schema_of_result_text(std::span<const std::string_view> words) {
  Json schema{{"type", "string"}};
  if (!words.empty()) schema["enum"] = words;
  return schema;
}

Json or_null(Json schema) {
  Json& type = schema["type"];
  if (!type.is_array()) type = Json::array({type});
  type.push_back("null");
  if (schema.contains("enum")) schema["enum"].push_back(nullptr);
  return schema;
}

Json schema_of_object() {
  return {
      {"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}, {"required", Json::array()}};
}

void add_key(Json& object, const FieldRules& rules, Json schema) {
  const std::string_view unit = unit_of_key(rules.key);
  std::string meaning(rules.meaning);
  if (!unit.empty()) meaning += fmt::format("; {}", unit == "gbps" ? "GB/s" : unit);
  if (!rules.since.empty()) meaning += fmt::format("; since {}", rules.since);
  Json described{{"description", std::move(meaning)}};
  described.update(schema);
  object["properties"][std::string(rules.key)] = std::move(described);
  if (!rules.if_any) object["required"].push_back(rules.key);
}

Json titled_schema(std::string_view output, const Json& object) {
  Json schema{{"$schema", "http://json-schema.org/draft-07/schema#"},
              {"title", fmt::format("what {} prints with --json", output)}};
  schema.update(object);
  return schema;
}

}  // namespace tutti::internal
