#include "apps/tutti/formats/xml_element.hpp"

#include <algorithm>

#include <libxml/parser.h>

namespace tutti::internal {
namespace {

std::string taken(xmlChar* characters) {
  std::string text = characters == nullptr ? "" : reinterpret_cast<const char*>(characters);
  xmlFree(characters);
  return text;
}

}  // namespace

XmlDocument parse_xml(const std::string& text, const std::string& name, std::string_view writers) {
  constexpr int kOptions = XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING;  // no entity is expanded
  XmlDocument document(xmlReadMemory(text.data(), static_cast<int>(text.size()), name.c_str(), nullptr, kOptions),
                       xmlFreeDoc);
  // hwloc names its DTD, which is not read. What a file declares itself could expand to any length.
  if (document && document->intSubset != nullptr && document->intSubset->children != nullptr)
    fail({name, 1, 1}, fmt::format("this XML declares entities in its DOCTYPE; write it without any, as {}", writers));
  if (document) return document;
  const xmlError* const error = xmlGetLastError();
  std::string reason = error != nullptr && error->message != nullptr ? error->message : "not known";
  reason = reason.substr(0, reason.find('\n'));  // what follows is the text itself
  fail({name, error != nullptr ? error->line : 1, error != nullptr ? std::max(error->int2, 1) : 1},
       fmt::format("this is no whole XML: {}; write the file again", reason));
}

std::string XmlElement::attribute(const char* key) const {
  return taken(xmlGetProp(node_, reinterpret_cast<const xmlChar*>(key)));
}

std::string XmlElement::text() const { return taken(xmlNodeGetContent(node_)); }

std::vector<XmlElement> XmlElement::children() const {
  std::vector<XmlElement> all;
  for (const xmlNode* child = node_->children; child != nullptr; child = child->next)
    if (child->type == XML_ELEMENT_NODE) all.emplace_back(child, *file_);
  return all;
}

void check_level(const XmlElement& element, int level, std::string_view what) {
  constexpr int kMostLevels = 64;
  if (level > kMostLevels)
    fail(element.place(), fmt::format("this is nested deeper than {}; write the file again", what));
}

}  // namespace tutti::internal
