#pragma once
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "model/base/record.hpp"
#include "model/base/units.hpp"

/// Results as JSON, and the schema of that JSON: both follow from field tables (`model/base/record.hpp`), so a command
/// fills a struct and says nothing of keys.
///
/// A type whose JSON is no object of its fields has a `JsonForm` of its own: `json`, which writes a value, and
/// `schema`, which describes all that it writes. One whose keys depend on the value has `put` and `add_schema` in their
/// place.
namespace tutti::internal {

using Json = nlohmann::ordered_json;

template <class T>
struct JsonForm;

/// A result as JSON.
template <class T>
[[nodiscard]] Json json_of(const T& value) {
  return JsonForm<T>::json(value, {});
}

/// A text as the value of a key that has none where it is empty.
[[nodiscard]] inline std::optional<std::string> text_if_any(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

/// The version of an output's keys; it rises where one is renamed.
struct SchemaVersion {};

/// "ms" of "start_ms": the unit that a key names; empty: none.
[[nodiscard]] constexpr std::string_view unit_of_key(std::string_view key) {
  for (const std::string_view unit : {"ms", "us", "ns", "bytes", "gbps"})
    if (key == unit || (key.ends_with(unit) && key[key.size() - unit.size() - 1] == '_')) return unit;
  return {};
}

/// What is in lists and optional values.
template <class T>
struct Inside {
  using Type = T;
};
template <class T>
struct Inside<std::optional<T>> : Inside<T> {};
template <class T>
struct Inside<std::vector<T>> : Inside<T> {};

/// Whether the key of a value names the unit that the value has.
template <class T>
[[nodiscard]] constexpr bool names_unit(std::string_view key) {
  using Value = typename Inside<T>::Type;
  const std::string_view unit = unit_of_key(key);
  if constexpr (std::same_as<Value, Duration>) return unit == "ms" || unit == "us" || unit == "ns";
  if constexpr (std::same_as<Value, Bytes>) return unit == "bytes";
  if constexpr (std::same_as<Value, GBps>) return unit == "gbps";
  return true;
}

/// Whether every field of a result has a meaning, and those with a unit name it.
template <class T>
[[nodiscard]] constexpr bool says_all() {
  return std::apply(
      [](const auto&... row) {
        return ((!row.rules.meaning.empty() &&
                 names_unit<std::remove_cvref_t<decltype(std::declval<T>().*row.member)>>(row.key)) &&
                ...);
      },
      Record<T>::fields);
}

/// A time in the unit of its key.
[[nodiscard]] Json time_json(Duration time, std::string_view key);

[[nodiscard]] Json schema_of_result_number(const FieldRules& rules, bool whole);
/// @param words  empty: any text
[[nodiscard]] Json schema_of_result_text(std::span<const std::string_view> words = {});
/// Of values that another schema describes, or null.
[[nodiscard]] Json or_null(Json schema);
/// Of an object without keys, to which keys are added.
[[nodiscard]] Json schema_of_object();
/// Adds a key, with what its row says of it.
void add_key(Json& object, const FieldRules& rules, Json schema);
/// The schema of what a command prints with --json.
/// @param output  name of the schema without "output-"
[[nodiscard]] Json titled_schema(std::string_view output, const Json& object);

template <class T>
[[nodiscard]] Json schema_of_output(std::string_view output) {
  return titled_schema(output, JsonForm<T>::schema({}));
}

template <IsRecord T>
struct JsonForm<T> {
  static_assert(says_all<T>());

  static Json json(const T& value, const FieldRules&) {
    Json object = Json::object();
    for_each_field<T>([&](const auto& row) { put(object, row.keyed_rules(), value.*row.member); });
    return object;
  }
  static Json schema(const FieldRules&) {
    Json object = schema_of_object();
    for_each_field<T>([&](const auto& row) {
      using Form = JsonForm<std::remove_cvref_t<decltype(std::declval<T>().*row.member)>>;
      const FieldRules rules = row.keyed_rules();
      if constexpr (requires { Form::add_schema(object, rules); })
        Form::add_schema(object, rules);
      else if constexpr (requires { typename Form::Inner; })
        add_key(object, rules, rules.if_any ? Form::Inner::schema(rules) : Form::schema(rules));
      else
        add_key(object, rules, Form::schema(rules));
    });
    return object;
  }

 private:
  template <class Value>
  static void put(Json& object, const FieldRules& rules, const Value& value) {
    if constexpr (requires { JsonForm<Value>::put(object, value, rules); })
      JsonForm<Value>::put(object, value, rules);
    else if constexpr (requires { typename JsonForm<Value>::Inner; }) {
      if (value || !rules.if_any) object[std::string(rules.key)] = JsonForm<Value>::json(value, rules);
    } else
      object[std::string(rules.key)] = JsonForm<Value>::json(value, rules);
  }
};

template <>
struct JsonForm<SchemaVersion> {
  static Json json(SchemaVersion, const FieldRules&) { return 1; }
  static Json schema(const FieldRules&) { return {{"type", "integer"}, {"const", 1}}; }
};

template <>
struct JsonForm<Duration> {
  static Json json(Duration value, const FieldRules& rules) { return time_json(value, rules.key); }
  static Json schema(const FieldRules& rules) { return schema_of_result_number(rules, unit_of_key(rules.key) == "ns"); }
};
template <>
struct JsonForm<Bytes> {
  static Json json(Bytes value, const FieldRules&) { return value.count; }
  static Json schema(const FieldRules& rules) { return schema_of_result_number(rules, true); }
};
template <>
struct JsonForm<GBps> {
  static Json json(GBps value, const FieldRules&) { return value.value; }
  static Json schema(const FieldRules& rules) { return schema_of_result_number(rules, false); }
};
template <>
struct JsonForm<double> {
  static Json json(double value, const FieldRules&) { return value; }
  static Json schema(const FieldRules& rules) { return schema_of_result_number(rules, false); }
};
template <>
struct JsonForm<bool> {
  static Json json(bool value, const FieldRules&) { return value; }
  static Json schema(const FieldRules&) { return {{"type", "boolean"}}; }
};
template <std::integral T>
struct JsonForm<T> {
  static Json json(T value, const FieldRules&) { return value; }
  static Json schema(const FieldRules& rules) { return schema_of_result_number(rules, true); }
};
template <>
struct JsonForm<std::string> {
  static Json json(const std::string& value, const FieldRules&) { return value; }
  static Json schema(const FieldRules& rules) { return schema_of_result_text(rules.words); }
};
template <HasWords T>
struct JsonForm<T> {
  static Json json(T value, const FieldRules&) { return to_string(value); }
  static Json schema(const FieldRules& rules) {
    if (!rules.words.empty()) return schema_of_result_text(rules.words);
    std::vector<std::string_view> words;
    for (const T value : Words<T>::values) words.push_back(to_string(value));
    return schema_of_result_text(words);
  }
};

template <class T>
struct JsonForm<std::optional<T>> {
  using Inner = JsonForm<T>;

  static Json json(const std::optional<T>& value, const FieldRules& rules) {
    return value ? Inner::json(*value, rules) : Json(nullptr);
  }
  static Json schema(const FieldRules& rules) { return or_null(Inner::schema(rules)); }
};

template <class T>
struct JsonForm<std::vector<T>> {
  static Json json(const std::vector<T>& list, const FieldRules& rules) {
    Json array = Json::array();
    for (const auto& item : list) array.push_back(JsonForm<T>::json(item, rules));
    return array;
  }
  static Json schema(const FieldRules& rules) { return {{"type", "array"}, {"items", JsonForm<T>::schema(rules)}}; }
};

/// Values by name, in their order.
template <class T>
struct JsonForm<std::vector<std::pair<std::string, T>>> {
  static Json json(const std::vector<std::pair<std::string, T>>& named, const FieldRules& rules) {
    Json object = Json::object();
    for (const auto& [name, value] : named) object[name] = JsonForm<T>::json(value, rules);
    return object;
  }
  static Json schema(const FieldRules& rules) {
    return {{"type", "object"}, {"additionalProperties", JsonForm<T>::schema(rules)}};
  }
};

}  // namespace tutti::internal
