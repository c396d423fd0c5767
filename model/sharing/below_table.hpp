#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "model/machine/topology.hpp"
#include "model/sharing/bandwidth_model.hpp"

namespace tutti::internal {

/// Finds guaranteed bandwidths with which the graph predicts for no combination more than the machine's table.
///
/// Every bound of the guaranteed graph then holds under the table: let g(S) be the rates of the graph while the streams
/// S are active, r(S) those of the table. Where r(S) >= g(S) for every stream of every S, a run at the table's rates is
/// a run of the guaranteed graph with smaller transfers, since the same streams are active at the same times, each with
/// no fewer bytes moved. A bound holds for all transfers of at most the declared size.
///
/// All combinations that the table has and that can be active are checked, including those by exchange of symmetric
/// GPUs.
class BelowTable {
 public:
  /// @param machine  with a table.
  explicit BelowTable(const Topology& machine);

  /// The machine with guaranteed bandwidths that are low enough.
  /// @param machine  the one given above.
  [[nodiscard]] Topology lower(Topology machine);

  /// Why a bandwidth had to become lower.
  struct Reason {
    CapacityId capacity;
    PortSet ports;     ///< the combination that required the lowest value
    PortId port;       ///< where a copy was too fast in it
    double table = 0;  ///< what the table gives it, GB/s
    double graph = 0;  ///< what the guaranteed graph gave it, GB/s
  };

  /// One for each bandwidth that was lowered, in the order of capacities.
  [[nodiscard]] std::vector<Reason> reasons() const;

 private:
  /// Checks every combination once, and holds back the streams that are too fast in combinations of the fewest streams.
  /// @param machine  the same but for its guaranteed bandwidths, with route classes that fit them.
  /// @param gently   false: a stream that is too fast is held back by its slowest link alone, which always ends.
  /// @return [capacities] lower guaranteed bandwidths, to be checked again; nothing where all are low enough.
  [[nodiscard]] std::optional<std::vector<double>> lower_once(const Topology& machine, bool gently);

  [[nodiscard]] std::uint32_t group_at(PortId port) const;
  void look_at(const Topology& machine, const MeasuredTable::Known& known, bool gently);

  BandwidthModel bandwidth_;
  std::vector<RouteClass> own_classes_;
  std::vector<PortId> ports_;                     // of the table, where a copy is possible
  std::vector<std::size_t> possible_;             // combinations of the table that can be active
  std::vector<std::uint32_t> kinds_;              // [ports]
  std::size_t fewest_ = 0;                        // ports of a combination that the graph gives too much
  std::vector<std::pair<double, Reason>> found_;  // values that those combinations require
  std::vector<std::optional<Reason>> reasons_;    // [capacities]
};

}  // namespace tutti::internal
