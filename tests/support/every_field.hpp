#pragma once
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "model/machine/topology.hpp"

namespace tutti::internal::test {

/// The machine with a pageable memory, and with every field of its table of costs drawn: a new field fails to compile
/// there. The same for the same seed.
[[nodiscard]] Topology with_every_cost(const Topology& machine, std::uint64_t seed);

/// The same with devices, background flows, and every other field of a machine's description drawn as well.
[[nodiscard]] Topology with_every_field(const Topology& machine, std::uint64_t seed);

/// A cost that a formula may forget.
struct Forgotten {
  std::string_view what;
  std::function<void(SetupTimes&)> forget;
};
/// Every cost of a batch: all but those of `dispatch` and `job`.
[[nodiscard]] std::vector<Forgotten> forgotten_costs();

}  // namespace tutti::internal::test
