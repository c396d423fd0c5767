#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "model/machine/topology.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal::test {

/// Links with rates in units a unit of time, and queues of steps that flow over them: what a batch is, without machine
/// and units. Everything in it may be changed and run again.
struct QueueNetwork {
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
  struct EngineQueue {
    double gate = 0;
    std::vector<Step> steps;
  };
  /// A step by its queue and its place there.
  using Position = std::pair<std::uint32_t, std::uint32_t>;

  std::vector<double> capacities;
  std::vector<Kind> kinds;
  std::vector<EngineQueue> queues;
  std::uint32_t lock_count = 0;
  bool grouped_by_lock = false;  ///< queues have one transfer each, and those with one first lock take turns
  double gate_jitter = 0;
  std::vector<Position> order;  ///< in which locks serve steps; empty: first come, first served
};

/// [queues][steps] of each.
using StepTimes = std::vector<std::vector<double>>;

struct QueueRun {
  StepTimes starts, ends;
};

/// Runs a network: weighted max-min, by filling.
[[nodiscard]] QueueRun run(const QueueNetwork& network);

/// The order in which an undisturbed run serves steps.
[[nodiscard]] std::vector<QueueNetwork::Position> order_of(const QueueRun& run);

/// What the safe bound says.
[[nodiscard]] StepTimes bound(const QueueNetwork& network);

struct NetworkTraits {
  int most_transfers = 16;  ///< of an engine queue
  int most_routes = 3;      ///< of an engine queue
  bool plain = false;       ///< no locks, no times
};

/// 1 to 6 links, 1 to 7 queues, of one to three routes each; with its order.
[[nodiscard]] QueueNetwork random_network(Random& random, const NetworkTraits& traits = {});

/// A network inside what another one declares: sizes and times at most, capacities at least, gates late.
[[nodiscard]] QueueNetwork perturbed(const QueueNetwork& declared, Random& random);

/// One thing changed, within what is declared.
[[nodiscard]] QueueNetwork changed(const QueueNetwork& declared, QueueNetwork from, Random& random);

}  // namespace tutti::internal::test
