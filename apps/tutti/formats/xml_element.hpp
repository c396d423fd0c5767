#pragma once
#include <charconv>
#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <libxml/tree.h>

#include "model/base/document.hpp"

/// XML of other tools, from a text in memory: no entity is expanded, and nothing else is opened.
namespace tutti::internal {

using XmlDocument = std::unique_ptr<xmlDoc, void (*)(xmlDoc*)>;

/// @param writers  that write such files without a DOCTYPE of their own, for the sentence: "hwloc and NCCL do"
/// @errors `InputError` with line and column: no whole XML, or a DOCTYPE that declares something.
[[nodiscard]] XmlDocument parse_xml(const std::string& text, const std::string& name, std::string_view writers);

/// An element with its place. It is valid while its document and the name of its file are.
class XmlElement {
 public:
  XmlElement(const xmlNode* node, const std::string& file) : node_(node), file_(&file) {}

  [[nodiscard]] std::string_view name() const { return reinterpret_cast<const char*>(node_->name); }
  [[nodiscard]] Place place() const { return {*file_, static_cast<int>(xmlGetLineNo(node_)), 1}; }
  /// The value of an attribute, whatever its namespace; empty where there is none.
  [[nodiscard]] std::string attribute(const char* key) const;
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::vector<XmlElement> children() const;
  /// An attribute that must be a whole number.
  template <std::integral Number>
  [[nodiscard]] Number whole(const char* key, Number least, Number most) const {
    const std::string text = attribute(key);
    Number value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most)
      fail(place(), fmt::format("'{:.80}' is no {} of <{}>; it is a whole number from {} to {}", text, key, name(),
                                least, most));
    return value;
  }

 private:
  const xmlNode* node_;
  const std::string* file_;
};

/// @param what  has no such depth, for the sentence: "any host"
/// @errors `InputError`: an element is nested too deep.
void check_level(const XmlElement& element, int level, std::string_view what);

}  // namespace tutti::internal
