#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace tutti::internal {

/// Two texts of "proc/stat", some time apart.
using ProcessorTimes = std::array<std::optional<std::string>, 2>;

/// The share of the time in between that a core worked, 0 to 1; nothing where it cannot be read, or no time went by.
/// @param line  beginning of the core's line: "cpu3 ", or "cpu " for all of them
[[nodiscard]] std::optional<double> busy_share(const ProcessorTimes& times, std::string_view line);

/// The share of it that a hypervisor gave to others although a core had work.
[[nodiscard]] std::optional<double> stolen_share(const ProcessorTimes& times, std::string_view line);

}  // namespace tutti::internal
