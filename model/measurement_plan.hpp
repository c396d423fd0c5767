#pragma once
#include <vector>

#include "model/copy_route.hpp"
#include "model/topology.hpp"

namespace tutti {

/// The combinations that are worth measuring on a machine.
struct MeasurementPlan {
  std::vector<PortSet> combinations;      ///< of the first memory
  std::vector<CopyRouteSet> copy_routes;  ///< with copies of further memories, or between GPUs
  Duration each{};                        ///< warm-up and steady window of one combination
  int repetitions = 1;

  [[nodiscard]] Duration total() const {
    return each * static_cast<std::int64_t>(combinations.size() + copy_routes.size()) * repetitions;
  }
};

/// Every stream alone and every pair, since they tell GPUs apart; then one combination of every class of the rest (how
/// many GPUs go up, down, both ways), over different GPUs in turn; then more of every class,
/// over further GPUs, as far as time allows. A GPU with one copy engine never goes both ways.
///
/// Of every further memory: every stream alone, all up, all down, all both ways, and half of the GPUs each from this
/// and from the first memory. Between GPUs that reach each other: every copy alone, both ways, rings of every step, all
/// into one GPU; then what copies between GPUs and copies of the first memory do to each other: each end of a copy
/// beside it up and down, and a ring beside all up, all down and all both ways.
/// @errors InvalidInput: no GPU, no memory, more than 8 GPUs.
[[nodiscard]] Expected<MeasurementPlan> plan_measurements(const Topology& machine);

}  // namespace tutti
