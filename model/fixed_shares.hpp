#pragma once
#include <vector>

#include "model/batch.hpp"
#include "model/topology.hpp"

namespace tutti {

/// Rates that do not depend on who else is active: each capacity is split over all streams of the batch that cross it,
/// by weight and cost; streams that take turns on an engine count like any other.
/// @source [VMS14] section 2.4, bandwidth allocation.
class FixedShares {
 public:
  /// The smallest share on a stream's way, byte/ns.
  struct Rates {
    double lead = 0;  ///< of a staged copy: on its first leg
    double data = 0;
  };

  /// Finds the rates of all transfers with bytes. The memory is kept between loads.
  void load(const Topology& machine, Basis basis, const BatchOperation& batch);

  [[nodiscard]] const Rates& rates(std::size_t stream) const { return rates_[stream]; }

 private:
  std::vector<double> load_;  // [machine capacities] weight x cost of all streams
  std::vector<Rates> rates_;  // [streams]
};

}  // namespace tutti
