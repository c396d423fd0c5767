#pragma once
#include <fstream>
#include <sstream>
#include <string>

#include "model/base/error.hpp"

namespace tutti::internal {

/// The text of a file.
/// @errors InvalidInput: it cannot be read.
[[nodiscard]] inline Expected<std::string> text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return invalid_input("it cannot be read; name a task file that is there", {path, 0, 0});
  return text.str();
}

}  // namespace tutti::internal
