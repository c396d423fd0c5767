#pragma once
#include <optional>
#include <utility>
#include <vector>

#include "model/bandwidth_model.hpp"
#include "model/measurement.hpp"
#include "model/topology.hpp"

namespace tutti {

/// A fitted machine with guaranteed bandwidths so low that the graph says of no measured combination, no repetition of
/// one and no row of the table more than what was measured or stands there.
///
/// Rows hold for all symmetric GPUs: on machines of up to MeasuredTable::kMostEnumerated GPUs here, beyond that
/// once the table is built into the machine (`BelowTable`).
/// Copies of further memories and between GPUs are not in the table: the graph guarantees what was measured of them.
/// @pre every stream of a combination has a way (`has_routes`); copies that were measured together can be active
/// together (`can_be_active`).
[[nodiscard]] Topology guarantee(const Topology& fitted, const CleanMeasurements& measurements,
                                 const MeasuredTable& table);

/// Finds guaranteed bandwidths with which the graph says of no combination more than the machine's table.
///
/// Why that makes every bound of the guaranteed graph true under the table: call g(S) the rates of the graph while the
/// streams S are active, r(S) those of the table. Where r(S) >= g(S) for every stream of every S, a run at the table's
/// rates is a run of the guaranteed graph with smaller transfers, since the same streams are active at the same times,
/// each with no fewer bytes moved. A bound holds for all transfers of at most the declared size.
///
/// All combinations that the table answers are looked at, those by exchange of symmetric GPUs among them.
class BelowTable {
 public:
  /// Why a bandwidth had to become lower.
  struct Reason {
    CapacityId capacity;
    PortSet streams = 0;         ///< the combination that asked for the lowest
    std::uint32_t position = 0;  ///< of the stream that was too fast in it
    double table = 0;            ///< what the table gives it, GB/s
    double graph = 0;            ///< what the guaranteed graph gave it, GB/s
  };

  /// Looks once at every combination, and holds back what is too fast in those of the fewest streams.
  /// @param machine  with a table, and way kinds that fit its capacities.
  /// @param gently   false: a stream that is too fast is held back by its slowest link alone, which always ends.
  /// @return [capacities] lower guaranteed bandwidths, to be looked at again; nothing where all are low enough.
  [[nodiscard]] std::optional<std::vector<double>> lower_once(const Topology& machine, bool gently);

  /// One for each bandwidth that was lowered, in the order of capacities.
  [[nodiscard]] std::vector<Reason> reasons() const;

 private:
  void load(const Topology& machine);
  void look_at(const Topology& machine, PortSet streams, bool gently);

  BandwidthModel bandwidth_;
  std::vector<std::uint32_t> positions_;          // of streams that have a way
  std::vector<std::uint32_t> kinds_;              // [positions]
  int fewest_ = 0;                                // streams of a combination that the graph gives too much
  std::vector<std::pair<double, Reason>> found_;  // what those combinations ask for
  std::vector<std::optional<Reason>> reasons_;    // [capacities]
};

}  // namespace tutti
