#pragma once
#include <cstdint>

namespace tutti::test {

/// A seeded source of numbers that are the same on every machine (SplitMix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// From 0 to count - 1.
  std::uint64_t below(std::uint64_t count) { return next() % count; }
  /// From low to high, both inclusive.
  int between(int low, int high) { return low + static_cast<int>(below(static_cast<std::uint64_t>(high - low) + 1)); }
  /// In [low, high).
  double real(double low, double high) { return low + (high - low) * static_cast<double>(next() >> 11) * 0x1p-53; }
  /// True once in `times`.
  bool one_in(std::uint64_t times) { return below(times) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace tutti::test
