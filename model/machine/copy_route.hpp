#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace tutti::internal {

/// One end of a copy: a memory or a GPU, by its position among the machine's.
struct RouteEnd {
  bool gpu = false;
  std::uint32_t position = 0;

  friend auto operator<=>(const RouteEnd&, const RouteEnd&) = default;
};

/// A copy from one end to the other, as measurements name it: between a memory and a GPU, or from GPU to GPU.
struct CopyRoute {
  RouteEnd from, to;

  friend auto operator<=>(const CopyRoute&, const CopyRoute&) = default;
};

/// Copies that are active together, each route at most once.
using CopyRouteSet = std::vector<CopyRoute>;

/// "memory1", "gpu0".
[[nodiscard]] std::string to_string(const RouteEnd& end);
/// "memory1 -> gpu0, gpu0 -> gpu1".
[[nodiscard]] std::string routes_text(const CopyRouteSet& copy_routes);

}  // namespace tutti::internal
