#pragma once
#include <cmath>
#include <cstdint>
#include <utility>

#include "model/base/random.hpp"

namespace tutti::internal::test {

/// Whether this build has sanitizers, which look at the code that runs and not at the numbers: less will do.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// How many of so many random rounds a test makes: all, or a sixteenth in a build with sanitizers.
template <class Count>
[[nodiscard]] constexpr Count rounds(Count all) {
  return kSanitized ? (all + 15) / 16 : all;
}

/// A seeded source of numbers that are the same on every machine, with what tests draw from it.
class Random : public tutti::internal::Random {
 public:
  using tutti::internal::Random::Random;

  /// From 0 to count - 1.
  std::uint64_t below(std::uint64_t count) { return next() % count; }
  /// From low to high, both inclusive.
  int between(int low, int high) { return low + static_cast<int>(below(static_cast<std::uint64_t>(high - low) + 1)); }
  /// In [low, high).
  double real(double low, double high) { return low + (high - low) * static_cast<double>(next() >> 11) * 0x1p-53; }
  /// True once in `times`.
  bool one_in(std::uint64_t times) { return below(times) == 0; }
  /// The share of the next one of `count` that divide what is left, each division as likely (UUniFast); takes it away.
  double share(double& left, std::size_t count) {
    const double rest = count <= 1 ? 0 : left * std::pow(real(0, 1), 1.0 / static_cast<double>(count - 1));
    return std::exchange(left, rest) - rest;
  }
};

}  // namespace tutti::internal::test
