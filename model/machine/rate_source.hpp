#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace tutti {

/// Where a rate comes from: max-min sharing over the graph; a measured combination; or the graph, corrected by the
/// measured combinations nearest to this one.
enum class RateSource : std::uint8_t { Graph, Table, Interpolated };

/// "graph", "table", "interpolated".
[[nodiscard]] constexpr std::string_view to_string(RateSource source) {
  constexpr std::array<std::string_view, 3> names{"graph", "table", "interpolated"};
  return names[static_cast<std::size_t>(source)];
}

}  // namespace tutti
