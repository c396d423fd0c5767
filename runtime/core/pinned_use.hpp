#pragma once
#include <cstdint>

#include "model/base/quantities.hpp"

namespace tutti {

/// Pinned memory of this program on one NUMA node, as its pool gives it out: buffers, and what backends need
/// themselves. Sizes are those of blocks, which are up to 25 % larger than what was asked for.
struct PinnedUse {
  int numa_node = -1;             ///< the system's number; below 0: wherever the host put it
  Bytes in_use;                   ///< now
  Bytes kept;                     ///< given back, still pinned, for the next request
  Bytes largest;                  ///< most that was in use at once
  Bytes taken;                    ///< of all requests so far
  std::uint64_t allocations = 0;  ///< requests for which the driver pinned memory
  std::uint64_t reuses = 0;       ///< requests that got memory which was given back

  friend bool operator==(const PinnedUse&, const PinnedUse&) = default;
};

}  // namespace tutti
