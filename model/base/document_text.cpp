#include <algorithm>

#include "model/base/document.hpp"

namespace tutti::internal {
namespace {

constexpr std::size_t kWidth = 160;

bool is_container(const Node& node) { return node.kind == Node::Kind::Sequence || node.kind == Node::Kind::Map; }
bool holds_containers(const Node& node) { return std::ranges::any_of(node.items, is_container); }

std::string scalar_text(const std::string& text) {
  const auto stands_bare = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-' || c == ' ' || c == '/' || c == '%';
  };
  const bool bare = !text.empty() && std::ranges::all_of(text, stands_bare) && text.front() != '-' &&
                    text.front() != ' ' && text.back() != ' ' && text.front() != '%' && text != "null" &&
                    text != "Null" && text != "NULL";
  if (bare) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + '"';
}

/// A node on one line.
std::string line_text(const Node& node) {
  if (!is_container(node)) return scalar_text(node.text);
  const bool map = node.kind == Node::Kind::Map;
  std::string text = map ? "{" : "[";
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    if (i > 0) text += ", ";
    if (map) text += scalar_text(node.keys[i].first) + ": ";
    text += line_text(node.items[i]);
  }
  return text + (map ? "}" : "]");
}

class Writer {
 public:
  std::string take() && { return std::move(text_); }

  void write_items(const Node& node, std::size_t indent) {
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const bool map = node.kind == Node::Kind::Map;
      text_.append(indent, ' ').append(map ? scalar_text(node.keys[i].first) + ":" : "-");
      write_value(node.items[i], indent, map);
    }
  }

 private:
  /// Items of lists stand in one line if they fit, values of maps only where they hold no lists and maps.
  void write_value(const Node& value, std::size_t indent, bool of_map) {
    const std::string line = line_text(value);
    const bool in_line =
        value.items.empty() || (indent + line.size() <= kWidth && !(of_map && holds_containers(value)));
    if (in_line) {
      text_.append(" ").append(line).append("\n");
    } else if (of_map) {
      text_.append("\n");
      write_items(value, indent + 2);
    } else {
      const std::size_t start = text_.size();
      write_items(value, indent + 2);
      text_.erase(start, indent + 1);  // the first of them stands behind the dash
    }
  }

  std::string text_;
};

}  // namespace

std::string document_text(const Node& root) {
  Writer writer;
  writer.write_items(root, 0);
  return std::move(writer).take();
}

}  // namespace tutti::internal
