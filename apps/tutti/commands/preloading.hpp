#pragma once
#include <string>

namespace tutti::internal {

/// Why the loader preloads nothing into a program, as "is linked statically"; empty: it does, or nobody knows.
/// @param program  as a shell takes it: a path, or a name that PATH has
[[nodiscard]] std::string why_not_preloaded(const std::string& program);

}  // namespace tutti::internal
