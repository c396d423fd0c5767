#pragma once
#include <cstdint>

namespace tutti::internal {

/// A seeded stream of numbers that is the same on every machine and with every compiler; not for secrets.
/// @source  Steele, Lea, Flood: Fast splittable pseudorandom number generators (OOPSLA 2014), SplitMix64.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) : state_{seed} {}

  [[nodiscard]] constexpr std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  /// @return  least <= number <= most, all nearly equally likely.
  /// @pre     least <= most.
  [[nodiscard]] constexpr int between(int least, int most) {
    const auto choices = static_cast<std::uint64_t>(std::int64_t{most} - least + 1);
    return static_cast<int>(least + static_cast<std::int64_t>(((next() >> 32) * choices) >> 32));
  }

  [[nodiscard]] constexpr bool one_in(int n) { return between(1, n) == 1; }

 private:
  std::uint64_t state_;
};

}  // namespace tutti::internal
