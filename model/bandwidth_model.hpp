#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "model/topology.hpp"

namespace tutti {

/// The rates of the transfers that are active together.
///
/// The problem: flow i has weight w_i and takes cost_ic of capacity c for each byte. Rates r_i = w_i * lambda rise
/// together until a capacity is full, sum_i cost_ic * r_i = C_c; its flows stay there and the others go on (weighted
/// max-min fairness).
///
/// Loaded once a batch with every flow that may ever be active, then asked many times. Capacities that only one chain
/// of flows crosses become a limit of that flow, and those that its flows cannot fill together are dropped. The memory
/// is kept between loads: after the first, nothing is allocated.
class BandwidthModel {
 public:
  /// Forgets all flows and takes the capacities of a machine.
  void reset(const Topology& machine, Basis basis);

  /// Adds a flow; its position is its id. Flows of one chain are added in a row and are never active together.
  /// @param first,second  the links of its way, in two pieces; the second may be empty.
  /// @param weight        > 0.
  void add_flow(std::uint32_t chain, std::span<const LinkId> first, std::span<const LinkId> second, double weight);

  /// Ends the loading.
  void finish();

  /// Max-min rates of the active flows.
  /// @param active  ids, each once.
  /// @param rates   [flows] byte/ns; the entries of active flows are written, the others left alone.
  void max_min(std::span<const std::uint32_t> active, std::span<double> rates);

  /// The smallest share on each flow's way, each capacity split over all chains that ever cross it, by weight and cost.
  /// @param rates  [flows] byte/ns.
  /// @source [VMS14] section 2.4, bandwidth allocation.
  void allocate(std::span<double> rates);

  [[nodiscard]] std::size_t flow_count() const { return flows_.size(); }
  /// Rate of a flow with nothing else under way, byte/ns.
  [[nodiscard]] double alone(std::uint32_t flow) const { return flows_[flow].limit * flows_[flow].weight; }

 private:
  struct Flow {
    double weight;
    double limit;  // highest lambda that its own capacities allow
    std::uint32_t chain;
    std::uint32_t use_begin, use_end;        // all of its uses
    std::uint32_t shared_begin, shared_end;  // those of capacities that can bind several chains
  };
  struct Use {
    std::uint32_t capacity;  // local
    double cost;
  };
  struct Capacity {
    double value;
    std::uint32_t chain;  // the first that crosses it
    bool several;         // chains cross it
    double demand;        // the most that all flows could take of it together
    std::uint32_t row;    // among the binding ones
  };
  struct Binding {
    double value;
    double left;
    double load;  // sum of weight x cost over the flows without a rate yet
    double full;  // the same over all active flows
    std::uint32_t flows;
  };

  void add_use(const CapacityUse& use, std::uint32_t chain, std::uint32_t flow_begin);
  void load_bindings(std::span<const std::uint32_t> active);
  void recount(std::uint32_t row);
  void fix(std::uint32_t flow, double rate, std::span<double> rates);

  std::span<const double> capacities_;
  const Topology* machine_ = nullptr;
  std::uint32_t epoch_ = 0;
  std::vector<std::uint64_t> local_of_;  // [machine capacities] epoch << 32 | local position
  std::vector<Capacity> local_;
  std::vector<Use> uses_;
  std::vector<Use> shared_;  // `capacity` is a row of `bindings_`
  std::vector<Flow> flows_;
  std::vector<Binding> bindings_;
  std::vector<std::uint32_t> open_;  // flows without a rate yet
  std::vector<double> load_;         // [local capacities] of all chains
  std::vector<double> largest_;      // [local capacities] of one chain
};

}  // namespace tutti
