#pragma once
#include <cstdint>
#include <limits>

namespace tutti::internal::test {

/// The largest number that times and counts may have.
inline constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

}  // namespace tutti::internal::test
