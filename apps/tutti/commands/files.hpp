#pragma once
#include <optional>
#include <string>

#include "model/error.hpp"

namespace tutti {

/// Writes a file beside its place and moves it there, so that there is never half a file.
/// @return InvalidInput where it cannot be written.
[[nodiscard]] std::optional<Error> write_file(const std::string& path, const std::string& text);

/// Whether `write_file` can write there, before somebody takes long to find what to write. Leaves nothing behind.
/// @return InvalidInput where it cannot.
[[nodiscard]] std::optional<Error> check_writable(const std::string& path);

}  // namespace tutti
