#pragma once
#include <string>

#include "model/base/error.hpp"
#include "model/base/input_file.hpp"

namespace tutti::internal {

/// The text of a task file.
/// @errors InvalidInput: it cannot be read.
[[nodiscard]] inline Expected<std::string> text_of(const std::string& path) {
  constexpr std::size_t kMost = 4U << 20;  // its reader takes no more
  return read_bytes_of(path, "a task set", kMost);
}

}  // namespace tutti::internal
