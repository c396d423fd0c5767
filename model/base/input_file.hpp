#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/base/error.hpp"

namespace tutti::internal {

/// Why a file cannot be read, as a sentence: it is not there, with the folder in which it was looked for and the
/// nearest name in it; it is a folder; it may not be read; or what the host says.
/// @param what    is wanted, with its article: "a machine file"
/// @param reason  errno of what failed
/// @param also    further folders in which its name was looked for
[[nodiscard]] Error unreadable(const std::string& path, std::string_view what, int reason,
                               std::span<const std::string> also = {});

/// As `unreadable`, before the file is opened; nothing where it may be read. It waits for nobody, pipes included.
[[nodiscard]] std::optional<Error> fault_of_input(const std::string& path, std::string_view what,
                                                  std::span<const std::string> also = {});

/// The bytes of a file, at most `most` of them and one more, which says that the file is larger.
/// @errors InvalidInput: as `unreadable`.
[[nodiscard]] Expected<std::string> read_bytes_of(const std::string& path, std::string_view what, std::size_t most);

}  // namespace tutti::internal
