#pragma once
#include <vector>

#include "model/machine/copy_route.hpp"
#include "model/machine/topology.hpp"

namespace tutti::internal {

/// GPUs that a calibration serves: combinations are interpolated, and there are 4^GPUs of the first memory alone.
inline constexpr std::size_t kMostCalibrated = 8;
/// Up to this many GPUs, all of these are looked at one by one.
inline constexpr std::size_t kMostEnumerated = 4;

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

/// The combinations worth measuring: every stream alone and every pair, since they distinguish GPUs; then one
/// combination of every class of the rest (numbers of GPUs that copy up, down, in both directions), over different GPUs
/// in turn; then more of every class, over further GPUs, as far as time allows. A GPU with one copy engine never copies
/// in both directions.
///
/// For every further memory: every stream alone, all up, all down, all in both directions, and half of the GPUs each
/// from this and from the first memory. Between GPUs that reach each other: every copy alone, in both directions, rings
/// of every step, all into one GPU; then copies between GPUs beside copies of the first memory: each end of a copy
/// beside it up and down, and a ring beside all up, all down and all in both directions.
/// @errors InvalidInput: no GPU, no memory, more than kMostCalibrated GPUs.
[[nodiscard]] Expected<MeasurementPlan> plan_measurements(const Topology& machine);

}  // namespace tutti::internal
