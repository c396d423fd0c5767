#pragma once
#include <atomic>
#include <vector>

#include "apps/lab/measuring/bus_rates.hpp"

namespace tutti::internal {

/// What threads that copy in the host's memory, as STREAM's do, take from copies to and from GPUs.
struct MemoryLoadEffect {
  std::size_t threads;               ///< one on each core that the measuring thread may use
  double copied;                     ///< by all of them, GB/s; each byte is read and written
  std::vector<BusSet> sets;          ///< the first GPU, and all together, with the first memory
  std::vector<BusRates> idle, busy;  ///< [sets]
};

/// Measures the copies of every set alone, and beside the threads.
/// @errors as `measure_bus`
[[nodiscard]] Expected<MemoryLoadEffect> measure_memory_load(Executor& executor, const BusOptions& options,
                                                             const std::atomic<bool>& interrupted);

}  // namespace tutti::internal
