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

}  // namespace tutti::internal
