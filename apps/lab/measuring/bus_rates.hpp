#pragma once
#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "runtime/core/executor.hpp"

namespace tutti::internal {

/// Copies of one row of the bus report: each GPU with one memory.
struct BusFlow {
  VertexId memory, gpu;
  friend bool operator==(const BusFlow&, const BusFlow&) = default;
};
struct BusSet {
  std::string memory;          ///< its name; "nearest", "farthest": of each GPU its own
  std::vector<BusFlow> flows;  ///< one a GPU
};

/// Every GPU alone with every memory that it has a route from; the first two GPUs together, the first three, ... all,
/// with each memory; and where there are several memories whose pages are pinned, each GPU with the nearest of these,
/// and with the farthest: by the links between, then by rate, then by the order of the file.
[[nodiscard]] std::vector<BusSet> bus_sets(const Topology& machine);

/// Rates of a set: all its copies up together, all down together, both.
struct BusRates {
  std::array<double, 3> gbps{};
};

struct BusOptions {
  Bytes copy{64 << 20};
  int runs = 5;  ///< whose median counts
};

/// Measures each set: steady rates of queues of copies.
/// @return [sets]
/// @errors as `ScratchBuffers::make` and `Executor::prepare`. Machine: a run failed. InvalidInput: interrupted.
[[nodiscard]] Expected<std::vector<BusRates>> measure_bus(Executor& executor, const std::vector<BusSet>& sets,
                                                          const BusOptions& options,
                                                          const std::atomic<bool>& interrupted);

/// Rates of a set in percent of the sum of those of its flows alone.
/// @param rates  [sets]
/// @pre   each flow of the set is alone in one of the sets
[[nodiscard]] std::array<double, 3> percent_of_flows_alone(const std::vector<BusSet>& sets,
                                                           const std::vector<BusRates>& rates, std::size_t set);

}  // namespace tutti::internal
