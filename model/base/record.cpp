#include "model/base/record.hpp"

#include <array>
#include <cmath>

#include "model/base/joined.hpp"
#include "model/base/suggestion.hpp"

namespace tutti::internal {
namespace {

std::string joined_words(std::span<const std::string_view> words) {
  return joined(std::vector<std::string>(words.begin(), words.end()));
}

/// As `is_name`.
constexpr std::string_view kNamePattern = "^[A-Za-z0-9_.-]{1,128}$";

/// A text of this program as a JSON string.
std::string json_text(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    json += c;
  }
  return json + '"';
}

}  // namespace

std::vector<std::string> refuse_unknown_keys(Reader& reader, const Node& map, std::string_view what,
                                             std::span<const std::string_view> known,
                                             std::span<const std::string_view> aliases) {
  if (map.kind != Node::Kind::Map)
    fail(map.place, fmt::format("{} is a map with the keys {}", what, joined_words(known)));
  std::vector<std::string> meant;
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    const std::string& key = map.keys[i].first;
    if (std::ranges::count(known, key) + std::ranges::count(aliases, key) > 0) continue;
    const auto guess = nearest_word(key, known);
    if (guess) meant.emplace_back(*guess);
    const std::string remedy =
        guess ? fmt::format("did you mean '{}'?", *guess) : fmt::format("the keys here are {}", joined_words(known));
    reader.attempt([&] { fail(map.keys[i].second, fmt::format("unknown key '{}' in {}; {}", key, what, remedy)); });
  }
  return meant;
}

std::string word_sentence(std::string_view text, std::string_view what, std::span<const std::string_view> words) {
  return fmt::format("'{:.80}' is no {};{} write one of {}", text, what, suggestion(text, words), joined_words(words));
}

void check_number(double value, const FieldRules& rules, Faults& faults, const std::string& path) {
  if (value >= rules.least && value <= rules.most) return;
  faults.add(
      path, fmt::format("{:g} is not possible here; write a number from {:g} to {:g}", value, rules.least, rules.most));
}

void check_word(const std::string& text, const FieldRules& rules, Faults& faults, const std::string& path) {
  if (!rules.words.empty()) {
    if (!std::ranges::count(rules.words, text)) faults.add(path, word_sentence(text, rules.key, rules.words));
    return;
  }
  if (rules.any_text || (text.empty() && !rules.required) || is_name(text)) return;
  faults.add(path, name_sentence(text));
}

std::string schema_of_text(std::string_view pattern) {
  const std::string rule = pattern.empty() ? "" : ", \"pattern\": " + json_text(pattern);
  return R"({"type": ["string", "number", "boolean"])" + rule + "}";
}

std::string schema_of_quantity(const std::string& pattern) {
  const std::string rule = json_text("^(" + pattern + R"(|0+\.?0*|\.0+)$)");
  return R"({"type": ["string", "number"], "pattern": )" + rule + R"(, "minimum": 0, "maximum": 0})";
}

std::string schema_of_number(const FieldRules& rules, bool whole) {
  std::string text = whole ? R"({"type": "integer")" : R"({"type": "number")";
  if (std::isfinite(rules.least)) text += R"(, "minimum": )" + number_text(rules.least);
  if (std::isfinite(rules.most)) text += R"(, "maximum": )" + number_text(rules.most);
  return text + "}";
}

std::string schema_of_words(std::span<const std::string_view> words) {
  std::vector<std::string> values;
  for (const std::string_view word : words) values.push_back(json_text(word));
  for (const std::string_view boolean : {"true", "false"})
    if (std::ranges::count(words, boolean) > 0) values.emplace_back(boolean);
  return R"({"enum": [)" + joined(values) + "]}";
}

std::string schema_of_name() { return schema_of_text(kNamePattern); }

std::string schema_of_list(const std::string& items) { return R"({"type": "array", "items": )" + items + "}"; }

std::string schema_of_map(const std::string& values) {
  return R"({"type": "object", "propertyNames": {"pattern": )" + json_text(kNamePattern) +
         R"(}, "additionalProperties": )" + values + "}";
}

std::string schema_of_any(std::span<const std::string> forms) {
  return R"({"anyOf": [)" + joined(std::vector<std::string>(forms.begin(), forms.end())) + "]}";
}

std::string schema_of_keys(std::span<const KeySchema> keys, std::string_view title) {
  const auto requires_key = [](std::string_view key) { return R"({"required": [)" + json_text(key) + "]}"; };
  std::vector<std::string> properties, required, all_of;
  if (!title.empty()) {
    properties.emplace_back(R"("version": {"enum": [1, "1"]})");
    required.push_back(json_text("version"));
  }
  for (const KeySchema& row : keys) {
    properties.push_back(json_text(row.key) + ": " + row.schema);
    if (!row.alias.empty()) {
      properties.push_back(json_text(row.alias) + ": " + row.schema);
      all_of.push_back(R"({"not": {"required": [)" + json_text(row.key) + ", " + json_text(row.alias) + "]}}");
    }
    if (!row.rules.required) continue;
    if (row.rules.unless.empty())
      required.push_back(json_text(row.key));
    else
      all_of.push_back(schema_of_any(std::array{requires_key(row.key), requires_key(row.rules.unless)}));
  }
  std::string text = "{";
  if (!title.empty())
    text += R"("$schema": "http://json-schema.org/draft-07/schema#", "title": )" + json_text(title) + ", ";
  text += R"("type": "object", "properties": {)" + joined(properties) + R"(}, "additionalProperties": false)";
  if (!required.empty()) text += R"(, "required": [)" + joined(required) + "]";
  if (!all_of.empty()) text += R"(, "allOf": [)" + joined(all_of) + "]";
  return text + "}";
}

Node scalar_node(std::string text) {
  Node node;
  node.kind = Node::Kind::Scalar;
  node.text = std::move(text);
  return node;
}

std::string number_text(double value) { return fmt::format("{}", value); }

}  // namespace tutti::internal
