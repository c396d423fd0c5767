#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace tutti {

/// When the jobs of a task set arrive.
enum class Arrivals : std::uint8_t {
  Sporadic,  ///< at least a period apart, at any time
  Periodic,  ///< exactly at the offset and every period from there on
};

/// "sporadic", "periodic".
[[nodiscard]] constexpr std::string_view to_string(Arrivals arrivals) {
  return arrivals == Arrivals::Periodic ? "periodic" : "sporadic";
}

/// The arrivals that `to_string` prints so; nothing for any other text.
[[nodiscard]] constexpr std::optional<Arrivals> parse_arrivals(std::string_view text) {
  for (const Arrivals arrivals : {Arrivals::Sporadic, Arrivals::Periodic})
    if (to_string(arrivals) == text) return arrivals;
  return std::nullopt;
}

}  // namespace tutti
