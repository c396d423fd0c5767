#pragma once
#include <functional>
#include <string>

#include <tutti/error.hpp>

namespace wafer {

/// Writes a temporary file and renames it to `path`, so that a partial file never stands there.
/// @param write  writes the file at the path that it is given.
/// @errors  as `write`; InvalidInput: the file cannot take its place.
[[nodiscard]] tutti::Expected<void> write_aside(const std::string& path,
                                                const std::function<tutti::Expected<void>(const std::string&)>& write);

/// Writes a text with `write_aside`.
/// @errors  InvalidInput: the path cannot be written. Machine: the disk is full.
[[nodiscard]] tutti::Expected<void> write_text(const std::string& path, const std::string& text);

/// Checks that a file can be written to `path`, before a long run whose results belong there. Leaves no file behind.
/// @errors  InvalidInput: it cannot.
[[nodiscard]] tutti::Expected<void> check_writable(const std::string& path);

/// Makes a folder, and those above it; one that is there is fine.
/// @errors  InvalidInput: it cannot be made.
[[nodiscard]] tutti::Expected<void> make_folder(const std::string& path);

}  // namespace wafer
