// Background load: what flows that no batch issues leave to transfers.
#include "model/sharing/background_load.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/batch/safe_bound.hpp"
#include "model/planners/planner.hpp"
#include "model/sharing/compile_machine.hpp"
#include "model/sharing/steady_rates.hpp"
#include "tests/support/random.hpp"
#include "tests/support/random_machine.hpp"
#include "tests/support/slow_max_min.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// A memory behind links of 10 and 12, guaranteed 9, a camera and a GPU behind a hub.
constexpr const char* kStation =
    R"(  vertices: {mem0: {kind: memory}, hub0: {kind: hub}, gpu0: {kind: gpu}, camera0: {kind: device}}
  links:
    - {from: mem0, to: hub0, bandwidth: 12 GB/s, back: {nominal: 10 GB/s, guaranteed: 9 GB/s}}
    - {from: hub0, to: gpu0, bandwidth: 50 GB/s, back: 50 GB/s}
    - {from: camera0, to: hub0, bandwidth: 5 GB/s}
)";

Topology station_with(const std::string& rest) { return test::make_machine(kStation + rest); }

const Planner& at_once() { return *find_planner("all_at_once"); }

Duration length(const Topology& machine, std::string_view streams, Basis basis = Basis::Nominal) {
  return plan(at_once(), test::make_batch(machine, streams), basis).timeline.latency;
}

constexpr const char* kReport = "  - {from: gpu0, to: mem0, size: 20 MB}\n";
constexpr const char* kImage = "  - {from: mem0, to: gpu0, size: 20 MB}\n";

// The frames usually take 2 of the 10 GB/s into memory, so a report of 20 MB takes 20 / 8 = 2.5 ms; at most 4 of the 9
// that are guaranteed: 20 / 5 = 4 ms. An image goes the other way: 20 / 12 = 1.667 ms.
TEST(BackgroundLoad, IsTakenOffTheLinksOfItsRoute) {
  const Topology machine =
      station_with("  background: [{from: camera0, to: mem0, bandwidth: {nominal: 2 GB/s, most: 4 GB/s}}]\n");
  EXPECT_EQ(length(machine, kReport), microseconds(2500));
  EXPECT_EQ(length(machine, kReport, Basis::Guaranteed), milliseconds(4));
  EXPECT_EQ(length(machine, kImage), Duration{1'666'667});
  const ExecutionPlan planned = plan(at_once(), test::make_batch(machine, kReport));
  EXPECT_EQ(latest_finish(planned).batch, milliseconds(4));
}

// A camera that writes into the GPU at 4 GB/s leaves 46 of the 50 of its link: 20 MB from a memory behind 60 take
// 20 / 46 ms.
TEST(BackgroundLoad, MayReachAGpuDirectly) {
  const Topology machine = test::make_machine(
      R"(  vertices: {mem0: {kind: memory}, hub0: {kind: hub}, gpu0: {kind: gpu}, camera0: {kind: device}}
  links:
    - {from: mem0, to: hub0, bandwidth: 60 GB/s}
    - {from: hub0, to: gpu0, bandwidth: 50 GB/s}
    - {from: camera0, to: hub0, bandwidth: 5 GB/s}
  background: [{from: camera0, to: gpu0, bandwidth: 4 GB/s}]
)");
  EXPECT_EQ(length(machine, kImage), Duration{434'783});
}

// The host copies 3 GB/s inside mem0: it reads them over mem0 -> hub0 and writes them over hub0 -> mem0. 20 MB down
// take 20 / (10 - 3), up 20 / (12 - 3) ms.
TEST(BackgroundLoad, OfAMemoryWithItselfReadsAndWritesIt) {
  const Topology machine = station_with("  background: [{from: mem0, to: mem0, bandwidth: 3 GB/s}]\n");
  EXPECT_EQ(length(machine, kReport), Duration{2'857'143});
  EXPECT_EQ(length(machine, kImage), Duration{2'222'223});
}

// Between memories over the link of two sockets: 6 of its 10 GB/s, so a copy across has 4: 20 / 4 = 5 ms.
TEST(BackgroundLoad, OfTheHostFromMemoryToMemory) {
  const Topology machine = test::make_machine(
      R"(  vertices: {mem0: {kind: memory}, mem1: {kind: memory}, cpu0: {kind: cpu}, cpu1: {kind: cpu}, gpu0: {kind: gpu}}
  links:
    - {from: mem0, to: cpu0, bandwidth: 50 GB/s, back: 50 GB/s}
    - {from: mem1, to: cpu1, bandwidth: 50 GB/s, back: 50 GB/s}
    - {from: cpu0, to: cpu1, bandwidth: 10 GB/s}
    - {from: cpu1, to: gpu0, bandwidth: 50 GB/s}
  background: [{from: mem0, to: mem1, bandwidth: 6 GB/s}]
)");
  EXPECT_EQ(length(machine, kImage), milliseconds(5));
}

// The frames cost 2 bytes of the memory's 20 GB/s a byte, so 3 GB/s of them leave 20 - 6 = 14; a copy up costs 4: 14 /
// 4 = 3.5 GB/s, 14 MB in 4 ms.
TEST(BackgroundLoad, TakesItsCostOffSharedCapacities) {
  const Topology machine = station_with(R"(  shared:
    - {name: memory, capacity: 20 GB/s, members: [{from: mem0, to: hub0, cost: 4}, {from: hub0, to: mem0, cost: 2}]}
  background: [{from: camera0, to: mem0, bandwidth: 3 GB/s}]
)");
  EXPECT_EQ(length(machine, "  - {from: mem0, to: gpu0, size: 14 MB}\n"), milliseconds(4));
}

// What is declared stays declared: a file is written as it was read.
TEST(BackgroundLoad, IsWrittenAsItWasRead) {
  const Topology machine = station_with(
      "  background: [{from: camera0, to: mem0, bandwidth: {nominal: 2 GB/s, most: 4 GB/s}}, {from: mem0, to: mem0, "
      "bandwidth: 1 GB/s}]\n");
  EXPECT_EQ(machine.spec().background,
            (std::vector<BackgroundSpec>{{"camera0", "mem0", {GBps{2}, GBps{4}}}, {"mem0", "mem0", GBps{1}}}));
  const auto again = parse_document(machine_yaml(machine), "again.yaml").and_then(machine_from);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_TRUE(*again == machine);
  EXPECT_EQ(machine_yaml(*again), machine_yaml(machine));
  EXPECT_EQ(machine.links()[1].bandwidth, (Bandwidth{GBps{10}, GBps{9}}));
  EXPECT_DOUBLE_EQ(machine.capacities(Basis::Nominal)[1], 7);
  EXPECT_DOUBLE_EQ(machine.capacities(Basis::Guaranteed)[1], 4);
  EXPECT_TRUE(without_background(machine) == station_with(""));
}

// ---- beside a table

/// Two GPUs behind one link down of 40, which the table has fully loaded by both.
std::string two_gpus_and_disk(const std::string& rest) {
  return test::machine_file(
      R"(  vertices: {mem0: {kind: memory}, cpu0: {kind: cpu}, gpu0: {kind: gpu}, gpu1: {kind: gpu}, disk0: {kind: device}}
  links:
    - {from: cpu0, to: mem0, bandwidth: 40 GB/s}
    - {from: gpu0, to: cpu0, bandwidth: 25 GB/s}
    - {from: gpu1, to: cpu0, bandwidth: 25 GB/s}
    - {from: disk0, to: cpu0, bandwidth: 20 GB/s}
)" + rest);
}

Topology machine_of(const std::string& file) { return parse_document(file, "m.yaml").and_then(machine_from).value(); }

constexpr const char* kRows =
    "  table: [{d2h: {gpu0: 24 GB/s}}, {d2h: {gpu1: 25 GB/s}}, {d2h: {gpu0: 21 GB/s, gpu1: "
    "15 GB/s}}]\n";

std::vector<double> down_both(const Topology& machine, Basis basis) {
  const PortSet both = PortSet(PortId{1}) | PortSet(PortId{3});
  return SteadyRates{}.find(machine, basis, both).rates;
}

// The disk usually takes 10 of 40 GB/s: 30 are left to 21 + 15 = 36, so both are slower by 30 / 36: 17.5 and 12.5. One
// alone has 24 or 25 of the 30, and keeps them.
// Guaranteed: the table alone lowers them first. Alone gpu0 has 24 and gpu1 25. Together max-min gives 20 and 20; gpu1
// has 15 in the table, so the cheapest is to lower its link to 15 (by 2 fifths) or the joint one by 5 to 35 (an
// eighth), then 17.5 each is too much for gpu1 still; at 30, both have 15. At most 16 of these 30 go to the disk: 14,
// so 7 each. The rows beside it: 24 of 36 are left, so 21 and 15 become 14 and 10, which is more.
TEST(BackgroundLoad, ScalesRowsIntoWhatIsLeft) {
  const Topology machine = machine_of(two_gpus_and_disk(
      std::string("  background: [{from: disk0, to: mem0, bandwidth: {nominal: 10 GB/s, most: 16 GB/s}}]\n") + kRows));
  const auto rates = down_both(machine, Basis::Nominal);
  EXPECT_NEAR(rates[0], 17.5, 1e-9);
  EXPECT_NEAR(rates[1], 12.5, 1e-9);
  SteadyRates steady;
  EXPECT_EQ(steady.find(machine, Basis::Nominal, PortSet(PortId{1})).rates.front(), 24);
  EXPECT_EQ(steady.find(machine, Basis::Nominal, PortSet(PortId{3})).rates.front(), 25);
  EXPECT_EQ(machine.links()[0].bandwidth.guaranteed, GBps{30});
  EXPECT_NEAR(down_both(machine, Basis::Guaranteed)[0], 7, 1e-9);
  EXPECT_NEAR(down_both(machine, Basis::Guaranteed)[1], 7, 1e-9);
}

/// Two GPUs behind one link up of 10, with a row for both.
/// @param first,second  bandwidths of the links of the GPUs
Topology both_up(const std::string& first, const std::string& second, const std::string& flow) {
  return test::make_machine(
      R"(  vertices: {mem0: {kind: memory}, cpu0: {kind: cpu}, gpu0: {kind: gpu}, gpu1: {kind: gpu}, disk0: {kind: device}}
  links:
    - {from: mem0, to: cpu0, bandwidth: 10 GB/s}
    - {from: cpu0, to: gpu0, bandwidth: )" +
      first + "}\n    - {from: cpu0, to: gpu1, bandwidth: " + second +
      "}\n    - {from: cpu0, to: disk0, bandwidth: 10 GB/s, back: 10 GB/s}\n  background: [{" + flow +
      "}]\n  table: [{h2d: {gpu0: 5 GB/s, gpu1: 5 GB/s}}]\n");
}

std::vector<double> up_both(const Topology& machine, Basis basis) {
  return SteadyRates{}.find(machine, basis, PortSet(PortId{0}) | PortSet(PortId{2})).rates;
}

// The disk takes 8 of the 10 of gpu0's link, so the copy there has 2 of its 5, and the graph would give the rest of the
// common link, 8, to gpu1. The row says that gpu1 has 5 beside a copy to gpu0: the common link is lowered to 7.
TEST(BackgroundLoad, GuaranteesNoCopyWhatAnotherOneLoses) {
  const Topology machine = both_up("10 GB/s", "10 GB/s", "from: disk0, to: gpu0, bandwidth: 8 GB/s");
  EXPECT_EQ(up_both(machine, Basis::Nominal), (std::vector<double>{2, 5}));
  EXPECT_EQ(up_both(machine, Basis::Guaranteed), (std::vector<double>{2, 5}));
}

// Usually 9 of the common link are left, and both have 4.5. At most 4 are taken, so both rows come to 3; the graph
// would guarantee gpu1 the 5 of its own link, as gpu0 is guaranteed 1. To lower 6 to 4 loses a third, 5 to 3 more.
TEST(BackgroundLoad, GuaranteesNoMoreThanRowsBesideItsMost) {
  const Topology machine = both_up("{nominal: 10 GB/s, guaranteed: 1 GB/s}", "5 GB/s",
                                   "from: mem0, to: disk0, bandwidth: {nominal: 1 GB/s, most: 4 GB/s}");
  EXPECT_EQ(up_both(machine, Basis::Nominal), (std::vector<double>{4.5, 4.5}));
  EXPECT_EQ(up_both(machine, Basis::Guaranteed), (std::vector<double>{1, 3}));
}

// Frames into gpu1 make two GPUs differ that are symmetric in the table: 10 of its 25 GB/s leave 15 of the row's 25.
TEST(BackgroundLoad, OfOneOfTwoSymmetricGpusSlowsItAlone) {
  const Topology machine = test::make_machine(
      R"(  vertices: {mem0: {kind: memory}, cpu0: {kind: cpu}, gpu0: {kind: gpu}, gpu1: {kind: gpu}, camera0: {kind: device}}
  links:
    - {from: mem0, to: cpu0, bandwidth: 40 GB/s}
    - {from: cpu0, to: gpu0, bandwidth: 25 GB/s}
    - {from: cpu0, to: gpu1, bandwidth: 25 GB/s}
    - {from: camera0, to: cpu0, bandwidth: 12 GB/s}
  background: [{from: camera0, to: gpu1, bandwidth: 10 GB/s}]
  symmetric: [[gpu0, gpu1]]
  table: [{h2d: {gpu0: 25 GB/s}}]
)");
  SteadyRates steady;
  EXPECT_EQ(steady.find(machine, Basis::Nominal, PortSet(PortId{0})).rates.front(), 25);
  EXPECT_EQ(steady.find(machine, Basis::Nominal, PortSet(PortId{2})).rates.front(), 15);
}

// ---- on random machines

/// The machine whose bandwidths are what the flows leave, worked out anew; it has no flows and no table.
Topology lowered_by_hand(const Topology& machine) {
  const auto nominal = test::slow_capacities(machine, Basis::Nominal);
  const auto guaranteed = test::slow_capacities(machine, Basis::Guaranteed);
  MachineSpec spec = graph_of(machine);
  spec.background.clear();
  const std::size_t links = spec.links.size();
  for (std::size_t c = 0; c < nominal.size(); ++c) {
    const Bandwidth left{GBps{nominal[c]}, GBps{guaranteed[c]}};
    if (c < links)
      spec.links[c].bandwidth = left;
    else
      spec.shared[c - links].capacity = left;
  }
  return compile(std::move(spec)).value();
}

constexpr std::uint64_t kSeeds = test::rounds(400U);

TEST(BackgroundLoad, IsAMachineWithLessBandwidth) {
  for (std::uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    const Topology machine = test::with_random_background(test::random_machine(seed / 2), seed);
    const Topology lowered = lowered_by_hand(machine);
    const Batch batch = test::random_batch(machine, seed);
    const Batch other = test::random_batch(lowered, seed);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, test::describe(machine, batch)));
    for (const Planner& planner : planners()) {
      if (planner.searches) continue;
      for (const Basis basis : {Basis::Nominal, Basis::Guaranteed}) {
        const ExecutionPlan beside = plan(planner, batch, basis), alone = plan(planner, other, basis);
        EXPECT_NEAR(as_ns(beside.timeline.latency), as_ns(alone.timeline.latency), 2) << planner.name;
        const double latest = as_ns(latest_finish(alone).batch);
        EXPECT_NEAR(as_ns(latest_finish(beside).batch), latest, 2 + 1e-9 * latest) << planner.name;
      }
    }
  }
}

/// The machine whose flows have other rates.
/// @param rate  of a flow's `LoadRate`
template <class Rate>
Topology with_rates(const Topology& machine, Rate rate) {
  MachineSpec spec = machine.spec();
  for (BackgroundSpec& flow : spec.background) flow.bandwidth = rate(flow.bandwidth);
  return compile(std::move(spec)).value();
}

/// The machine whose flows take anything between next to nothing and their most.
Topology with_any_load(const Topology& machine, test::Random& random) {
  return with_rates(machine, [&](const LoadRate& load) {
    return LoadRate{GBps{load.most.value * (random.one_in(4) ? 1 : random.real(1e-6, 1))}};
  });
}

/// Runs a plan on another machine.
Timeline run_on(const Topology& machine, const ExecutionPlan& planned, Basis basis) {
  const auto streams = planned.batch.streams();
  return replay(planned, planned.batch.with_sizes_of(machine, {streams.begin(), streams.end()}).value(), basis);
}

void expect_in_time(const Timeline& run, const LatestFinish& latest) {
  for (std::size_t s = 0; s < run.streams.size(); ++s) EXPECT_LE(run.streams[s].end(), latest.streams[s]) << s;
  EXPECT_LE(run.latency, latest.batch);
}

TEST(BackgroundLoad, ExceedsNoBoundWhateverItTakes) {
  for (std::uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    const Topology machine = test::with_random_background(test::random_machine(seed / 2), seed);
    const Batch batch = test::random_batch(machine, seed);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, test::describe(machine, batch)));
    test::Random random(seed);
    for (const Planner& planner : planners()) {
      if (planner.searches) continue;
      const ExecutionPlan planned = plan(planner, batch, Basis::Guaranteed);
      const LatestFinish latest = latest_finish(planned);
      for (int run = 0; run < 5; ++run)
        for (const Basis basis : {Basis::Nominal, Basis::Guaranteed})
          expect_in_time(run_on(with_any_load(machine, random), planned, basis), latest);
    }
  }
}

/// The machine with a table: random rows around the rates of its graph.
Topology with_random_table(const Topology& machine, test::Random& random) {
  MachineSpec spec = machine.spec();
  SteadyRates steady;
  std::vector<PortSet> known;
  for (int row = 0; row < 6; ++row) {
    PortSet ports;
    for (int p = random.between(1, 3); p > 0; --p) ports.insert(PortId(random.below(2 * machine.gpus().size())));
    if (!can_be_active(machine, ports) || std::ranges::count(known, ports) > 0) continue;
    known.push_back(ports);
    const auto rates = steady.find(machine, Basis::Nominal, ports).rates;
    TableRow& added = spec.table.emplace_back();
    for (const PortId port : ports) {
      const auto [gpu, direction] = CopyPort::at(port);
      auto& side = direction == Direction::HostToDevice ? added.h2d : added.d2h;
      side.emplace_back(machine.vertex(machine.gpus()[gpu]).name,
                        GBps{rates[ports.rank(port)] * random.real(0.7, 1.2)});
    }
  }
  return compile(std::move(spec)).value();
}

// Beside a table, too: its rows are true without flows, and rows scaled for what flows take are true beside them.
TEST(BackgroundLoad, ExceedsNoBoundBesideATable) {
  for (std::uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    test::Random random(seed);
    const Topology machine =
        test::with_random_background(with_random_table(test::random_machine(seed / 2), random), seed);
    const Batch batch = test::random_batch(machine, seed);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, test::describe(machine, batch)));
    const ExecutionPlan planned = plan(*find_planner("completion_aligned"), batch, Basis::Guaranteed);
    const LatestFinish latest = latest_finish(planned);
    expect_in_time(replay(planned), latest);
    expect_in_time(run_on(without_background(machine), planned, Basis::Nominal), latest);
    for (int run = 0; run < 5; ++run)
      expect_in_time(run_on(with_any_load(machine, random), planned, Basis::Nominal), latest);
  }
}

// No row gives the capacities that flows cross more than is left, and no row rises with a flow.
TEST(BackgroundLoad, NeverMakesARowFaster) {
  for (std::uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    test::Random random(seed);
    const Topology alone = with_random_table(test::random_machine(seed / 2), random);
    if (alone.table() == nullptr) continue;
    const Topology beside = test::with_random_background(alone, seed);
    const Topology more = with_rates(beside, [](const LoadRate& load) { return LoadRate{load.most}; });
    const auto left = test::slow_capacities(beside, Basis::Nominal);
    for (const auto& [ports, row] : alone.table()->combinations()) {
      std::vector<double> used(left.size(), 0);
      for (const PortId port : ports) {
        const double rate = beside.table()->rate(beside.table()->row(ports), ports, port).value;
        EXPECT_LE(rate, alone.table()->rate(row, ports, port).value);
        EXPECT_GE(rate, more.table()->rate(more.table()->row(ports), ports, port).value);
        const auto costs = test::slow_costs(beside, links_at(beside, port));
        for (std::size_t c = 0; c < used.size(); ++c) used[c] += rate * costs[c];
      }
      for (const BackgroundFlow& flow : beside.background()) {
        const auto crossed = test::slow_costs(beside, flow.route);
        for (std::size_t c = 0; c < used.size(); ++c) EXPECT_LE(crossed[c] > 0 ? used[c] : 0, left[c] * (1 + 1e-9));
      }
    }
  }
}

// One stream, so that no other one can gain from what it loses: the more a flow takes, the longer its batch.
TEST(BackgroundLoad, MakesABatchLongerAsItRises) {
  for (std::uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    const Topology machine = test::with_random_background(test::random_machine(seed / 2), seed);
    const Batch batch = test::random_batch(machine, seed, {.most_streams = 1});
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, test::describe(machine, batch)));
    Duration before =
        plan(at_once(), test::random_batch(without_background(machine), seed, {.most_streams = 1})).timeline.latency;
    for (const double part : {0.2, 0.5, 1.0}) {
      const Topology loaded =
          with_rates(machine, [&](const LoadRate& load) { return LoadRate{GBps{part * load.most.value}}; });
      const Duration now = plan(at_once(), test::random_batch(loaded, seed, {.most_streams = 1})).timeline.latency;
      EXPECT_GE(now, before);
      before = now;
    }
  }
}

// ---- refusals

TEST(BackgroundLoad, IsRefusedAtItsPlace) {
  const auto refusal = [](const std::string& flow) {
    return test::machine_error(test::machine_file(std::string(kStation) + "  background: [{" + flow + "}]\n"));
  };
  EXPECT_EQ(refusal("from: camera1, to: mem0, bandwidth: 1 GB/s"),
            "m.yaml:9:23: there is no vertex 'camera1'; did you mean 'camera0'?");
  EXPECT_EQ(refusal("from: camera0, to: hub0, bandwidth: 1 GB/s"),
            "m.yaml:9:36: 'hub0' is a hub; a flow in the background goes from a memory, a gpu or a device to one, so "
            "name these: its route passes 'hub0'");
  EXPECT_EQ(refusal("from: mem0, to: camera0, bandwidth: 1 GB/s"),
            "m.yaml:9:16: no way leads from 'mem0' to 'camera0'; add the missing links");
  EXPECT_EQ(refusal("from: gpu0, to: gpu0, bandwidth: 1 GB/s"),
            "m.yaml:9:16: this flow goes from 'gpu0' to itself; only in a memory the host copies from place to place, "
            "so name two vertices");
  EXPECT_EQ(refusal("from: camera0, to: mem0, bandwidth: 0"), "m.yaml:9:53: '0' is zero; a rate must be above 0");
  EXPECT_EQ(refusal("from: camera0, to: mem0, bandwidth: 0 GB/s"),
            "m.yaml:9:53: '0 GB/s' is zero; a rate must be above 0");
  EXPECT_EQ(refusal("from: camera0, to: mem0, bandwidth: -1 GB/s"),
            "m.yaml:9:53: '-1 GB/s' is negative; only zero and above is possible here");
  EXPECT_EQ(refusal("from: camera0, to: mem0, bandwidth: {nominal: 2 GB/s, most: 1 GB/s}"),
            "m.yaml:9:77: most 1 GB/s is below nominal 2 GB/s; most is what the flow never exceeds, so raise it");
  EXPECT_EQ(refusal("from: camera0, to: mem0, bandwidth: {nominal: 2 GB/s, guaranteed: 1 GB/s}"),
            "m.yaml:9:71: unknown key 'guaranteed' in a load; the keys here are nominal, most");
  EXPECT_EQ(refusal("from: camera0, to: mem0"),
            "m.yaml:9:16: 'bandwidth' is missing in a flow in the background; add it");
  EXPECT_EQ(refusal("from: camera0, to: mem0, to: mem0, bandwidth: 1 GB/s"),
            "m.yaml:9:42: the key 'to' stands already on line 9; keep one of the two");
}

// The camera has a link of 5. Two flows of 3 and 2 leave nothing, and the second one is named.
TEST(BackgroundLoad, ThatLeavesNothingIsRefused) {
  EXPECT_EQ(
      test::machine_error(test::machine_file(
          std::string(kStation) + "  background:\n    - {from: camera0, to: mem0, bandwidth: 3 GB/s}\n"
                                  "    - {from: camera0, to: gpu0, bandwidth: {nominal: 1 GB/s, most: 2 GB/s}}\n")),
      "m.yaml:11:44: with this flow the background load is up to 5 GB/s on the link camera0 -> hub0, which "
      "guarantees 5 GB/s, so nothing is left for transfers; write a lower rate here or at the flows before, or a "
      "higher bandwidth there");
}

}  // namespace
}  // namespace tutti::internal
