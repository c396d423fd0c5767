#include "model/base/record.hpp"

#include "model/base/joined.hpp"

namespace tutti::internal {
namespace {

std::string joined_words(std::span<const std::string_view> words) {
  return joined(std::vector<std::string>(words.begin(), words.end()));
}

}  // namespace

void refuse_unknown_keys(Reader& reader, const Node& map, std::string_view what,
                         std::span<const std::string_view> known) {
  if (map.kind != Node::Kind::Map)
    fail(map.place, fmt::format("{} is a map with the keys {}", what, joined_words(known)));
  for (const auto& [key, place] : map.keys) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string guess = suggestion(key, known);
    const std::string remedy = guess.empty() ? fmt::format(" the keys here are {}", joined_words(known)) : guess;
    reader.attempt(
        [&, at = place, word = key] { fail(at, fmt::format("unknown key '{}' in {};{}", word, what, remedy)); });
  }
}

void fail_for_word(const Node& node, std::string_view what, std::span<const std::string_view> words) {
  const std::string& text = read_text(node);
  fail(node.place,
       fmt::format("'{:.80}' is no {};{} write one of {}", text, what, suggestion(text, words), joined_words(words)));
}

void check_number(double value, const FieldRules& rules, Faults& faults, const std::string& path) {
  if (value >= rules.least && value <= rules.most) return;
  faults.add(
      path, fmt::format("{:g} is not possible here; write a number from {:g} to {:g}", value, rules.least, rules.most));
}

void check_name(const std::string& text, const FieldRules& rules, Faults& faults, const std::string& path) {
  if (rules.any_text || (text.empty() && !rules.required) || is_name(text)) return;
  faults.add(path, name_sentence(text));
}

Node scalar_node(std::string text) {
  Node node;
  node.kind = Node::Kind::Scalar;
  node.text = std::move(text);
  return node;
}

std::string number_text(double value) { return fmt::format("{}", value); }

}  // namespace tutti::internal
