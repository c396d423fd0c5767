#pragma once
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace tutti {
struct Error;
}

namespace tutti::programs {

/// `Expected<void>` of the library, whichever of its headers a program includes.
using Written = tl::expected<void, Error>;

/// Writes a file that the user named, and says so (`print_written`); every write is checked.
///
/// A regular file, at the end of links too, is replaced as a whole: the text goes to a new file in its folder, which
/// gets its mode, and its owner where allowed, and then its name. Until then the old one stays as it is, and of a
/// writer that is killed nothing stays, where the file system has files without a name (O_TMPFILE). Devices, pipes and
/// descriptors of this process (/dev/stdout) are written in place; a pipe once somebody reads it, which a note says.
///
/// @param write  writes the contents; its error is returned, and then nothing is replaced.
/// @errors  InvalidInput: a folder, or a path that may not be written. Machine: not written to its end, as on a full
///          disk. As `write`.
[[nodiscard]] Written write_file(const std::string& path, const std::function<Written(std::FILE*)>& write);
[[nodiscard]] Written write_file(const std::string& path, std::string_view text);

/// The same without a sentence: for a file of many, or one that is replaced while a program runs.
[[nodiscard]] Written write_file_silently(const std::string& path, const std::function<Written(std::FILE*)>& write);
[[nodiscard]] Written write_file_silently(const std::string& path, std::string_view text);

/// Prints "wrote FILE (12 kB)" on standard error, which --quiet leaves out; nothing of devices, pipes and descriptors.
void print_written(const std::string& path);

/// Checks that `write_file` may write, before a long run whose results belong there. Opens nothing and makes nothing.
/// @errors  InvalidInput: it may not.
[[nodiscard]] Written check_writable(const std::string& path);

/// Whether writing one path would replace what the other one names: one regular file, there or not yet, at the end of
/// links. Devices, pipes and descriptors of this process replace nothing.
[[nodiscard]] bool is_same_file(const std::string& one, const std::string& other);

/// A file of a command: the option that names it, and its path.
struct NamedFile {
  std::string option, path;
};
/// The output that would replace a file that is read, or another output, in words; empty where none does.
[[nodiscard]] std::string fault_of_outputs(std::span<const NamedFile> outputs, std::span<const std::string> inputs);

/// Makes a folder, and those above it; one that is there is fine.
/// @errors  InvalidInput: it cannot be made.
[[nodiscard]] Written make_folder(const std::string& path);

}  // namespace tutti::programs
