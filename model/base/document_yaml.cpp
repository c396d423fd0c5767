#include <algorithm>
#include <istream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <streambuf>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "model/base/document.hpp"
#include "model/base/document_mistakes.hpp"
#include "model/base/input_file.hpp"

namespace tutti::internal {
namespace {

constexpr std::size_t kMaxFileBytes = 4U << 20;
constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxNodes = 1'000'000;  // aliases of aliases grow without bound
constexpr std::size_t kMaxScalar = 1024;      // every word and quantity ends up in some error's sentence

/// Builds our own nodes from the parser's events, so that every limit holds while the file is being read.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::string file) : file_(std::move(file)) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node node = make(Node::Kind::Null, mark);
    // The parser's mark of a value that is left out is the next word, lines below.
    if (!stack_.empty() && stack_.back().node.kind == Node::Kind::Map && !stack_.back().key_expected)
      if (const auto& [key, at] = stack_.back().node.keys.back(); at.line < node.place.line)
        node.place = {file_, at.line, at.column + static_cast<int>(key.size()) + 1};
    add(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      fail(place(mark), "this alias stands for the node that it is part of; an alias to an ancestor has no end");
    }
    count(found->second, place(mark), stack_.size());
    add(found->second, 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, const std::string& value) override {
    Node node = make(Node::Kind::Scalar, mark);
    refuse_unless_word(value, node.place);
    node.text = value;
    add(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Node::Kind::Sequence, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Node::Kind::Map, mark, anchor);
  }
  void OnMapEnd() override { close(); }

  Node take_root() { return std::move(root_); }

 private:
  struct Open {
    Node node;
    YAML::anchor_t anchor;
    std::set<std::string> keys = {};  // of a map; its node keeps them in the order of the file
    bool key_expected = true;
  };

  [[nodiscard]] Place place(const YAML::Mark& mark) const { return {file_, mark.line + 1, mark.column + 1}; }

  Node make(Node::Kind kind, const YAML::Mark& mark) {
    if (++nodes_ > kMaxNodes)
      fail(place(mark), "more than a million nodes, aliases written out; make the file smaller");
    Node node;
    node.kind = kind;
    node.place = place(mark);
    return node;
  }

  /// Counts a subtree that is about to be copied to `depth` levels below the root.
  void count(const Node& copy, const Place& at, std::size_t depth) {
    if (++nodes_ > kMaxNodes) fail(at, "more than a million nodes, aliases written out; make the file smaller");
    const bool nests = copy.kind == Node::Kind::Sequence || copy.kind == Node::Kind::Map;
    if (nests && depth >= kMaxDepth) {
      fail(at, fmt::format("nested deeper than {} levels, aliases written out; no file of this project needs that",
                           kMaxDepth));
    }
    for (const Node& item : copy.items) count(item, at, depth + 1);
  }

  static void refuse_unless_word(const std::string& value, const Place& at) {
    if (value.size() > kMaxScalar) {
      fail(at, fmt::format("a value of {} characters; no file of this project needs more than {}", value.size(),
                           kMaxScalar));
    }
    const bool control = std::any_of(value.begin(), value.end(),
                                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
    if (control) fail(at, "this value holds a line break or another control character; write it on one line");
  }

  void open(Node::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (stack_.size() >= kMaxDepth) {
      fail(place(mark), fmt::format("nested deeper than {} levels; no file of this project needs that", kMaxDepth));
    }
    stack_.push_back({make(kind, mark), anchor});
  }

  void close() {
    Open done = std::move(stack_.back());
    stack_.pop_back();
    add(std::move(done.node), done.anchor);
  }

  void add(Node node, YAML::anchor_t anchor) {
    if (anchor != 0) {
      count(node, node.place, stack_.size());
      anchors_.insert_or_assign(anchor, node);
    }
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = stack_.back();
    if (parent.node.kind == Node::Kind::Map && parent.key_expected) {
      add_key(parent, node);
    } else {
      parent.node.items.push_back(std::move(node));
    }
    parent.key_expected = !parent.key_expected;
  }

  static void add_key(Open& map, const Node& key) {
    if (key.kind != Node::Kind::Scalar) fail(key.place, "a key must be a plain word; write 'word: value'");
    if (key.text.size() > 1 && key.text.front() == '-')
      fail(key.place, fmt::format("a blank is missing behind the '-'; write '- {:.80}: ...'", key.text.substr(1)));
    if (!map.keys.insert(key.text).second) {
      const auto first = std::find_if(map.node.keys.begin(), map.node.keys.end(),
                                      [&](const auto& known) { return known.first == key.text; });
      fail(key.place,
           fmt::format("the key '{}' stands already on line {}; keep one of the two", key.text, first->second.line));
    }
    map.node.keys.emplace_back(key.text, key.place);
  }

  std::string file_;
  Node root_;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, Node> anchors_;
  std::size_t nodes_ = 0;
};

/// Refuses brackets nested deeper than the limit before the parser sees them: it looks ahead over them quadratically.
void refuse_deep_brackets(std::string_view text, const std::string& name) {
  std::size_t depth = 0;
  Place place{name, 1, 0};
  for (const char c : text) {
    ++place.column;
    if (c == '\n') {
      ++place.line;
      place.column = 0;
    }
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (depth > kMaxDepth) {
      fail(place, fmt::format("nested deeper than {} brackets; no file of this project needs that", kMaxDepth));
    }
  }
}

/// Where the text stops being text: a YAML file holds no control characters.
void refuse_binary(std::string_view text, const std::string& name) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    fail({name, 1, 1}, "this text is UTF-16; save it as UTF-8");
  Place place{name, 1, 0};
  for (const char c : text) {
    ++place.column;
    if (c == '\n') {
      ++place.line;
      place.column = 0;
    }
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte == 0x7f) {
      fail(place, fmt::format("byte 0x{:02x} is no text; this must be a YAML file", byte));
    }
  }
}

void refuse_mistake(const std::optional<TextMistake>& mistake, const std::string& name) {
  if (mistake) fail({name, mistake->line, mistake->column}, "this is no YAML: " + mistake->sentence);
}

Node parse_tree(std::string_view text, const std::string& name) {
  refuse_binary(text, name);
  refuse_deep_brackets(text, name);
  refuse_mistake(unclosed_quote(text), name);
  TreeBuilder builder(name);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return {};
    Node root = builder.take_root();
    TreeBuilder rest(name);
    if (parser.HandleNextDocument(rest)) {
      const Node second = rest.take_root();
      fail(second.place, "a second document starts here; write one document a file");
    }
    return root;
  } catch (const YAML::Exception& error) {
    refuse_mistake(find_mistake(text, error.mark.line + 1, error.mark.column + 1), name);
    fail({name, error.mark.line + 1, error.mark.column + 1}, fmt::format("this is no YAML: {:.200}", error.msg));
  }
}

Node checked_tree(std::string_view text, const std::string& name) {
  if (text.size() > kMaxFileBytes) fail({name, 0, 0}, "the file is above 4 MiB; no file of this project needs that");
  Node root = parse_tree(text, name);
  if (root.kind == Node::Kind::Null) fail({name, 1, 1}, "there is nothing in this file; begin it with 'version: 1'");
  if (root.kind != Node::Kind::Map) {
    fail({name, 1, 1}, "the top level must be a map that starts with 'version: 1'");
  }
  const auto version =
      std::find_if(root.keys.begin(), root.keys.end(), [](const auto& key) { return key.first == "version"; });
  if (version == root.keys.end()) fail(root.place, "'version' is missing; write 'version: 1' at the top");
  const Node& value = root.items[static_cast<std::size_t>(version - root.keys.begin())];
  if (value.text != "1")
    fail(value.place, fmt::format("version '{}' is unknown; this program reads version 1", value.text));
  return root;
}

}  // namespace

Expected<Node> parse_document(std::string_view text, const std::string& name) {
  return reading([&] { return checked_tree(text, name); });
}

Expected<Node> read_document(const std::string& path) {
  return read_bytes_of(path, "a YAML file", kMaxFileBytes).and_then([&](const std::string& text) {
    return parse_document(text, path);
  });
}

}  // namespace tutti::internal
