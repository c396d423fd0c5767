#pragma once
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/base/document.hpp"
#include "model/base/faults.hpp"
#include "model/base/units.hpp"

/// Field tables: one row a field, from which a plain struct is read, checked and written.
///
///     template <>
///     struct Record<MemberSpec> {
///       static constexpr std::string_view what = "a member";  // in messages
///       static constexpr std::tuple fields{
///           Field{"from", &MemberSpec::from}.required(),
///           Field{"cost", &MemberSpec::cost}.within(1e-3, 1e3),
///       };
///     };
///
/// To add a field, write the member and its row. A type whose form in a file is no map of its fields has a `Form` of
/// its own: `read`, `write`, `check` and `schema`.
///
/// A result has the same table, from which its JSON and the schema of that follow (`apps/tutti/formats/record_json`).
/// Each of its rows has a meaning; the unit is the end of the key, and a number is not negative where its row does not
/// say so:
///
///     Field{"finish_ms", &MissOutput::finish}.means("end of the job, from the start of the run"),
namespace tutti::internal {

/// What holds for a field beside its type.
struct FieldRules {
  std::string_view key = {};  ///< of the field
  bool required = false;
  std::string_view unless = {};                             ///< required only where this key is not there
  bool any_text = false;                                    ///< of words: any text; otherwise a name
  std::span<const std::string_view> words = {};             ///< of words: none but these
  Rounding rounding = Rounding::Up;                         ///< of times
  double least = -std::numeric_limits<double>::infinity();  ///< of numbers
  double most = std::numeric_limits<double>::infinity();
  // Of results:
  std::string_view meaning = {};  ///< what it is, without its unit
  std::string_view since = {};    ///< the version that has it first; empty: 0.1.0
  bool may_be_negative = false;   ///< of numbers and times
  bool if_any = false;            ///< of optional values: the key is left out where there is none; otherwise it is null
};

/// One row of a field table.
template <class Struct, class Value>
struct Field {
  std::string_view key;
  Value Struct::*member;
  std::string_view alias = {};  ///< an older key that is still read
  FieldRules rules = {};

  [[nodiscard]] constexpr Field required() const {
    return with([](FieldRules& all) { all.required = true; });
  }
  /// @param other  key of a field before this one
  [[nodiscard]] constexpr Field required_unless(std::string_view other) const {
    return with([&](FieldRules& all) { all.required = true, all.unless = other; });
  }
  [[nodiscard]] constexpr Field any_text() const {
    return with([](FieldRules& all) { all.any_text = true; });
  }
  /// @param words  outlive the table
  [[nodiscard]] constexpr Field one_of(std::span<const std::string_view> words) const {
    return with([&](FieldRules& all) { all.words = words; });
  }
  [[nodiscard]] constexpr Field rounded_down() const {
    return with([](FieldRules& all) { all.rounding = Rounding::Down; });
  }
  [[nodiscard]] constexpr Field within(double least, double most) const {
    return with([&](FieldRules& all) { all.least = least, all.most = most; });
  }
  [[nodiscard]] constexpr Field means(std::string_view meaning) const {
    return with([&](FieldRules& all) { all.meaning = meaning; });
  }
  [[nodiscard]] constexpr Field since(std::string_view version) const {
    return with([&](FieldRules& all) { all.since = version; });
  }
  [[nodiscard]] constexpr Field may_be_negative() const {
    return with([](FieldRules& all) { all.may_be_negative = true; });
  }
  [[nodiscard]] constexpr Field if_any() const {
    return with([](FieldRules& all) { all.if_any = true; });
  }
  [[nodiscard]] constexpr Field formerly(std::string_view older_key) const {
    Field field = *this;
    field.alias = older_key;
    return field;
  }
  [[nodiscard]] constexpr FieldRules keyed_rules() const {
    FieldRules keyed = rules;
    keyed.key = key;
    return keyed;
  }

 private:
  template <class Change>
  [[nodiscard]] constexpr Field with(Change change) const {
    Field field = *this;
    change(field.rules);
    return field;
  }
};
template <class Struct, class Value>
Field(const char*, Value Struct::*) -> Field<Struct, Value>;

/// The field table of a struct: `what`, `fields`, and `is_file = true` where its map is a whole file (with `version`).
template <class T>
struct Record;
/// The words of an enumeration: `what`, and `values`, which `to_string` spells.
template <class T>
struct Words;
/// The form of a type in a file.
template <class T>
struct Form;

template <class T>
concept IsRecord = requires {
  Record<T>::fields;
};
template <class T>
concept HasWords = requires {
  Words<T>::values;
};

/// Collects the faults of one reading. A value that is at fault keeps its default, and its place in a list: the others
/// are checked, too (`Faults`).
class Reader {
 public:
  /// Runs a reader; the fault that ends it is kept.
  template <class Read>
  void attempt(Read read) {
    try {
      read();
    } catch (InputError& caught) {
      faults_.add(std::move(caught.error));
    }
  }
  [[nodiscard]] const Faults& faults() const { return faults_; }

 private:
  Faults faults_;
};

/// Refuses keys of a map that are not known, and what is no map.
/// @param aliases  older keys, which are read and not offered
/// @return  keys that unknown ones are a misspelling of.
std::vector<std::string> refuse_unknown_keys(Reader& reader, const Node& map, std::string_view what,
                                             std::span<const std::string_view> known,
                                             std::span<const std::string_view> aliases = {});
/// A sentence about a word that is none of these.
[[nodiscard]] std::string word_sentence(std::string_view text, std::string_view what,
                                        std::span<const std::string_view> words);
/// A fault for a number outside its range, and for a word that is no name, or none of the field's.
void check_number(double value, const FieldRules& rules, Faults& faults, const std::string& path);
void check_word(const std::string& text, const FieldRules& rules, Faults& faults, const std::string& path);

[[nodiscard]] Node scalar_node(std::string text);
[[nodiscard]] std::string number_text(double value);

/// Pieces of JSON Schema (draft-07), as JSON texts: what a reader takes, as far as a schema can say it. A plain YAML
/// scalar may be a number or a boolean for others; words and names are taken as texts here, so schemas allow both.
[[nodiscard]] std::string schema_of_text(std::string_view pattern = {});
/// Of a quantity that may be zero, which needs no unit.
[[nodiscard]] std::string schema_of_quantity(const std::string& pattern);
[[nodiscard]] std::string schema_of_number(const FieldRules& rules, bool whole);
[[nodiscard]] std::string schema_of_words(std::span<const std::string_view> words);
[[nodiscard]] std::string schema_of_name();
[[nodiscard]] std::string schema_of_list(const std::string& items);
[[nodiscard]] std::string schema_of_map(const std::string& values);
[[nodiscard]] std::string schema_of_any(std::span<const std::string> forms);
/// One key of a map.
struct KeySchema {
  std::string_view key, alias;
  FieldRules rules;
  std::string schema;
};
/// @param title  of a whole file, which has a version, too; empty: a map inside one
[[nodiscard]] std::string schema_of_keys(std::span<const KeySchema> keys, std::string_view title = {});

template <class T, class Function>
void for_each_field(Function function) {
  std::apply([&](const auto&... row) { (function(row), ...); }, Record<T>::fields);
}

[[nodiscard]] inline bool is_required(const FieldRules& rules, const Node& map) {
  return rules.required && (rules.unless.empty() || map.find(rules.unless) == nullptr);
}

/// Reads the fields of a map into a struct; unknown and missing keys are faults.
template <class T>
void read_fields(Reader& reader, const Node& map, std::string_view what, T& value) {
  std::vector<std::string_view> known;
  if constexpr (requires { Record<T>::is_file; }) known.emplace_back("version");
  std::vector<std::string_view> aliases;
  for_each_field<T>([&](const auto& row) {
    known.push_back(row.key);
    if (!row.alias.empty()) aliases.push_back(row.alias);
  });
  const std::vector<std::string> meant = refuse_unknown_keys(reader, map, what, known, aliases);
  for_each_field<T>([&](const auto& row) {
    const Node* node = map.find(row.key);
    if (const Node* old = row.alias.empty() ? nullptr : map.find(row.alias)) {
      if (node != nullptr)
        reader.attempt([&] {
          fail(old->place, fmt::format("'{}' is an older name of '{}'; write one of them", row.alias, row.key));
        });
      node = old;
    }
    if (node == nullptr) {
      if (is_required(row.rules, map) && std::find(meant.begin(), meant.end(), row.key) == meant.end())
        reader.attempt([&] { fail(map.place, fmt::format("'{}' is missing in {}; add it", row.key, what)); });
      return;
    }
    reader.attempt([&] {
      using Value = std::remove_reference_t<decltype(value.*row.member)>;
      value.*row.member = Form<Value>::read(reader, *node, row.keyed_rules());
    });
  });
}

/// Checks the ranges and names of a struct's fields.
template <class T>
void check_fields(const T& value, Faults& faults, const std::string& path = "") {
  for_each_field<T>([&](const auto& row) {
    using Value = std::remove_cvref_t<decltype(value.*row.member)>;
    Form<Value>::check(value.*row.member, row.keyed_rules(), faults, path_of(path, row.key));
  });
}

/// Writes the fields of a struct that differ from their defaults, and those that must be there.
template <class T>
void write_fields(const T& value, Node& map) {
  const T defaults{};
  for_each_field<T>([&](const auto& row) {
    if (!is_required(row.rules, map) && value.*row.member == defaults.*row.member) return;
    using Value = std::remove_cvref_t<decltype(value.*row.member)>;
    map.add(row.key, Form<Value>::write(value.*row.member));
  });
}

/// The keys of a struct's fields with their schemas.
template <class T>
std::vector<KeySchema> key_schemas() {
  std::vector<KeySchema> keys;
  for_each_field<T>([&](const auto& row) {
    using Value = std::remove_cvref_t<decltype(std::declval<T>().*row.member)>;
    keys.push_back({row.key, row.alias, row.rules, Form<Value>::schema(row.keyed_rules())});
  });
  return keys;
}

template <IsRecord T>
struct Form<T> {
  static T read(Reader& reader, const Node& node, const FieldRules&) {
    T value{};
    read_fields(reader, node, Record<T>::what, value);
    if constexpr (requires { value.place = node.place; }) value.place = node.place;
    return value;
  }
  static Node write(const T& value) {
    Node map;
    map.kind = Node::Kind::Map;
    write_fields(value, map);
    return map;
  }
  static void check(const T& value, const FieldRules&, Faults& faults, const std::string& path) {
    check_fields(value, faults, path);
  }
  static std::string schema(const FieldRules&) { return schema_of_keys(key_schemas<T>()); }
};

/// A form without ranges.
struct Unchecked {
  template <class T>
  static void check(const T&, const FieldRules&, Faults&, const std::string&) {}
};

template <>
struct Form<Bytes> : Unchecked {
  static Bytes read(Reader&, const Node& node, const FieldRules&) { return read_bytes(node); }
  static Node write(Bytes value) { return scalar_node(to_string(value)); }
  static std::string schema(const FieldRules&) { return schema_of_quantity(pattern_of_bytes()); }
};

template <>
struct Form<Duration> : Unchecked {
  static Duration read(Reader&, const Node& node, const FieldRules& rules) {
    return read_duration(node, rules.rounding);
  }
  static Node write(Duration value) { return scalar_node(to_string(value)); }
  static std::string schema(const FieldRules&) { return schema_of_quantity(pattern_of_duration()); }
};

template <>
struct Form<GBps> : Unchecked {
  static GBps read(Reader&, const Node& node, const FieldRules&) { return read_rate(node); }
  static Node write(GBps value) { return scalar_node(to_string(value)); }
  static std::string schema(const FieldRules&) { return schema_of_text("^" + pattern_of_rate() + "$"); }
};

template <>
struct Form<double> {
  static double read(Reader&, const Node& node, const FieldRules& rules) {
    return read_number(node, rules.least, rules.most);
  }
  static Node write(double value) { return scalar_node(number_text(value)); }
  static std::string schema(const FieldRules& rules) { return schema_of_number(rules, false); }
  static void check(double value, const FieldRules& rules, Faults& faults, const std::string& path) {
    check_number(value, rules, faults, path);
  }
};

template <>
struct Form<int> {
  static int read(Reader&, const Node& node, const FieldRules& rules) {
    return read_whole(node, static_cast<int>(std::max(rules.least, -2147483648.0)),
                      static_cast<int>(std::min(rules.most, 2147483647.0)));
  }
  static Node write(int value) { return scalar_node(std::to_string(value)); }
  static std::string schema(const FieldRules& rules) { return schema_of_number(rules, true); }
  static void check(int value, const FieldRules& rules, Faults& faults, const std::string& path) {
    check_number(value, rules, faults, path);
  }
};

template <>
struct Form<bool> : Unchecked {
  static bool read(Reader&, const Node& node, const FieldRules& rules) {
    const std::string& text = read_text(node);
    if (text != "true" && text != "false")
      fail(node.place, fmt::format("'{}' is '{:.80}'; write true or false", rules.key, text));
    return text == "true";
  }
  static Node write(bool value) { return scalar_node(value ? "true" : "false"); }
  static std::string schema(const FieldRules&) { return R"({"type": "boolean"})"; }
};

template <>
struct Form<std::string> {
  static std::string read(Reader&, const Node& node, const FieldRules& rules) {
    if (rules.words.empty()) return rules.any_text ? read_text(node) : read_id(node);
    const std::string& text = read_text(node);
    if (!std::ranges::count(rules.words, text)) fail(node.place, word_sentence(text, rules.key, rules.words));
    return text;
  }
  static Node write(const std::string& value) { return scalar_node(value); }
  static std::string schema(const FieldRules& rules) {
    if (!rules.words.empty()) return schema_of_words(rules.words);
    return rules.any_text ? schema_of_text() : schema_of_name();
  }
  static void check(const std::string& value, const FieldRules& rules, Faults& faults, const std::string& path) {
    check_word(value, rules, faults, path);
  }
};

template <HasWords T>
struct Form<T> : Unchecked {
  static T read(Reader&, const Node& node, const FieldRules&) {
    std::vector<std::string_view> words;
    for (const T value : Words<T>::values) {
      words.push_back(to_string(value));
      if (node.kind == Node::Kind::Scalar && words.back() == node.text) return value;
    }
    fail(node.place, word_sentence(read_text(node), Words<T>::what, words));
  }
  static Node write(T value) { return scalar_node(std::string(to_string(value))); }
  static std::string schema(const FieldRules&) {
    std::vector<std::string_view> words;
    for (const T value : Words<T>::values) words.push_back(to_string(value));
    return schema_of_words(words);
  }
};

template <class T>
struct Form<std::optional<T>> {
  static std::optional<T> read(Reader& reader, const Node& node, const FieldRules& rules) {
    return Form<T>::read(reader, node, rules);
  }
  static Node write(const std::optional<T>& value) { return Form<T>::write(*value); }
  static std::string schema(const FieldRules& rules) { return Form<T>::schema(rules); }
  static void check(const std::optional<T>& value, const FieldRules& rules, Faults& faults, const std::string& path) {
    if (value) Form<T>::check(*value, rules, faults, path);
  }
};

template <class T>
struct Form<std::vector<T>> {
  static std::vector<T> read(Reader& reader, const Node& node, const FieldRules& rules) {
    std::vector<T> list;
    for (const Node& item : read_sequence(node, fmt::format("'{}'", rules.key))) {
      list.emplace_back();
      reader.attempt([&] { list.back() = Form<T>::read(reader, item, rules); });
    }
    return list;
  }
  static Node write(const std::vector<T>& list) {
    Node node;
    node.kind = Node::Kind::Sequence;
    for (const T& item : list) node.items.push_back(Form<T>::write(item));
    return node;
  }
  static std::string schema(const FieldRules& rules) { return schema_of_list(Form<T>::schema(rules)); }
  static void check(const std::vector<T>& list, const FieldRules& rules, Faults& faults, const std::string& path) {
    for (std::size_t i = 0; i < list.size(); ++i) Form<T>::check(list[i], rules, faults, path_of(path, i));
  }
};

/// Values by name, in the order of the file.
template <class T>
struct Form<std::vector<std::pair<std::string, T>>> {
  using Named = std::vector<std::pair<std::string, T>>;

  static Named read(Reader& reader, const Node& node, const FieldRules& rules) {
    if (node.kind != Node::Kind::Map) fail(node.place, fmt::format("'{}' is a map; write {{name: value}}", rules.key));
    Named values;
    for (std::size_t i = 0; i < node.items.size(); ++i)
      reader.attempt([&] {
        values.emplace_back(read_id(node.key(i)), T{});
        values.back().second = Form<T>::read(reader, node.items[i], rules);
      });
    return values;
  }
  static Node write(const Named& values) {
    Node map;
    map.kind = Node::Kind::Map;
    for (const auto& [name, value] : values) map.add(name, Form<T>::write(value));
    return map;
  }
  static std::string schema(const FieldRules& rules) { return schema_of_map(Form<T>::schema(rules)); }
  static void check(const Named& values, const FieldRules& rules, Faults& faults, const std::string& path) {
    for (const auto& [name, value] : values) Form<T>::check(value, rules, faults, path_of(path, name));
  }
};

/// Values by name, sorted.
template <class T>
struct Form<std::map<std::string, T, std::less<>>> {
  using Named = std::map<std::string, T, std::less<>>;
  using List = std::vector<std::pair<std::string, T>>;

  static Named read(Reader& reader, const Node& node, const FieldRules& rules) {
    const List list = Form<List>::read(reader, node, rules);
    return Named(list.begin(), list.end());
  }
  static Node write(const Named& values) { return Form<List>::write(List(values.begin(), values.end())); }
  static std::string schema(const FieldRules& rules) { return Form<List>::schema(rules); }
  static void check(const Named& values, const FieldRules& rules, Faults& faults, const std::string& path) {
    Form<List>::check(List(values.begin(), values.end()), rules, faults, path);
  }
};

/// Reads a struct from its node.
/// @errors InvalidInput with all faults, by their place
template <class T>
[[nodiscard]] Expected<T> read_record(const Node& node) {
  Reader reader;
  std::optional<T> value;
  reader.attempt([&] { value = Form<T>::read(reader, node, {}); });
  if (!reader.faults().none()) return tl::unexpected(sorted_by_place(reader.faults().error()));
  return *std::move(value);
}

/// Reads a spec from a document and compiles it, also where some of it was not read well; each fault gets the place of
/// its field.
/// @param compile  (Spec, Faults) -> Expected<...>; the faults are those of reading, and an error has them all
/// @param root     key of the map that the fields of its faults start from; empty: the document itself
template <class Spec, class Compile>
[[nodiscard]] auto compiled(const Node& document, Compile compile, const std::string& root = {}) {
  Reader reader;
  Spec spec{};
  reader.attempt([&] { spec = Form<Spec>::read(reader, document, {}); });
  return compile(std::move(spec), Faults(reader.faults(), document, root)).map_error([&](Error error) {
    return at_places(std::move(error), *find_field(document, root).node);
  });
}

/// A struct as a node.
template <class T>
[[nodiscard]] Node written(const T& value) {
  return Form<T>::write(value);
}

/// The JSON Schema of a file with the fields of a struct.
template <class T>
[[nodiscard]] std::string file_schema() {
  return schema_of_keys(key_schemas<T>(), Record<T>::what);
}

/// The text of a file: its version and the fields of a struct.
template <class T>
[[nodiscard]] std::string file_text(const T& value) {
  Node file;
  file.kind = Node::Kind::Map;
  file.add("version", scalar_node("1"));
  write_fields(value, file);
  return document_text(file);
}

}  // namespace tutti::internal
