#pragma once
#include <cstdint>
#include <random>

namespace wafer {

/// A seeded stream of numbers that is the same on every machine: the standard fixes the engine, and not its
/// distributions.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  [[nodiscard]] std::uint64_t next() { return engine_(); }

  /// @return  least <= number <= most, all nearly equally likely.
  /// @pre     least <= most.
  [[nodiscard]] int between(int least, int most) {
    const auto choices = static_cast<std::uint64_t>(std::int64_t{most} - least + 1);
    return static_cast<int>(least + static_cast<std::int64_t>(((next() >> 32) * choices) >> 32));
  }

  [[nodiscard]] bool one_in(int n) { return between(1, n) == 1; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace wafer
