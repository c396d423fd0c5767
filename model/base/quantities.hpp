#pragma once
#include <chrono>
#include <compare>
#include <cstdint>

namespace tutti {

/// An exact number of bytes.
struct Bytes {
  std::int64_t count = 0;

  constexpr auto operator<=>(const Bytes&) const = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }
  constexpr Bytes& operator+=(Bytes b) { return *this = *this + b; }
};

/// A rate in 1e9 byte/s, which is byte/ns.
struct GBps {
  double value = 0;

  constexpr auto operator<=>(const GBps&) const = default;
};

/// Time at every interface: whole nanoseconds.
using Duration = std::chrono::nanoseconds;

}  // namespace tutti
