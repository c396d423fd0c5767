#include "model/base/document.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include <fmt/format.h>

namespace tutti::internal {
namespace {

const std::string& scalar(const Node& node, std::string_view expected) {
  if (node.kind != Node::Kind::Scalar)
    fail(node.place, fmt::format("a single value is expected here; write {}", expected));
  return node.text;
}

}  // namespace

void fail(const Place& place, std::string message) {
  throw InputError{{ErrorCode::InvalidInput, std::move(message), place}};
}

std::string path_beside(const std::string& base, const std::string& relative) {
  return (std::filesystem::path(base).parent_path() / relative).lexically_normal().string();
}

std::string path_from(const std::string& folder, const std::string& path) {
  std::error_code none;
  const auto relative = std::filesystem::proximate(path, folder.empty() ? "." : folder, none);
  return none ? path : relative.string();
}

const Node* Node::find(std::string_view key) const {
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (keys[i].first == key) return &items[i];
  return nullptr;
}

Node Node::key(std::size_t position) const {
  return {Kind::Scalar, keys[position].second, keys[position].first, {}, {}};
}

void Node::add(std::string_view key, Node value) {
  keys.emplace_back(key, Place{});
  items.push_back(std::move(value));
}

std::string read_id(const Node& node) {
  const std::string& text = scalar(node, "a name");
  if (!is_name(text)) fail(node.place, name_sentence(text));
  return text;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-';
  });
}

std::string name_sentence(std::string_view text) {
  return fmt::format("'{:.80}' is no name; a name has 1 to 128 letters, digits, '_', '.' or '-'", text);
}

const std::string& read_text(const Node& node) { return scalar(node, "a word"); }

Bytes read_bytes(const Node& node) { return value_at(node.place, parse_bytes(scalar(node, "a size like 64 MiB"))); }

Duration read_duration(const Node& node, Rounding rounding) {
  return value_at(node.place, parse_duration(scalar(node, "a time like 25 ms"), rounding));
}

GBps read_rate(const Node& node) { return value_at(node.place, parse_rate(scalar(node, "a rate like 12.3 GB/s"))); }

double read_number(const Node& node, double low, double high) {
  const std::string& text = scalar(node, "a number");
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (const std::string_view rest(end, text.data() + text.size());
      status == std::errc{} && (rest == "%" || rest == " %"))
    fail(node.place, fmt::format("'{:.80}' is a percentage; write a plain number like {:g}", text, value / 100));
  if (status != std::errc{} || end != text.data() + text.size() || !(value >= low && value <= high)) {
    fail(node.place, fmt::format("'{:.80}' is not possible here; write a number from {:g} to {:g}", text, low, high));
  }
  return value;
}

int read_whole(const Node& node, int low, int high) {
  const std::string& text = scalar(node, "a whole number");
  int value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size() || value < low || value > high) {
    fail(node.place, fmt::format("'{:.80}' is not possible here; write a whole number from {} to {}", text, low, high));
  }
  return value;
}

bool read_switch(const Node& node) {
  const std::string& text = scalar(node, "on or off");
  if (text == "on" || text == "true") return true;
  if (text == "off" || text == "false") return false;
  fail(node.place, fmt::format("'{:.80}' is neither on nor off; write one of the two", text));
}

std::span<const Node> read_sequence(const Node& node, std::string_view what) {
  if (node.kind != Node::Kind::Sequence) fail(node.place, fmt::format("{} is a list; write '- ...' or [...]", what));
  return node.items;
}

}  // namespace tutti::internal
