#pragma once
#include <optional>
#include <string>

#include "model/base/error.hpp"

namespace tutti::internal {

/// Writes a temporary file and renames it to `path`, so that a partial file never stands there.
/// @return InvalidInput where it cannot be written.
[[nodiscard]] std::optional<Error> write_file(const std::string& path, const std::string& text);

/// Checks that `write_file` can write to `path`, before a long computation of the text. Leaves no file behind.
/// @return InvalidInput where it cannot.
[[nodiscard]] std::optional<Error> check_writable(const std::string& path);

}  // namespace tutti::internal
