#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "model/base/quantities.hpp"

namespace tutti::internal {

/// Counts of durations in bounded memory: log-linear buckets, 64 to each power of two.
///
/// A quantile is never below the true one, and above it by less than 1/64 of it (1.6 %). Below 128 ns and for the
/// largest value it is exact.
class DurationHistogram {
 public:
  /// Durations from here on (73 minutes) share the last bucket.
  static constexpr Duration kLongest{std::int64_t{1} << 42};

  /// Adds a duration; a negative one counts as 0. Allocates nothing.
  void add(Duration time) noexcept {
    const Duration value = std::max(time, Duration{0});
    ++counts_[bucket_of(value)];
    ++count_;
    total_ += value;
    largest_ = std::max(largest_, value);
  }

  void merge(const DurationHistogram& other) noexcept {
    for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) counts_[bucket] += other.counts_[bucket];
    count_ += other.count_;
    total_ += other.total_;
    largest_ = std::max(largest_, other.largest_);
  }

  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// 0 of none.
  [[nodiscard]] Duration largest() const { return largest_; }
  /// Sum of all durations.
  [[nodiscard]] Duration total() const { return total_; }
  /// How many durations are at most this one, less those that share the last bucket with longer ones.
  [[nodiscard]] std::uint64_t at_most(Duration time) const {
    if (time >= largest_) return count_;
    std::uint64_t seen = 0;
    for (std::size_t bucket = 0; bucket < kBuckets && end_of(bucket) <= time; ++bucket) seen += counts_[bucket];
    return seen;
  }

  /// The smallest value that `permille` of 1000 durations do not exceed, rounded up to the end of its bucket; 0 of
  /// none.
  /// @param permille  1 to 1000
  [[nodiscard]] Duration quantile(std::uint64_t permille) const {
    const std::uint64_t rank = (count_ * permille + 999) / 1000;
    std::uint64_t seen = 0;
    for (std::size_t bucket = 0; bucket + 1 < kBuckets; ++bucket) {
      seen += counts_[bucket];
      if (seen >= rank) return std::min(end_of(bucket), largest_);
    }
    return largest_;
  }

  friend bool operator==(const DurationHistogram&, const DurationHistogram&) = default;

 private:
  static constexpr int kBits = 6;  // 2^6 buckets to each power of two
  static constexpr std::size_t kEach = std::size_t{1} << kBits;
  static constexpr std::size_t kBuckets = kEach * (42 - kBits + 1);

  static std::size_t bucket_of(Duration time) {
    const auto value = static_cast<std::uint64_t>(std::min(time, kLongest - Duration{1}).count());
    const int shift = std::max(static_cast<int>(std::bit_width(value)) - kBits - 1, 0);  // the bucket is 2^shift wide
    return kEach * static_cast<std::size_t>(shift) + static_cast<std::size_t>(value >> shift);
  }
  /// The largest value of a bucket.
  static Duration end_of(std::size_t bucket) {
    if (bucket < kEach) return Duration{static_cast<std::int64_t>(bucket)};
    const std::size_t shift = bucket / kEach - 1;
    return Duration{static_cast<std::int64_t>(((bucket - kEach * shift + 1) << shift) - 1)};
  }

  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t count_ = 0;
  Duration total_{}, largest_{};
};

}  // namespace tutti::internal
