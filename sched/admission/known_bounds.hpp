#pragma once
#include <cstddef>
#include <optional>
#include <span>

#include "model/base/units.hpp"

namespace tutti::internal {

/// Bounds on responses, by task, or on latencies, by chain; empty where nothing is guaranteed.
using KnownBounds = std::span<const std::optional<Duration>>;

[[nodiscard]] inline std::optional<Duration> bound_of(KnownBounds bounds, std::size_t i) {
  return bounds.empty() ? std::nullopt : bounds[i];
}

}  // namespace tutti::internal
