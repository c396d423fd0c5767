#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>

#include "model/base/units.hpp"

namespace tutti::internal {

/// Time and work inside an analysis, in ns: 128 bits, so that numbers near 2^63 ns add and multiply without wrapping.
__extension__ typedef __int128 Wide;
/// `Wide` without a sign, for fixed-point shares.
__extension__ typedef unsigned __int128 UnsignedWide;

/// Where sums and products stop growing; no walk goes that far, so whatever reaches it is "too far", never wrong.
inline constexpr Wide kFar = Wide{1} << 120;

/// @pre  dividend >= 0, divisor > 0.
[[nodiscard]] constexpr Wide floor_div(Wide dividend, std::int64_t divisor) {
  // A 64-bit division is several times as fast, and nearly always enough.
  if (dividend <= std::numeric_limits<std::int64_t>::max()) return static_cast<std::int64_t>(dividend) / divisor;
  return dividend / divisor;
}

/// @pre  dividend >= 0, divisor > 0.
[[nodiscard]] constexpr Wide ceil_div(Wide dividend, std::int64_t divisor) {
  return dividend == 0 ? Wide{0} : floor_div(dividend - 1, divisor) + 1;
}

/// `count` jobs of `cost` each, at most `kFar`.
/// @pre  0 <= count <= kFar, cost >= 0.
[[nodiscard]] constexpr Wide work_of(Wide count, std::int64_t cost) {
  if (cost == 0) return 0;
  const bool fits = (count >> 63) == 0 || count <= kFar / cost;  // the first spares the division: 63 + 63 bits fit
  const Wide product = fits ? count * cost : kFar;
  return product < kFar ? product : kFar;
}

/// The least common multiple of a multiple of some periods and one more period, at most `kFar`.
/// @pre  0 < multiple <= kFar, period > 0.
[[nodiscard]] constexpr Wide common_multiple(Wide multiple, std::int64_t period) {
  return work_of(multiple, period / std::gcd(static_cast<std::int64_t>(multiple % period), period));
}

/// The sum, at most `kFar`.
/// @pre  both in [-kFar, kFar].
[[nodiscard]] constexpr Wide capped_sum(Wide a, Wide b) { return a + b < kFar ? a + b : kFar; }

/// A number times a factor, rounded up; what is above a whole number by at most 2^-20 becomes that number, since a
/// factor written in decimals is a little off in binary. Exact otherwise, so that every processor has the same: a `long
/// double` has 64 digits on some and 113 on others.
/// @pre  number >= 0, factor >= 0. From a factor of 2^53 on, a product that is not 0 counts as `kFar`.
[[nodiscard]] inline Wide ceil_product(std::int64_t number, double factor) {
  constexpr int kDigits = std::numeric_limits<double>::digits, kTolerance = 20;
  int exponent = 0;
  const double fraction = std::frexp(factor, &exponent);
  const auto digits = static_cast<std::uint64_t>(std::ldexp(fraction, kDigits));
  const UnsignedWide product = static_cast<UnsignedWide>(number) * digits;  // below 2^(63 + 53)
  const int places = kDigits - exponent;                                    // number x factor = product / 2^places
  if (product > 0 && places <= 0) return kFar;
  const UnsignedWide tolerance = places < kTolerance ? 0 : UnsignedWide{1} << std::min(places - kTolerance, 120);
  if (product <= tolerance) return 0;
  if (places > 126) return 1;  // it is below 2^-10
  return static_cast<Wide>((product - tolerance - 1) >> places) + 1;
}

/// A whole number of ns as a Duration; nothing where 64 bits do not hold it.
[[nodiscard]] constexpr std::optional<Duration> to_duration(Wide ns) {
  if (ns < std::numeric_limits<std::int64_t>::min() || ns > std::numeric_limits<std::int64_t>::max())
    return std::nullopt;
  return Duration{static_cast<std::int64_t>(ns)};
}

}  // namespace tutti::internal
