#include "model/batch/batch_fields.hpp"

#include <cctype>

namespace tutti::internal {

SizeSpec Form<SizeSpec>::read(Reader&, const Node& node, const FieldRules&) {
  const std::string& text = read_text(node);
  if (const std::size_t of = text.find("% of "); of != std::string::npos) {
    static_cast<void>(value_at(node.place, parse_percentage(text.substr(0, of), Bytes{0})));
    return {text.substr(of + 5), text.substr(0, of)};
  }
  const bool is_word = !text.empty() && (std::isalpha(static_cast<unsigned char>(text[0])) != 0 || text[0] == '_');
  return is_word ? SizeSpec(text, "") : SizeSpec(read_bytes(node));
}

Node Form<SizeSpec>::write(const SizeSpec& size) {
  if (size.parameter.empty()) return scalar_node(to_string(size.bytes));
  return scalar_node(size.percent.empty() ? size.parameter : size.percent + "% of " + size.parameter);
}

Merging Form<Merging>::read(Reader&, const Node& node, const FieldRules&) {
  if (node.kind == Node::Kind::Scalar && node.text == to_string(Merging::Transitive)) return Merging::Transitive;
  return read_switch(node) ? Merging::On : Merging::Off;
}

Node Form<Merging>::write(Merging merging) { return scalar_node(std::string(to_string(merging))); }

std::string Form<SizeSpec>::schema(const FieldRules& rules) {
  return schema_of_any(
      std::array{Form<Bytes>::schema(rules), schema_of_text("^([A-Za-z_].*|([0-9]+\\.?[0-9]*|\\.[0-9]+)% of .+)$")});
}

std::string Form<Merging>::schema(const FieldRules&) {
  constexpr std::array<std::string_view, 5> words{"on", "off", "true", "false", to_string(Merging::Transitive)};
  return schema_of_words(words);
}

}  // namespace tutti::internal
