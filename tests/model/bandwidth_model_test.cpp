#include "model/bandwidth_model.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/random.hpp"
#include "tests/support/random_machine.hpp"
#include "tests/support/slow_max_min.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti {
namespace {

/// mem0 -> hub0 at `first` GB/s, then one link a GPU; all links have the same rate back.
Topology star(double first, const std::vector<double>& second, const std::string& rest = "") {
  std::string vertices = "  vertices:\n    mem0: {kind: memory}\n    hub0: {kind: hub}\n";
  std::string links = "  links:\n    - {from: mem0, to: hub0, bandwidth: " + std::to_string(first) +
                      " GB/s, back: " + std::to_string(first) + " GB/s}\n";
  for (std::size_t i = 0; i < second.size(); ++i) {
    const std::string gpu = "gpu" + std::to_string(i);
    const std::string rate = std::to_string(second[i]) + " GB/s";
    vertices += "    " + gpu + ": {kind: gpu}\n";
    links += "    - {from: hub0, to: " + gpu + ", bandwidth: " + rate + ", back: " + rate + "}\n";
  }
  return test::make_machine(vertices + links + rest);
}

struct Flow {
  std::string_view from, to;
  double weight = 1;
  std::uint32_t chain = 0;  ///< 0: one of its own
};

/// A loaded model; ids are positions in `flows`.
BandwidthModel load(const Topology& machine, const std::vector<Flow>& flows, RateRule rule = RateRule::MaxMin) {
  BandwidthModel model;
  model.reset(machine, Basis::Nominal);
  std::uint32_t own = 1000;
  for (const Flow& flow : flows) {
    const auto route = machine.route(*machine.find_vertex(flow.from), *machine.find_vertex(flow.to));
    model.add_flow(flow.chain != 0 ? flow.chain : own++, route, {}, flow.weight);
  }
  model.finish(rule);
  return model;
}

std::vector<double> max_min(BandwidthModel model, std::vector<std::uint32_t> active) {
  std::vector<double> rates(model.flow_count(), -1);
  for (const std::uint32_t flow : active) model.start(model.group(flow));
  model.solve();
  for (const std::uint32_t flow : active) rates[flow] = model.rate(flow);
  return rates;
}

std::vector<double> max_min(const Topology& machine, const std::vector<Flow>& flows) {
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < flows.size(); ++i) all.push_back(i);
  return max_min(load(machine, flows), all);
}

std::vector<double> allocate(const Topology& machine, const std::vector<Flow>& flows) {
  const BandwidthModel model = load(machine, flows, RateRule::Allocated);
  std::vector<double> rates;
  for (std::uint32_t flow = 0; flow < flows.size(); ++flow) rates.push_back(model.rate(flow));
  return rates;
}

void expect_rates(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], 1e-12 * std::abs(expected[i])) << "flow " << i;
}

// 8 over two links of 6: 4 each.
TEST(BandwidthModel, TwoFlowsSplitAFullLink) {
  expect_rates(max_min(star(8, {6, 6}), {{"mem0", "gpu0"}, {"mem0", "gpu1"}}), {4, 4});
}

// All start together and share only the first link of 9; one goes on over a link of 1 and leaves 8 to the other two:
//   1, (9 - 1) / 2 = 4, 4.  A model that splits the first link once, evenly, gives 1, 3, 3.
TEST(BandwidthModel, WhatASlowFlowLeavesOnTheFirstLinkGoesToTheOthers) {
  const std::vector<Flow> flows{{"mem0", "gpu0"}, {"mem0", "gpu1"}, {"mem0", "gpu2"}};
  expect_rates(max_min(star(9, {1, 100, 100}), flows), {1, 4, 4});
  expect_rates(max_min(star(9, {100, 100, 1}), flows), {4, 4, 1});
  expect_rates(max_min(star(9, {100, 1, 3.5}), flows), {4.5, 1, 3.5});
}

// First link 12: 1 and 2 are held by their own links, the other two share the 9 that are left.
TEST(BandwidthModel, FourFlowsThatShareOnlyTheirFirstLink) {
  expect_rates(
      max_min(star(12, {1, 2, 20, 20}), {{"mem0", "gpu0"}, {"mem0", "gpu1"}, {"mem0", "gpu2"}, {"mem0", "gpu3"}}),
      {1, 2, 4.5, 4.5});
}

// The first link is wide enough for all: nobody is slowed down.
TEST(BandwidthModel, AWideFirstLinkSlowsNobody) {
  expect_rates(max_min(star(30, {6, 7, 8}), {{"mem0", "gpu0"}, {"mem0", "gpu1"}, {"mem0", "gpu2"}}), {6, 7, 8});
}

// Weights 2 : 1 on 9: 6 and 3. With the first held at 4 by its own link, the other has 5.
TEST(BandwidthModel, WeightsDivideAFullLink) {
  expect_rates(max_min(star(9, {50, 50}), {{"mem0", "gpu0", 2}, {"mem0", "gpu1", 1}}), {6, 3});
  expect_rates(max_min(star(9, {4, 50}), {{"mem0", "gpu0", 2}, {"mem0", "gpu1", 1}}), {4, 5});
}

// In at cost 1, out at cost 1.5, together at most 10: rate x (1 + 1.5) = 10, so 4 each.
TEST(BandwidthModel, ASharedCapacityCountsCostsOverBothDirections) {
  const Topology machine = star(50, {50, 50},
                                "  shared:\n    - {name: chip, capacity: 10 GB/s, members: [{from: mem0, to: hub0},"
                                " {from: hub0, to: mem0, cost: 1.5}]}\n");
  expect_rates(max_min(machine, {{"mem0", "gpu0"}, {"gpu1", "mem0"}}), {4, 4});
  // alone, the way out has 10 / 1.5
  expect_rates(max_min(machine, {{"gpu1", "mem0"}}), {10 / 1.5});
}

// A way that goes through the capacity twice, in and out of the memory, takes 1 + 1.3 = 2.3 of it for each byte:
// 23 / 2.3 = 10 alone; beside a flow that takes 1: r x (2.3 + 1) = 23.
TEST(BandwidthModel, AWayMayCrossACapacityTwice) {
  const Topology machine = star(50, {50, 50, 50},
                                "  shared:\n    - {name: memory, capacity: 23 GB/s, members: [{from: mem0, to: hub0},"
                                " {from: hub0, to: mem0, cost: 1.3}]}\n");
  const auto route = [&](std::string_view from, std::string_view to) {
    return machine.route(*machine.find_vertex(from), *machine.find_vertex(to));
  };
  BandwidthModel model;
  model.reset(machine, Basis::Nominal);
  model.add_flow(0, route("gpu0", "mem0"), route("mem0", "gpu1"), 1);
  model.add_flow(1, route("mem0", "gpu2"), {}, 1);
  model.finish(RateRule::MaxMin);
  EXPECT_DOUBLE_EQ(model.alone(0), 10);
  expect_rates(max_min(model, {0, 1}), {23 / 3.3, 23 / 3.3});
}

// Only the active ones count: with one of three gone, 9 is split in two.
TEST(BandwidthModel, OnlyActiveFlowsShare) {
  BandwidthModel model = load(star(9, {6, 6, 6}), {{"mem0", "gpu0"}, {"mem0", "gpu1"}, {"mem0", "gpu2"}});
  expect_rates(max_min(model, {2, 0}), {4.5, -1, 4.5});
  expect_rates(max_min(model, {1}), {-1, 6, -1});
  expect_rates(max_min(model, {}), {-1, -1, -1});
}

TEST(BandwidthModel, GuaranteedRatesAreTheOtherBasis) {
  const Topology machine = test::make_machine(
      "  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}\n  links: [{from: mem0, "
      "to: gpu0, bandwidth: {nominal: 8 GB/s, guaranteed: 7 GB/s}}]\n");
  BandwidthModel model;
  for (const auto& [basis, rate] : {std::pair(Basis::Nominal, 8.0), std::pair(Basis::Guaranteed, 7.0)}) {
    model.reset(machine, basis);
    model.add_flow(0, machine.route(VertexId(0), VertexId(1)), {}, 1);
    model.finish(RateRule::MaxMin);
    EXPECT_EQ(model.alone(0), rate);
  }
}

// Weights 1000 : 0.001 on 10, the first held at 4 by its own link: the tiny one has all that is left.
TEST(BandwidthModel, WeightsFarApartLoseNothing) {
  expect_rates(max_min(star(10, {4, 50}), {{"mem0", "gpu0", 1000}, {"mem0", "gpu1", 0.001}}), {4, 6});
  expect_rates(
      max_min(star(10, {4, 50, 50}), {{"mem0", "gpu0", 1000}, {"mem0", "gpu1", 0.001}, {"mem0", "gpu2", 0.002}}),
      {4, 2, 4});
}

// [VMS14] section 2.4: each of four streams keeps 8 / 4 = 2 of the shared link, which is below its own 6.
TEST(BandwidthAllocation, SplitsEachCapacityOverAllThatEverCrossIt) {
  expect_rates(
      allocate(star(8, {6, 6, 6, 6}), {{"mem0", "gpu0"}, {"mem0", "gpu1"}, {"mem0", "gpu2"}, {"mem0", "gpu3"}}),
      {2, 2, 2, 2});
}

// 8 split in two is 4; the first keeps only its own 1, and what it leaves stays unused.
TEST(BandwidthAllocation, WhatIsLeftOverStaysUnused) {
  expect_rates(allocate(star(8, {1, 6}), {{"mem0", "gpu0"}, {"mem0", "gpu1"}}), {1, 4});
}

// Weights 3 : 1 on 8: 6 and 2. With costs 1 and 2 on a capacity of 10 and equal weights: each 10 / (1 + 2).
TEST(BandwidthAllocation, GoesByWeightAndCost) {
  expect_rates(allocate(star(8, {50, 50}), {{"mem0", "gpu0", 3}, {"mem0", "gpu1", 1}}), {6, 2});
  const Topology machine = star(50, {50, 50},
                                "  shared:\n    - {name: chip, capacity: 10 GB/s, members: [{from: mem0, to: hub0},"
                                " {from: hub0, to: mem0, cost: 2}]}\n");
  expect_rates(allocate(machine, {{"mem0", "gpu0"}, {"gpu1", "mem0"}}), {10.0 / 3, 10.0 / 3});
}

// The first two follow each other in one chain and count once: 8 / 2 each.
TEST(BandwidthAllocation, AChainCountsOnce) {
  expect_rates(allocate(star(8, {6, 6}), {{"mem0", "gpu0", 1, 7}, {"mem0", "gpu0", 1, 7}, {"mem0", "gpu1"}}),
               {4, 4, 4});
}

// ---- random networks

struct Network {
  BandwidthModel model;
  std::vector<test::SlowFlow> flows;
  std::vector<std::uint32_t> active;
};

/// Up to twelve flows over random ways, some through a memory; up to two of one chain, of which one is active.
Network random_network(const Topology& machine, test::Random& random, RateRule rule) {
  Network network;
  network.model.reset(machine, Basis::Nominal);
  const auto pick = [&](std::span<const VertexId> from) { return from[random.below(from.size())]; };
  const int chains = random.between(1, 12);
  for (std::uint32_t chain = 0; chain < static_cast<std::uint32_t>(chains); ++chain) {
    const int members = random.between(1, 2);
    const auto first_id = static_cast<std::uint32_t>(network.flows.size());
    for (int i = 0; i < members; ++i) {
      auto first = machine.route(pick(machine.memories()), pick(machine.gpus()));
      auto second = random.one_in(3) ? machine.route(pick(machine.gpus()), pick(machine.memories())) : first.first(0);
      if (random.one_in(2)) std::swap(first, second);
      if (first.empty()) std::swap(first, second);
      const double weight = random.real(0.3, 3);
      network.model.add_flow(chain, first, second, weight);
      std::vector<LinkId> links(first.begin(), first.end());
      links.insert(links.end(), second.begin(), second.end());
      network.flows.push_back({weight, test::slow_costs(machine, links)});
    }
    if (!random.one_in(4))
      network.active.push_back(first_id +
                               static_cast<std::uint32_t>(random.below(static_cast<std::uint64_t>(members))));
  }
  network.model.finish(rule);
  for (std::size_t i = network.active.size(); i > 1; --i)
    std::swap(network.active[i - 1], network.active[random.below(i)]);
  return network;
}

TEST(BandwidthModel, RandomNetworksAreFairByDefinitionAndLikeTheSlowSolver) {
  test::Random random(7);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Topology machine = test::random_machine(seed);
    const auto capacities = test::slow_capacities(machine, Basis::Nominal);
    for (int round = 0; round < 20; ++round) {
      const Network network = random_network(machine, random, RateRule::MaxMin);
      const auto rates = max_min(network.model, network.active);
      std::vector<test::SlowFlow> flows;
      std::vector<double> fast;
      for (const std::uint32_t id : network.active) {
        flows.push_back(network.flows[id]);
        fast.push_back(rates[id]);
      }
      EXPECT_EQ(test::find_unfairness(capacities, flows, fast).value_or("fair"), "fair") << "seed " << seed;
      const auto slow = test::slow_max_min(capacities, flows);
      for (std::size_t i = 0; i < fast.size(); ++i) EXPECT_NEAR(fast[i], slow[i], 1e-9 * slow[i]) << "seed " << seed;
    }
  }
}

// A share is never more than what is left when all others take theirs.
TEST(BandwidthAllocation, NeverExceedsACapacityOfRandomNetworks) {
  test::Random random(8);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Topology machine = test::random_machine(seed);
    const auto capacities = test::slow_capacities(machine, Basis::Nominal);
    const Network network = random_network(machine, random, RateRule::Allocated);
    for (std::size_t c = 0; c < capacities.size(); ++c) {
      double used = 0;
      for (const std::uint32_t id : network.active) used += network.model.rate(id) * network.flows[id].cost[c];
      EXPECT_LE(used, capacities[c] * (1 + 1e-12)) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tutti
