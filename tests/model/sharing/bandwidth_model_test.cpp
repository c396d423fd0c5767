#include "model/sharing/bandwidth_model.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "model/machine/route_class.hpp"
#include "tests/support/random.hpp"
#include "tests/support/random_machine.hpp"
#include "tests/support/slow_max_min.hpp"
#include "tests/support/trees.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

using test::star;

struct Flow {
  std::string_view from, to;
  double weight = 1;
};

/// A loaded model and what it looks into; flows are numbered as they were added.
struct Loaded {
  std::vector<RouteClass> route_classes;
  BandwidthModel model;
  std::vector<std::uint32_t> kinds;  ///< [flows]

  Loaded(const Topology& machine, std::vector<RouteClass> of, Basis basis = Basis::Nominal)
      : route_classes(std::move(of)) {
    model.reset(machine, basis, route_classes, route_classes.size());
    for (std::size_t i = 0; i < route_classes.size(); ++i)
      kinds.push_back(model.add_flow(static_cast<std::uint32_t>(machine.route_classes().size() + i)));
    model.finish();
  }
};

std::vector<RouteClass> routes_of(const Topology& machine, const std::vector<Flow>& flows) {
  std::vector<RouteClass> route_classes;
  for (const Flow& flow : flows) {
    const auto route = machine.route(*machine.find_vertex(flow.from), *machine.find_vertex(flow.to));
    route_classes.push_back(make_route_class(machine, route, {}, flow.weight));
  }
  return route_classes;
}

/// The rates of the flows that are active, -1 of the others.
std::vector<double> max_min(Loaded& loaded, const std::vector<std::uint32_t>& active) {
  std::vector<double> rates(loaded.kinds.size(), -1);
  const auto group = [&](std::uint32_t flow) { return loaded.model.group(loaded.kinds[flow]); };
  for (const std::uint32_t flow : active) loaded.model.start(group(flow));
  loaded.model.solve();
  for (const std::uint32_t flow : active) {
    const auto [rate, inverse] = loaded.model.rate(group(flow));
    EXPECT_NEAR(rate * inverse, 1, 1e-12);
    rates[flow] = rate;
  }
  for (const std::uint32_t flow : active) loaded.model.stop(group(flow));
  return rates;
}

std::vector<double> max_min(const Topology& machine, const std::vector<Flow>& flows) {
  Loaded loaded(machine, routes_of(machine, flows));
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < flows.size(); ++i) all.push_back(i);
  return max_min(loaded, all);
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
  Loaded loaded(machine, {make_route_class(machine, route("gpu0", "mem0"), route("mem0", "gpu1"), 1),
                          make_route_class(machine, route("mem0", "gpu2"), {}, 1)});
  EXPECT_DOUBLE_EQ(loaded.model.alone(0), 10);
  expect_rates(max_min(loaded, {0, 1}), {23 / 3.3, 23 / 3.3});
}

// Only the active ones count: with one of three gone, 9 is split in two.
TEST(BandwidthModel, OnlyActiveFlowsShare) {
  const Topology machine = star(9, {6, 6, 6});
  Loaded loaded(machine, routes_of(machine, {{"mem0", "gpu0"}, {"mem0", "gpu1"}, {"mem0", "gpu2"}}));
  expect_rates(max_min(loaded, {2, 0}), {4.5, -1, 4.5});
  expect_rates(max_min(loaded, {1}), {-1, 6, -1});
  expect_rates(max_min(loaded, {}), {-1, -1, -1});
}

TEST(BandwidthModel, GuaranteedRatesAreTheOtherBasis) {
  const Topology machine = test::make_machine(
      "  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}\n  links: [{from: mem0, "
      "to: gpu0, bandwidth: {nominal: 8 GB/s, guaranteed: 7 GB/s}}]\n");
  for (const auto& [basis, rate] : {std::pair(Basis::Nominal, 8.0), std::pair(Basis::Guaranteed, 7.0)}) {
    EXPECT_EQ(Loaded(machine, routes_of(machine, {{"mem0", "gpu0"}}), basis).model.alone(0), rate);
  }
}

// Weights 1000 : 0.001 on 10, the first held at 4 by its own link: the tiny one has all that is left.
TEST(BandwidthModel, WeightsFarApartLoseNothing) {
  expect_rates(max_min(star(10, {4, 50}), {{"mem0", "gpu0", 1000}, {"mem0", "gpu1", 0.001}}), {4, 6});
  expect_rates(
      max_min(star(10, {4, 50, 50}), {{"mem0", "gpu0", 1000}, {"mem0", "gpu1", 0.001}, {"mem0", "gpu2", 0.002}}),
      {4, 2, 4});
}

// A flow with a rate of its own keeps it, and takes nothing from the others: 9 over two links of 6 is 4.5 each.
TEST(BandwidthModel, AFixedFlowKeepsItsRate) {
  const Topology machine = star(9, {6, 6, 6});
  const std::vector<RouteClass> route_classes =
      routes_of(machine, {{"mem0", "gpu0"}, {"mem0", "gpu1"}, {"mem0", "gpu2"}});
  const auto own = static_cast<std::uint32_t>(machine.route_classes().size());
  BandwidthModel model;
  model.reset(machine, Basis::Nominal, route_classes, 3);
  const std::uint32_t kinds[] = {model.add_flow(own), model.add_fixed_flow(own + 1, 0.25), model.add_flow(own + 2)};
  model.finish();
  for (const std::uint32_t kind : kinds) model.start(model.group(kind));
  model.solve();
  EXPECT_EQ(model.rate(model.group(kinds[1])).value, 0.25);
  EXPECT_DOUBLE_EQ(model.rate(model.group(kinds[0])).value, 4.5);
  EXPECT_DOUBLE_EQ(model.rate(model.group(kinds[2])).value, 4.5);
}

// The machine's own kinds are the same as those made from its routes.
TEST(RouteClass, OfTheMachineIsThatOfItsRoute) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Topology machine = test::random_machine(seed);
    for (const VertexId memory : machine.memories()) {
      for (const VertexId gpu : machine.gpus()) {
        for (const auto& [from, to, weight] :
             {std::tuple(memory, gpu, machine.weights().h2d), std::tuple(gpu, memory, machine.weights().d2h)}) {
          const auto route = machine.route(from, to);
          const std::uint32_t kind = machine.route_class(from, to);
          ASSERT_EQ(kind == kNone, route.empty());
          if (route.empty()) continue;
          EXPECT_EQ(machine.route_classes()[kind], make_route_class(machine, route, {}, weight));
        }
        EXPECT_EQ(machine.route_class(gpu, gpu), kNone);
      }
    }
  }
}

// ---- random networks

struct Network {
  Loaded loaded;
  std::vector<test::SlowFlow> flows;
  std::vector<std::uint32_t> active;
};

/// Up to twelve flows over random ways, some through a memory; of those that leave or reach one GPU by the same engine
/// one is active, as the model asks for.
Network random_network(const Topology& machine, test::Random& random) {
  std::vector<RouteClass> route_classes;
  std::vector<test::SlowFlow> flows;
  std::vector<std::uint32_t> active;
  std::set<EngineId> busy;
  const auto pick = [&](std::span<const VertexId> from) { return from[random.below(from.size())]; };
  const int count = random.between(1, 12);
  for (int i = 0; i < count; ++i) {
    const VertexId in = pick(machine.gpus());
    const VertexId out = pick(machine.gpus());
    auto first = machine.route(pick(machine.memories()), in);
    auto second = random.one_in(3) ? machine.route(out, pick(machine.memories())) : first.first(0);
    std::set<EngineId> engines{machine.engine_in(in), machine.engine_out(out)};
    if (first.empty()) std::swap(first, second);
    if (first.empty()) continue;
    const double weight = random.real(0.3, 3);
    route_classes.push_back(make_route_class(machine, first, second, weight));
    std::vector<LinkId> links(first.begin(), first.end());
    links.insert(links.end(), second.begin(), second.end());
    flows.push_back({weight, test::slow_costs(machine, links)});
    const bool free = std::none_of(engines.begin(), engines.end(), [&](EngineId e) { return busy.contains(e); });
    if (!free || random.one_in(4)) continue;
    busy.insert(engines.begin(), engines.end());
    active.push_back(static_cast<std::uint32_t>(flows.size() - 1));
  }
  for (std::size_t i = active.size(); i > 1; --i) std::swap(active[i - 1], active[random.below(i)]);
  return {Loaded(machine, route_classes), flows, active};
}

TEST(BandwidthModel, RandomNetworksAreFairByDefinitionAndLikeTheSlowSolver) {
  test::Random random(7);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Topology machine = test::random_machine(seed);
    const auto capacities = test::slow_capacities(machine, Basis::Nominal);
    for (int round = 0; round < 20; ++round) {
      Network network = random_network(machine, random);
      const auto rates = max_min(network.loaded, network.active);
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

// ---- many rows: what is kept from event to event, beside a solution from scratch

/// All copies between memories and GPUs that a machine has, or some of them at random; of each engine one is active.
struct Copies {
  std::vector<RouteClass> route_classes;
  std::vector<test::SlowFlow> flows;
  std::vector<EngineId> engines;
};

Copies random_copies(const Topology& machine, std::size_t count, test::Random& random) {
  Copies copies;
  for (std::size_t i = 0; i < count; ++i) {
    const VertexId gpu = machine.gpus()[random.below(machine.gpus().size())];
    const VertexId memory = machine.memories()[random.below(machine.memories().size())];
    const bool in = random.one_in(2);
    const auto route = in ? machine.route(memory, gpu) : machine.route(gpu, memory);
    if (route.empty()) continue;
    const double weight = random.one_in(2) ? 1 : random.real(0.3, 3);
    copies.route_classes.push_back(make_route_class(machine, route, {}, weight));
    copies.flows.push_back({weight, test::slow_costs(machine, route)});
    copies.engines.push_back(in ? machine.engine_in(gpu) : machine.engine_out(gpu));
  }
  return copies;
}

/// Starts and stops copies in random order, one or some at a time, and compares the rates after each with the slow
/// solver's, and now and then with those of a fresh model.
void expect_kept_levels_right(const Topology& machine, const Copies& copies, int events, test::Random& random) {
  const auto capacities = test::slow_capacities(machine, Basis::Nominal);
  Loaded loaded(machine, copies.route_classes);
  loaded.model.restart();
  std::vector<std::uint32_t> active;
  std::set<EngineId> busy;
  for (int event = 0; event < events; ++event) {
    for (int changes = random.one_in(3) ? 3 : 1; changes > 0; --changes) {
      const auto flow = static_cast<std::uint32_t>(random.below(copies.route_classes.size()));
      const auto found = std::find(active.begin(), active.end(), flow);
      const std::uint32_t group = loaded.model.group(loaded.kinds[flow]);
      if (found != active.end()) {
        loaded.model.stop(group);
        active.erase(found);
        busy.erase(copies.engines[flow]);
      } else if (busy.insert(copies.engines[flow]).second) {
        loaded.model.start(group);
        active.push_back(flow);
      }
    }
    loaded.model.solve();
    std::vector<test::SlowFlow> flows;
    for (const std::uint32_t flow : active) flows.push_back(copies.flows[flow]);
    const auto slow = test::slow_max_min(capacities, flows);
    std::vector<double> anew;
    if (event % 16 == 0) {
      Loaded fresh(machine, copies.route_classes);
      anew = max_min(fresh, active);
    }
    for (std::size_t i = 0; i < active.size(); ++i) {
      const auto [rate, inverse] = loaded.model.rate(loaded.model.group(loaded.kinds[active[i]]));
      ASSERT_NEAR(rate, slow[i], 1e-9 * slow[i]) << "event " << event << " flow " << active[i];
      ASSERT_NEAR(rate * inverse, 1, 1e-12);
      if (!anew.empty()) {
        ASSERT_NEAR(rate, anew[active[i]], 1e-10 * rate);
      }
    }
  }
}

TEST(ManyRows, KeptLevelsAreThoseFromScratchBetweenSockets) {
  test::Random random(11);
  for (const std::size_t gpus : {4U, 8U, 16U, 32U})
    for (int round = 0; round < 4; ++round) {
      const Topology machine = test::make_tree(test::Tree::Sockets, gpus);
      expect_kept_levels_right(machine, random_copies(machine, 6 * gpus, random), test::rounds(300), random);
    }
}

TEST(ManyRows, KeptLevelsAreThoseFromScratchOnRandomMachines) {
  test::Random random(12);
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const Topology machine = test::random_machine(seed);
    const Copies copies = random_copies(machine, 24, random);
    if (!copies.route_classes.empty()) expect_kept_levels_right(machine, copies, 60, random);
  }
}

/// GPUs of one cpu each, whose ways to the memories cross capacities that random sets of links share: rows without any
/// order, some of them with the same members, so that several fill at one level.
Topology random_mesh(test::Random& random) {
  const int cpus = random.between(3, 6);
  std::string vertices, links, shared;
  const auto rate = [&] {
    return std::to_string(random.one_in(2) ? 4 + 4 * random.between(0, 2) : random.between(3, 20));
  };
  for (int i = 0; i < cpus; ++i) {
    const std::string n = std::to_string(i);
    vertices += "mem" + n + ": {kind: memory}, cpu" + n + ": {kind: cpu}, gpu" + n + ": {kind: gpu}, ";
    links +=
        "    - {from: mem" + n + ", to: cpu" + n + ", bandwidth: " + rate() + " GB/s, back: " + rate() + " GB/s}\n";
    links += "    - {from: cpu" + n + ", to: hub0, bandwidth: " + rate() + " GB/s, back: " + rate() + " GB/s}\n";
    links += "    - {from: hub0, to: gpu" + n + ", bandwidth: 12 GB/s, back: 12 GB/s}\n";
  }
  for (int s = 0; s < cpus; ++s) {
    shared += "    - {name: s" + std::to_string(s) + ", capacity: " + rate() + " GB/s, members: [";
    for (int i = 0, first = random.between(0, cpus - 2); i < 2; ++i)
      shared += (i > 0 ? ", " : "") + ("{from: cpu" + std::to_string(first + i)) +
                ", to: hub0, cost: " + (random.one_in(2) ? "1" : "1.5") + "}";
    shared += "]}\n";
  }
  return test::make_machine("  vertices: {" + vertices + "hub0: {kind: hub}}\n  links:\n" + links + "  shared:\n" +
                            shared);
}

TEST(ManyRows, KeptLevelsAreThoseFromScratchWhereRowsTie) {
  test::Random random(13);
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    const Topology machine = random_mesh(random);
    expect_kept_levels_right(machine, random_copies(machine, 30, random), 80, random);
  }
}

// The rates depend on starts and stops alone: after `restart` the same ones give the same bits.
TEST(ManyRows, TheSameStartsHaveTheSameRatesToTheLastBit) {
  test::Random random(14);
  const Topology machine = test::make_tree(test::Tree::Sockets, 32);
  const Copies copies = random_copies(machine, 200, random);
  Loaded loaded(machine, copies.route_classes);
  const auto run = [&] {
    std::vector<double> rates;
    loaded.model.restart();
    std::set<std::uint32_t> started;
    std::set<EngineId> busy;
    for (std::uint32_t flow = 0; flow < copies.route_classes.size(); ++flow) {
      if (!busy.insert(copies.engines[flow]).second) continue;
      started.insert(flow);
      loaded.model.start(loaded.model.group(loaded.kinds[flow]));
      loaded.model.solve();
      for (const std::uint32_t other : started)
        rates.push_back(loaded.model.rate(loaded.model.group(loaded.kinds[other])).value);
    }
    for (const std::uint32_t flow : started) loaded.model.stop(loaded.model.group(loaded.kinds[flow]));
    return rates;
  };
  EXPECT_EQ(run(), run());
}

// Two flows of one engine queue are never active together: 6 + 6 over a link of 8 would have to share, one of them does
// not.
TEST(BandwidthModel, AQueueTakesOfALinkWhatItsLargestFlowTakes) {
  const Topology machine = star(8, {6, 6});
  const auto route_classes = routes_of(machine, {{"mem0", "gpu0"}, {"mem0", "gpu1"}});
  const auto own = static_cast<std::uint32_t>(machine.route_classes().size());
  for (const bool one_queue : {true, false}) {
    BandwidthModel model;
    model.reset(machine, Basis::Nominal, route_classes, 2);
    const std::uint32_t a = model.add_flow(own, 0);
    const std::uint32_t b = model.add_flow(own + 1, one_queue ? 0 : 1);
    model.finish();
    EXPECT_EQ(model.rates_vary(), !one_queue);
    model.start(model.group(b));
    model.solve();
    EXPECT_DOUBLE_EQ(model.rate(model.group(b)).value, 6);
    EXPECT_DOUBLE_EQ(model.alone(a), 6);
  }
}

}  // namespace
}  // namespace tutti::internal
