#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "model/base/error.hpp"
#include "model/base/quantities.hpp"

namespace tutti::internal {

/// The sum, or the longest Duration where that is longer. @pre a, b >= 0
[[nodiscard]] constexpr Duration add_saturating(Duration a, Duration b) {
  return a > Duration::max() - b ? Duration::max() : a + b;
}

/// Rounding of a decimal that is no whole number of bytes or nanoseconds. Sizes and durations of work go up; periods
/// and deadlines go down: in both cases the answer gets later or stricter, never better than the truth.
enum class Rounding : std::uint8_t { Up, Down };

/// "64 MiB", "0.5 GB", "17 B", or "0" alone.
/// @return  at most 2^53 bytes, so that a double holds it exactly.
/// @errors  InvalidInput: no number, no unit, an unknown unit, negative, too large.
[[nodiscard]] Expected<Bytes> parse_bytes(std::string_view text);

/// "25 ms", "3.6 us", "0" alone.
/// @return  at most 2^63 - 1 ns.
/// @errors  as `parse_bytes`.
[[nodiscard]] Expected<Duration> parse_duration(std::string_view text, Rounding rounding = Rounding::Up);

/// "12.3 GB/s", "900 MB/s", "11 GiB/s"; never zero.
/// @errors  as `parse_bytes`; zero.
[[nodiscard]] Expected<GBps> parse_rate(std::string_view text);
/// The least rate that is read, GB/s.
inline constexpr double kLeastRate = 1e-6;

/// The texts that these functions read, as regular expressions of JSON Schema without anchors.
[[nodiscard]] std::string pattern_of_bytes();
[[nodiscard]] std::string pattern_of_duration();
[[nodiscard]] std::string pattern_of_rate();

/// An exact share of a size, in percent, rounded to a byte: "12.5" of 8 B is 1 B.
/// @errors  InvalidInput: no number, negative, above 1e6 percent.
[[nodiscard]] Expected<Bytes> parse_percentage(std::string_view percent, Bytes of, Rounding rounding = Rounding::Up);

/// Milliseconds as a double, for tables and JSON.
[[nodiscard]] constexpr double to_ms(Duration time) { return static_cast<double>(time.count()) / 1e6; }

/// Nanoseconds as a double, for arithmetic within a batch.
[[nodiscard]] constexpr double as_ns(Duration time) { return static_cast<double>(time.count()); }

/// A double in ns, rounded up to a whole one; -0 and rounding noise below 1e-6 ns do not cost a nanosecond.
[[nodiscard]] Duration round_up_ns(double ns);
/// A double in ns, rounded down to a whole one, with the same tolerance.
[[nodiscard]] Duration round_down_ns(double ns);

/// The shortest exact form with a unit: "64 MiB", "160 MB", "17 B".
[[nodiscard]] std::string to_string(Bytes size);
/// "25 ms", "3.6 us", "17 ns": exact.
[[nodiscard]] std::string to_string(Duration time);
/// "12.3 GB/s".
[[nodiscard]] std::string to_string(GBps rate);

}  // namespace tutti::internal
