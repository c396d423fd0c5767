#pragma once
#include <optional>
#include <vector>

#include "model/batch/batch.hpp"
#include "model/machine/topology.hpp"

namespace tutti::internal {

/// Adds what the transfers with bytes of a batch put on each capacity of a machine: the sum of weight x cost.
/// @param load  [machine capacities]
void add_load(const Topology& machine, Basis basis, const Batch& batch, std::vector<double>& load);

/// The copy ports of the transfers with bytes of a batch.
[[nodiscard]] PortSet ports_of(const Batch& batch);

/// Rates that do not depend on the other active transfers: each capacity is split over all streams of the batch that
/// cross it, or of its whole application, by weight and cost; streams that take turns on an engine count like any
/// other.
///
/// With nominal bandwidths a copy at a port of the machine's measured table has no larger share than the least that the
/// table gives it while any of the batch's other streams are active: the machine can keep every share at every instant,
/// so starting all at once without shares is never later for any transfer.
/// @source [VMS14] section 2.4, bandwidth allocation; the table is ours.
class FixedShares {
 public:
  /// The smallest share on a stream's route, byte/ns.
  struct Rates {
    double fill = 0;  ///< of a staged copy: on its first leg
    double data = 0;
  };

  /// Finds the rates of all transfers with bytes. The memory is kept between loads.
  /// @param application  whose streams have shares; empty: the batch's alone
  void load(const Topology& machine, Basis basis, const Batch& batch, const ApplicationLoad& application = {});

  [[nodiscard]] const Rates& rates(std::size_t stream) const { return rates_[stream]; }

 private:
  void hold_to_table(const Topology& machine, const Batch& batch, const PortSet& all);
  void find_least(const Topology& machine, const PortSet& all);

  std::vector<double> load_;  // [machine capacities] weight x cost of all streams
  std::vector<Rates> rates_;  // [streams]

  // Cached from the table while machine and ports are the same: there may be many combinations.
  std::optional<Topology> of_machine_;
  PortSet of_ports_;
  std::vector<double> least_;  // [of_ports_] rate in the slowest combination of `of_ports_`
};

}  // namespace tutti::internal
