#include "model/machine/topology.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/sharing/compile_machine.hpp"
#include "tests/support/random_machine.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

/// Two sockets; on each a hub, on the first hub a switch with two of the four GPUs.
///
///   mem0 - cpu0 - hub0 - switch0 - gpu0        mem1 - cpu1 - hub1 - gpu3
///                   |        |---- gpu1                 |
///                   |- gpu2              cpu0 - cpu1 ---|
Topology two_sockets(std::string_view rest = "") {
  return test::make_machine(R"(  vertices:
    mem0: {kind: memory}
    mem1: {kind: memory}
    cpu0: {kind: cpu}
    cpu1: {kind: cpu}
    hub0: {kind: hub}
    hub1: {kind: hub}
    switch0: {kind: switch}
    gpu0: {kind: gpu}
    gpu1: {kind: gpu, copy_engines: 1}
    gpu2: {kind: gpu, copy_engines: 5}
    gpu3: {kind: gpu}
  links:
    - {from: mem0, to: cpu0, bandwidth: 32 GB/s, back: 31 GB/s}
    - {from: mem1, to: cpu1, bandwidth: 32 GB/s, back: 31 GB/s}
    - {from: cpu0, to: cpu1, bandwidth: 20 GB/s, back: 19 GB/s}
    - {from: cpu0, to: hub0, bandwidth: 16 GB/s, back: 15 GB/s}
    - {from: cpu1, to: hub1, bandwidth: 16 GB/s, back: 15 GB/s}
    - {from: hub0, to: switch0, bandwidth: 12 GB/s, back: 11 GB/s}
    - {from: switch0, to: gpu0, bandwidth: 6 GB/s, back: 5 GB/s}
    - {from: switch0, to: gpu1, bandwidth: 6 GB/s, back: 5 GB/s}
    - {from: hub0, to: gpu2, bandwidth: 6 GB/s, back: 5 GB/s}
    - {from: hub1, to: gpu3, bandwidth: 6 GB/s, back: 5 GB/s}
)" + std::string(rest));
}

VertexId id(const Topology& machine, std::string_view name) { return *machine.find_vertex(name); }

bool same_domain(const Topology& machine, VertexId a, VertexId b) { return machine.domain(a) == machine.domain(b); }

/// "mem0 cpu0 gpu0", or "" where there is no way.
std::string way(const Topology& machine, std::span<const LinkId> links) {
  std::string names;
  for (const LinkId link : links) {
    if (names.empty()) names = machine.vertex(machine.link(link).from).name;
    names += " " + machine.vertex(machine.link(link).to).name;
  }
  return names;
}

std::string way(const Topology& machine, std::string_view from, std::string_view to) {
  return way(machine, machine.route(id(machine, from), id(machine, to)));
}

TEST(Topology, RoutesHaveTheFewestLinks) {
  const Topology machine = two_sockets();
  EXPECT_EQ(way(machine, "mem0", "gpu0"), "mem0 cpu0 hub0 switch0 gpu0");
  EXPECT_EQ(way(machine, "mem1", "gpu0"), "mem1 cpu1 cpu0 hub0 switch0 gpu0");
  EXPECT_EQ(way(machine, "gpu3", "mem0"), "gpu3 hub1 cpu1 cpu0 mem0");
  EXPECT_EQ(way(machine, "gpu0", "gpu1"), "gpu0 switch0 gpu1");
  EXPECT_EQ(way(machine, "mem0", "mem1"), "mem0 cpu0 cpu1 mem1");
  EXPECT_EQ(way(machine, "gpu0", "gpu0"), "");
}

// Two ways of three links: by hub1 first in the file, by hub0 first among the vertices. The links decide.
TEST(Topology, TiesGoByTheOrderOfTheLinks) {
  const std::string vertices =
      "  vertices: {mem0: {kind: memory}, hub0: {kind: hub}, hub1: {kind: hub}, cpu0: {kind: cpu}, "
      "gpu0: {kind: gpu}}\n  links:\n    - {from: mem0, to: cpu0, bandwidth: 1 GB/s}\n";
  const std::string first =
      "    - {from: cpu0, to: hub1, bandwidth: 1 GB/s}\n    - {from: hub1, to: gpu0, bandwidth: 1 GB/s}\n";
  const std::string second =
      "    - {from: cpu0, to: hub0, bandwidth: 9 GB/s}\n    - {from: hub0, to: gpu0, bandwidth: 9 GB/s}\n";
  EXPECT_EQ(way(test::make_machine(vertices + first + second), "mem0", "gpu0"), "mem0 cpu0 hub1 gpu0");
  EXPECT_EQ(way(test::make_machine(vertices + second + first), "mem0", "gpu0"), "mem0 cpu0 hub0 gpu0");
}

// The short way from mem0 to gpu1 leads through gpu0, the one from gpu0 to gpu1 through mem1: neither counts.
TEST(Topology, MemoriesAndGpusAreNeverPassedThrough) {
  const Topology machine =
      test::make_machine(R"(  vertices: {mem0: {kind: memory}, mem1: {kind: memory}, gpu0: {kind: gpu},
    gpu1: {kind: gpu}, hub0: {kind: hub}, hub1: {kind: hub}}
  links:
    - {from: mem0, to: gpu0, bandwidth: 1 GB/s}
    - {from: gpu0, to: gpu1, bandwidth: 1 GB/s}
    - {from: gpu1, to: mem1, bandwidth: 1 GB/s}
    - {from: mem1, to: gpu0, bandwidth: 1 GB/s}
    - {from: mem0, to: hub0, bandwidth: 1 GB/s}
    - {from: hub0, to: hub1, bandwidth: 1 GB/s}
    - {from: hub1, to: gpu1, bandwidth: 1 GB/s}
)");
  EXPECT_EQ(way(machine, "mem0", "gpu1"), "mem0 hub0 hub1 gpu1");
  EXPECT_EQ(way(machine, "gpu1", "gpu0"), "");
  EXPECT_EQ(way(machine, "gpu1", "mem1"), "gpu1 mem1");
}

// One-way links: the way back is missing.
TEST(Topology, ALinkWithoutBackLeadsOneWay) {
  const Topology machine = test::make_machine(
      "  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}\n"
      "  links: [{from: mem0, to: gpu0, bandwidth: 6 GB/s}]\n");
  EXPECT_EQ(way(machine, "mem0", "gpu0"), "mem0 gpu0");
  EXPECT_EQ(way(machine, "gpu0", "mem0"), "");
}

/// All ways by trying everything: the first in the order of (links, ids of the links).
std::vector<LinkId> slow_route(const Topology& machine, VertexId from, VertexId to) {
  std::vector<LinkId> best, path;
  std::vector<bool> seen(machine.vertices().size(), false);
  const std::function<void(VertexId)> walk = [&](VertexId at) {
    if (at == to) {
      if (best.empty() || path.size() < best.size() || (path.size() == best.size() && path < best)) best = path;
      return;
    }
    const VertexKind kind = machine.vertex(at).kind;
    if (at != from && (kind == VertexKind::Memory || kind == VertexKind::Gpu)) return;
    seen[at.index()] = true;
    for (std::size_t l = 0; l < machine.links().size(); ++l) {
      const Link& link = machine.links()[l];
      if (link.from != at || seen[link.to.index()]) continue;
      path.emplace_back(l);
      walk(link.to);
      path.pop_back();
    }
    seen[at.index()] = false;
  };
  if (from != to) walk(from);
  return best;
}

TEST(Topology, RoutesOfRandomMachinesAreThoseOfTryingEverything) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Topology machine = test::random_machine(seed);
    std::vector<VertexId> endpoints(machine.memories().begin(), machine.memories().end());
    endpoints.insert(endpoints.end(), machine.gpus().begin(), machine.gpus().end());
    for (const VertexId from : endpoints)
      for (const VertexId to : endpoints) {
        const auto route = machine.route(from, to);
        EXPECT_EQ(std::vector(route.begin(), route.end()), slow_route(machine, from, to)) << "seed " << seed;
      }
  }
}

// Without memories and cpus: hub0, switch0, gpu0..2 on one side; hub1, gpu3 on the other.
TEST(Topology, ADomainIsWhatStaysConnectedWithoutMemoriesAndCpus) {
  const Topology machine = two_sockets();
  EXPECT_EQ(machine.domain(id(machine, "gpu0")), machine.domain(id(machine, "gpu2")));
  EXPECT_EQ(machine.domain(id(machine, "gpu0")), machine.domain(id(machine, "hub0")));
  EXPECT_EQ(machine.domain(id(machine, "gpu3")), machine.domain(id(machine, "hub1")));
  EXPECT_FALSE(same_domain(machine, id(machine, "gpu0"), id(machine, "gpu3")));
}

TEST(Topology, ALinkBetweenGpusJoinsTheirDomains) {
  const Topology machine = two_sockets("    - {from: gpu2, to: gpu3, bandwidth: 50 GB/s, back: 50 GB/s}\n");
  EXPECT_TRUE(same_domain(machine, id(machine, "gpu2"), id(machine, "gpu3")));
  EXPECT_TRUE(same_domain(machine, id(machine, "gpu0"), id(machine, "gpu3")));
}

TEST(Topology, AFileMayNameTheDomains) {
  const Topology machine =
      test::make_machine(R"(  vertices: {mem0: {kind: memory}, hub0: {kind: hub}, gpu0: {kind: gpu, domain: a},
    gpu1: {kind: gpu, domain: b}, gpu2: {kind: gpu, domain: a}, gpu3: {kind: gpu}}
  links:
    - {from: mem0, to: hub0, bandwidth: 1 GB/s}
    - {from: hub0, to: gpu0, bandwidth: 1 GB/s}
    - {from: hub0, to: gpu1, bandwidth: 1 GB/s}
    - {from: hub0, to: gpu2, bandwidth: 1 GB/s}
    - {from: hub0, to: gpu3, bandwidth: 1 GB/s}
)");
  EXPECT_TRUE(same_domain(machine, id(machine, "gpu0"), id(machine, "gpu2")));
  EXPECT_FALSE(same_domain(machine, id(machine, "gpu0"), id(machine, "gpu1")));
  EXPECT_FALSE(same_domain(machine, id(machine, "gpu0"), id(machine, "gpu3")));
  EXPECT_TRUE(same_domain(machine, id(machine, "hub0"), id(machine, "gpu3")));
}

TEST(Topology, PeerAccessIsWhatTheFileSays) {
  const auto access = [](std::string_view mode, std::string_view a, std::string_view b) {
    const Topology machine = two_sockets(mode);
    return machine.has_peer_access(id(machine, a), id(machine, b));
  };
  EXPECT_TRUE(access("", "gpu0", "gpu1"));
  EXPECT_FALSE(access("", "gpu0", "gpu3"));
  EXPECT_TRUE(access("  peer_access: same_domain\n", "gpu0", "gpu2"));
  EXPECT_FALSE(access("  peer_access: none\n", "gpu0", "gpu1"));
  EXPECT_TRUE(access("  peer_access: all\n", "gpu0", "gpu3"));
  EXPECT_TRUE(access("  peer_access: [[gpu0, gpu3]]\n", "gpu0", "gpu3"));
  EXPECT_TRUE(access("  peer_access: [[gpu0, gpu3]]\n", "gpu3", "gpu0"));
  EXPECT_FALSE(access("  peer_access: [[gpu0, gpu3]]\n", "gpu0", "gpu1"));
  EXPECT_FALSE(access("  peer_access: []\n", "gpu0", "gpu1"));
}

// All else stays, also what is measured.
TEST(Topology, WithoutPeerAccessIsAsIfTheFileSaidSo) {
  const std::string table = "  table: [{h2d: {gpu0: 5 GB/s}}]\n";
  const Topology machine = two_sockets("  peer_access: [[gpu0, gpu3]]\n" + table);
  const Topology without = machine.without_peer_access();
  EXPECT_EQ(without, two_sockets("  peer_access: none\n" + table));
  EXPECT_NE(without.table(), nullptr);
  EXPECT_FALSE(without.has_peer_access(id(machine, "gpu0"), id(machine, "gpu3")));
  EXPECT_TRUE(machine.has_peer_access(id(machine, "gpu0"), id(machine, "gpu3")));
}

// gpu0 two, gpu1 one, gpu2 four (two for copies between GPUs; the fifth is not used), gpu3 two: nine in all.
TEST(Topology, OneEngineServesBothDirectionsTwoServeOneEach) {
  const Topology machine = two_sockets();
  EXPECT_NE(machine.engine_in(id(machine, "gpu0")), machine.engine_out(id(machine, "gpu0")));
  EXPECT_EQ(machine.engine_in(id(machine, "gpu1")), machine.engine_out(id(machine, "gpu1")));
  EXPECT_NE(machine.engine_in(id(machine, "gpu2")), machine.engine_out(id(machine, "gpu2")));
  EXPECT_NE(machine.engine_in(id(machine, "gpu0")), machine.engine_in(id(machine, "gpu1")));
  EXPECT_EQ(machine.engine_count(), 9U);
  for (const char* gpu : {"gpu0", "gpu1"}) {
    EXPECT_EQ(machine.peer_engine_in(id(machine, gpu)), machine.engine_in(id(machine, gpu)));
    EXPECT_EQ(machine.peer_engine_out(id(machine, gpu)), machine.engine_out(id(machine, gpu)));
  }
  const VertexId gpu2 = id(machine, "gpu2");
  EXPECT_EQ((std::set{machine.engine_in(gpu2), machine.engine_out(gpu2), machine.peer_engine_in(gpu2),
                      machine.peer_engine_out(gpu2)})
                .size(),
            4U);
}

// 20 directed links, then the shared capacity as number 20.
TEST(Topology, EveryLinkTakesOfItselfAndOfWhatItShares) {
  const Topology machine = two_sockets(
      "  shared:\n    - {name: s, capacity: {nominal: 40 GB/s, guaranteed: 39 GB/s}, "
      "members: [{from: mem0, to: cpu0}, {from: cpu0, to: mem0, cost: 1.3}]}\n");
  ASSERT_EQ(machine.capacities(Basis::Nominal).size(), 21U);
  EXPECT_EQ(machine.capacities(Basis::Nominal)[1], 31);
  EXPECT_EQ(machine.capacities(Basis::Nominal)[20], 40);
  EXPECT_EQ(machine.capacities(Basis::Guaranteed)[20], 39);
  const auto uses = machine.uses(LinkId(1));
  EXPECT_EQ(std::vector(uses.begin(), uses.end()),
            (std::vector<CapacityUse>{{CapacityId(1), 1}, {CapacityId(20), 1.3}}));
  EXPECT_EQ(machine.uses(LinkId(2)).size(), 1U);
}

TEST(Topology, FindsWhatIsThereAndOnlyThat) {
  const Topology machine = two_sockets();
  EXPECT_EQ(machine.find_vertex("gpu9"), std::nullopt);
  EXPECT_EQ(machine.find_link(id(machine, "cpu0"), id(machine, "mem0")), LinkId(1));
  EXPECT_EQ(machine.find_link(id(machine, "mem0"), id(machine, "gpu0")), std::nullopt);
  EXPECT_EQ(machine.memories().size(), 2U);
  EXPECT_EQ(machine.gpus().size(), 4U);
}

// ---- what a spec says in C++; the rest is refused with its place in TopologyYaml

MachineSpec small() {
  return {.name = "small",
          .vertices = {{.name = "mem0", .kind = VertexKind::Memory}, {.name = "gpu0", .kind = VertexKind::Gpu}},
          .links = {{"mem0", "gpu0", GBps{6}}}};
}

std::string refusal(const MachineSpec& spec) {
  const auto machine = compile(spec);
  return machine ? "fine" : machine.error().text();
}

/// What the small machine is refused with after a change of its `MachineSpec&`.
template <class Change>
std::string refusal_of(Change change) {
  MachineSpec spec = small();
  change(spec);
  return refusal(spec);
}

/// The same with a second link.
std::string refusal_of_back(Bandwidth bandwidth) {
  return refusal_of([&](MachineSpec& spec) { spec.links.push_back({"gpu0", "mem0", bandwidth}); });
}

TEST(MachineSpec, RefusesWhatIsNoNumberByItsField) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(refusal(small()), "fine");
  EXPECT_EQ(refusal_of_back({GBps{nan}, GBps{1}}),
            "links[1].bandwidth: the nominal bandwidth is nan; it must be above 0");
  EXPECT_EQ(refusal_of_back({GBps{infinity}, GBps{1}}),
            "links[1].bandwidth: the nominal bandwidth is inf; it must be above 0");
  EXPECT_EQ(refusal_of_back({GBps{1}, GBps{0}}),
            "links[1].bandwidth: the guaranteed bandwidth is 0; it must be above 0");
  EXPECT_EQ(refusal_of([](MachineSpec& spec) {
              spec.weights = {0, 1, 1};
            }),
            "weights.h2d: 0 is not possible here; write a number from 0.001 to 1000");
  EXPECT_EQ(refusal_of([&](MachineSpec& spec) {
              spec.weights = {1, nan, 1};
            }),
            "weights.d2h: nan is not possible here; write a number from 0.001 to 1000");
  EXPECT_EQ(refusal_of([](MachineSpec& spec) { spec.margin.relative = -0.1; }),
            "margin.relative: -0.1 is not possible here; write a number from 0 to 100");
  EXPECT_EQ(refusal_of([](MachineSpec& spec) { spec.margin.absolute = Duration{-1}; }),
            "margin.absolute: this margin is absurd; write 0 to 100 days");
  EXPECT_EQ(refusal_of([](MachineSpec& spec) { spec.setup.batch = Duration{-1}; }),
            "setup.batch: this set-up time is absurd; write 0 to 100 days");
  EXPECT_EQ(
      refusal_of([](MachineSpec& spec) {
        spec.setup.batch = {Duration{5}, Duration{4}};
      }),
      "setup.batch.guaranteed: guaranteed 4 ns is below nominal 5 ns; guaranteed is what the machine never exceeds, "
      "so raise it");
  EXPECT_EQ(refusal_of([&](MachineSpec& spec) { spec.spread = nan; }),
            "spread: nan is not possible here; write a number from 0 to 0.5");
  EXPECT_EQ(refusal_of([](MachineSpec& spec) { spec.spread = 0.51; }),
            "spread: 0.51 is not possible here; write a number from 0 to 0.5");
  EXPECT_EQ(refusal_of([](MachineSpec& spec) { spec.staging.chunk = Bytes{-1}; }),
            "staging.chunk: the staging chunk is negative; write a size like 8 MiB");
}

TEST(MachineSpec, RefusesNoEngineAndMemoryOfWhatIsNoGpu) {
  const auto with = [](const Vertex& vertex) {
    return refusal_of([&](MachineSpec& spec) { spec.vertices.push_back(vertex); });
  };
  EXPECT_EQ(with({.name = "gpu1", .kind = VertexKind::Gpu, .copy_engines = 0}),
            "vertices[2].copy_engines: 0 is not possible here; write a number from 1 to 64");
  EXPECT_EQ(with({.name = "cpu0", .kind = VertexKind::Cpu, .memory = Bytes{1}}),
            "vertices[2]: 'cpu0' is no GPU and has 'memory'; only a GPU's memory is counted");
  EXPECT_EQ(with({.name = "gpu0", .kind = VertexKind::Gpu}),
            "vertices[2]: there are two vertices 'gpu0'; names are unique");
}

TEST(MachineSpec, AllFaultsAreReported) {
  EXPECT_EQ(refusal_of([](MachineSpec& spec) {
              spec.links.push_back({"gpu0", "mem9", GBps{0}});
              spec.spread = 2;
            }),
            "spread: 2 is not possible here; write a number from 0 to 0.5\n"
            "links[1].bandwidth: the nominal bandwidth is 0; it must be above 0\n"
            "links[1].bandwidth: the guaranteed bandwidth is 0; it must be above 0\n"
            "links[1].to: there is no vertex 'mem9'; did you mean 'mem0'?");
}

/// A row of hubs with memories at one end and GPUs at the other.
MachineSpec row_of_hubs(int hubs, int memories, int gpus) {
  MachineSpec spec{.name = "row"};
  const auto add = [&](const std::string& name, VertexKind kind) {
    spec.vertices.push_back({.name = name, .kind = kind});
  };
  for (int i = 0; i < hubs; ++i) {
    add("h" + std::to_string(i), VertexKind::Hub);
    if (i > 0) spec.links.push_back({"h" + std::to_string(i - 1), "h" + std::to_string(i), GBps{1}});
  }
  for (int i = 0; i < memories; ++i) {
    add("m" + std::to_string(i), VertexKind::Memory);
    spec.links.push_back({"m" + std::to_string(i), "h0", GBps{1}});
  }
  for (int i = 0; i < gpus; ++i) {
    add("g" + std::to_string(i), VertexKind::Gpu);
    spec.links.push_back({"h" + std::to_string(hubs - 1), "g" + std::to_string(i), GBps{1}});
  }
  return spec;
}

// 512 x 512 routes of 7,001 links would take 7 GB.
TEST(MachineSpec, RefusesMachinesWhoseRoutesWouldFillTheMemory) {
  EXPECT_EQ(refusal(row_of_hubs(7000, 512, 512)),
            "the routes have more than 16 million links together; describe a smaller machine");
  EXPECT_EQ(refusal(row_of_hubs(1, 512, 513)),
            "vertices[0]: more than 1024 memories, GPUs and devices; describe a smaller machine");
  EXPECT_EQ(refusal(row_of_hubs(8192, 1, 0)), "vertices[8192]: more than 8192 vertices; describe a smaller machine");
  EXPECT_EQ(refusal(row_of_hubs(1, 512, 512)), "fine");
}

// What is written reads back as the same spec, whatever it says.
TEST(MachineSpec, IsReadAsItWasWritten) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Topology machine = test::random_machine(seed);
    const auto again = parse_document(machine_yaml(machine), "again.yaml").and_then(machine_from);
    ASSERT_TRUE(again.has_value()) << again.error().text();
    EXPECT_EQ(*again, machine) << machine_yaml(machine);
  }
}

}  // namespace
}  // namespace tutti::internal
