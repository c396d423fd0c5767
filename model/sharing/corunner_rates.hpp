#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "model/machine/topology.hpp"

namespace tutti::internal {

/// A flow that others may be active beside.
struct CorunnerFlow {
  std::uint32_t engine = 0;  ///< at most one flow of an engine, or of engines that are held together, is active
  double weight = 1;         ///< sharing weight
  double alone = 0;          ///< byte/ns, > 0: its rate with nothing else active, at least
  double most = std::numeric_limits<double>::infinity();  ///< byte/ns that it never exceeds, whatever the machine
  std::vector<CapacityUse> uses;                          ///< of capacities that it shares with others; each once
};

/// The rate that each flow has at least, whichever of the others are active, at any time: at most one of each engine.
///
/// Max-min sharing is not monotone, so no single set of co-runners is the worst. But a flow f that its own limit does
/// not hold back is held back by a full capacity c, on which nobody has a higher level (rate per weight): with l_gc =
/// weight x cost and lambda the level of f,
///   C_c <= l_fc lambda + sum over the other engines K of max over g in K of l_gc min(lambda, most_g / weight_g).
/// The right side grows with lambda, so lambda is at least where both are equal, at the capacity where that is least. A
/// capacity that all together cannot fill holds nobody back. `most` must hold for any machine whose capacities are at
/// or above those given (what a link's standard promises, not what was measured): a faster link takes more from others.
///
/// @param capacities  byte/ns, those guaranteed
/// @return [flows] byte/ns; > 0
[[nodiscard]] std::vector<double> rates_beside_corunners(std::span<const double> capacities,
                                                         std::span<const CorunnerFlow> flows);

/// What the jobs of a task move by a flow.
struct FlowVolume {
  std::size_t flow = 0;  ///< position among the flows
  double bytes = 0;      ///< of a job
  double period = 0;     ///< ns, > 0: from an arrival to the next at least
  double alive = 0;      ///< ns from its arrival for which a job may move them
};

/// How long bytes take at most where it is known what the others move meanwhile.
///
/// At each instant a flow f is at its own limit, or at a full capacity c, on which nobody has a higher level:
///   1 = (cost_fc r_f + sum over the other engines K of cost_gc r_g) / C_c,  r_g <= r_f weight_g / weight_f.
/// Over the time D that B bytes of f take, an engine K so adds at most the least of
///   what the jobs alive in D can move, ceil((D + alive) / period) of each task, times max over c of cost_gc / C_c, and
///   B times max over g of K and c of (weight_g cost_gc) / (weight_f C_c);
/// f itself adds B times the largest of 1 / alone and cost_fc / C_c. The first D that holds them is the bound: bytes
/// that are not over by then would have had to move less in it. Rivals whose jobs come once an hour count once or
/// twice, where `rates_beside_corunners` counts them all the time.
class CorunnerTimes {
 public:
  /// @param capacities  byte/ns, those guaranteed; outlive this, as flows do
  /// @param volumes     of all flows; each job's bytes are moved while it is alive
  CorunnerTimes(std::span<const double> capacities, std::span<const CorunnerFlow> flows,
                std::vector<FlowVolume> volumes);

  /// ns. Quick where the flow is that of the call before, and at once where the bytes are, too: chunks of a copy.
  /// @param most  another bound
  [[nodiscard]] double longest(std::size_t flow, double bytes, double most);

 private:
  /// What a rival adds to the time of a flow, ns.
  struct Load {
    double a_byte = 0;   // each of the rival's
    double a_level = 0;  // at most, for each of the own
  };
  void load(std::size_t flow);
  [[nodiscard]] double first_time(std::size_t flow, double bytes, double most) const;

  std::span<const double> capacities_;
  std::span<const CorunnerFlow> flows_;
  std::vector<FlowVolume> volumes_;          // by engine
  std::size_t loaded_;                       // the flow that the rest is of; beyond all: none
  double bytes_ = 0, most_ = 0, found_ = 0;  // of the last call
  double own_ = 0;                           // ns that a byte takes of its own
  std::vector<Load> loads_;                  // [flows]
};

}  // namespace tutti::internal
