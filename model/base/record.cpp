#include "model/base/record.hpp"

#include "model/base/joined.hpp"
#include "model/base/suggestion.hpp"

namespace tutti::internal {
namespace {

std::string joined_words(std::span<const std::string_view> words) {
  return joined(std::vector<std::string>(words.begin(), words.end()));
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

Node scalar_node(std::string text) {
  Node node;
  node.kind = Node::Kind::Scalar;
  node.text = std::move(text);
  return node;
}

std::string number_text(double value) { return fmt::format("{}", value); }

}  // namespace tutti::internal
