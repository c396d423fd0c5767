#pragma once
#include <cstdint>

#include "model/base/random.hpp"
#include "model/base/units.hpp"
#include "model/base/wide.hpp"

namespace tutti::internal {

/// Jitter of one job, uniform in [0, jitter], from the seed alone. @param seed  of the job's task
inline Duration drawn_jitter(Duration jitter, std::uint64_t seed, std::uint64_t index) {
  if (jitter <= Duration{0}) return {};
  const std::uint64_t x = Random(seed + 0x9e3779b97f4a7c15U * index).next();
  const UnsignedWide range = static_cast<UnsignedWide>(jitter.count()) + 1;
  return Duration{static_cast<std::int64_t>((static_cast<UnsignedWide>(x) * range) >> 64)};
}

/// The seed of one task's jitters. @param task  its position in the set
constexpr std::uint64_t jitter_seed(std::uint64_t seed, std::size_t task) {
  return seed + 0xd1b54a32d192ed03U * (task + 1);
}

}  // namespace tutti::internal
