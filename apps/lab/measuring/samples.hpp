#pragma once
#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "model/base/units.hpp"

namespace tutti::internal {

/// Times of one thing that was measured many times, us.
struct SampleSummary {
  std::size_t count = 0;
  double average = 0, median = 0;
  double p99 = 0, p999 = 0;
  double worst = 0;

  friend bool operator==(const SampleSummary&, const SampleSummary&) = default;
};

/// All 0 of none.
[[nodiscard]] SampleSummary summarize_samples(std::span<const Duration> times);

/// How often something is measured: as often as is wanted, less often where that takes too long.
struct SampleLimit {
  /// Time for each sample that is wanted, the pause before it included.
  static constexpr Duration kTimeOfOne = std::chrono::microseconds{300};
  static constexpr std::size_t kLeast = 10;

  std::size_t most = 1000;
  std::size_t least = kLeast;
  Duration time{};  ///< behind which no further one is taken once there are `least`

  /// For so many samples, at least one.
  [[nodiscard]] static SampleLimit wanting(std::size_t most);
  /// Whether so many are enough, after so long.
  [[nodiscard]] bool reached(std::size_t count, Duration spent) const;
  /// What is reached after the first of several parts that together reach this.
  [[nodiscard]] SampleLimit after(std::size_t done, std::size_t parts) const;
};

/// Sizes from `from` on, each twice the one before, up to `to`.
/// @pre 0 < from <= to
[[nodiscard]] std::vector<Bytes> doubled_sizes(Bytes from, Bytes to);

}  // namespace tutti::internal
