#pragma once
#include <ctime>
#include <string>

#include <fmt/chrono.h>

namespace tutti::internal {

/// The day, in Greenwich: "2026-11-24".
inline std::string today() { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))); }

}  // namespace tutti::internal
