#pragma once
#include <cstdlib>
#include <regex>
#include <string>
#include <vector>

namespace tutti::internal {

/// An element of a picture that `Svg` wrote.
struct SvgElement {
  std::string attributes, text;  ///< what stands in its tag, and what stands in it

  /// Empty: it has none of that name.
  [[nodiscard]] std::string attribute(const std::string& name) const {
    std::smatch found;
    return std::regex_search(attributes, found, std::regex("(?:^| )" + name + "='([^']*)'")) ? found.str(1) : "";
  }
  [[nodiscard]] double number(const std::string& name) const { return std::strtod(attribute(name).c_str(), nullptr); }
  [[nodiscard]] double right() const { return number("x") + number("width"); }
};

/// All elements of one name, in the order of the file.
inline std::vector<SvgElement> elements_of(const std::string& picture, const std::string& name) {
  const std::regex element("<" + name + " ([^>]*?)(?:/>|>(.*?)</" + name + ">)");
  std::vector<SvgElement> all;
  for (std::sregex_iterator at(picture.begin(), picture.end(), element), end; at != end; ++at)
    all.push_back({at->str(1), at->str(2)});
  return all;
}

}  // namespace tutti::internal
