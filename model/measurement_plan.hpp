#pragma once
#include <vector>

#include "model/topology.hpp"

namespace tutti {

/// The combinations that are worth measuring on a machine.
struct MeasurementPlan {
  std::vector<StreamSet> combinations;
  Duration each{};  ///< warm-up and steady window of one combination
  int repetitions = 1;

  [[nodiscard]] Duration total() const { return each * static_cast<std::int64_t>(combinations.size()) * repetitions; }
};

/// Every stream alone and every pair, since they tell GPUs apart; then one combination of every class of the rest (how
/// many GPUs go up, down, both ways), over different GPUs in turn; then more of every class,
/// over further GPUs, as far as time allows. A GPU with one copy engine never goes both ways.
/// @errors InvalidInput: no GPU, no memory, more than 8 GPUs.
[[nodiscard]] Expected<MeasurementPlan> plan_measurements(const Topology& machine);

}  // namespace tutti
