#pragma once
#include <algorithm>
#include <cstdint>

namespace tutti::internal {

/// A rate, byte/ns, with its inverse, so that no calculation waits for a division.
struct Rate {
  double value, inverse;

  [[nodiscard]] Rate at_most(const Rate& other) const {
    return {std::min(value, other.value), std::max(inverse, other.inverse)};
  }
  friend bool operator==(const Rate&, const Rate&) = default;
};

/// Where a predicted rate comes from: max-min sharing over the graph; a measured combination; or the graph, corrected
/// by the measured combinations nearest to this one.
enum class RateSource : std::uint8_t { Graph, Table, Interpolated };

/// "graph", "table", "interpolated".
[[nodiscard]] constexpr const char* to_string(RateSource source) {
  switch (source) {
    case RateSource::Graph: return "graph";
    case RateSource::Table: return "table";
    case RateSource::Interpolated: return "interpolated";
  }
  return "";
}

}  // namespace tutti::internal
