#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "model/machine/topology.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal::test {

/// Links with rates in units a unit of time, and chains of steps that flow over them: what a batch is, without machine
/// and units. Everything in it may be changed and run again.
struct ChainNetwork {
  /// Flows that are alike.
  struct Kind {
    std::vector<CapacityUse> uses;
    double weight = 1;
    double alone = std::numeric_limits<double>::infinity();
  };
  /// A command: time that passes, then what flows, and what it holds meanwhile.
  struct Step {
    double time = 0;
    double bytes = 0;
    std::uint32_t kind = kNone;
    std::array<std::uint32_t, 2> locks{kNone, kNone};
  };
  struct Chain {
    double gate = 0;
    std::vector<Step> steps;
  };
  /// A step by its chain and its place there.
  using Position = std::pair<std::uint32_t, std::uint32_t>;

  std::vector<double> capacities;
  std::vector<Kind> kinds;
  std::vector<Chain> chains;
  std::uint32_t lock_count = 0;
  bool grouped_by_lock = false;  ///< chains have one transfer each, and those with one first lock take turns
  double gate_jitter = 0;
  std::vector<Position> order;  ///< in which locks serve steps; empty: first come, first served
};

/// [chains][steps] of each.
using StepTimes = std::vector<std::vector<double>>;

struct ChainRun {
  StepTimes starts, ends;
};

/// Runs a network: weighted max-min, by filling.
[[nodiscard]] ChainRun run(const ChainNetwork& network);

/// The order in which an undisturbed run serves steps.
[[nodiscard]] std::vector<ChainNetwork::Position> order_of(const ChainRun& run);

/// What the safe bound says.
[[nodiscard]] StepTimes bound(const ChainNetwork& network);

struct NetworkTraits {
  int most_transfers = 16;  ///< of a chain
  int most_routes = 3;      ///< of a chain
  bool plain = false;       ///< no locks, no times
};

/// 1 to 6 links, 1 to 7 chains, of one to three routes each; with its order.
[[nodiscard]] ChainNetwork random_network(Random& random, const NetworkTraits& traits = {});

/// A network inside what another one declares: sizes and times at most, capacities at least, gates late.
[[nodiscard]] ChainNetwork perturbed(const ChainNetwork& declared, Random& random);

/// One thing changed, within what is declared.
[[nodiscard]] ChainNetwork changed(const ChainNetwork& declared, ChainNetwork from, Random& random);

}  // namespace tutti::internal::test
