#include "model/batch/fixed_shares.hpp"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/transfer/transfer_method.hpp"
#include "tests/support/random_machine.hpp"
#include "tests/support/slow_max_min.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

using test::star;

/// What each stream's data get, GB/s.
void expect_rates(const Topology& machine, std::string_view streams, const std::vector<double>& expected) {
  const Batch batch = test::make_batch(machine, streams);
  FixedShares shares;
  shares.load(machine, Basis::Nominal, batch);
  ASSERT_EQ(batch.streams().size(), expected.size());
  for (std::size_t s = 0; s < expected.size(); ++s)
    EXPECT_DOUBLE_EQ(shares.rates(s).data, expected[s]) << "stream " << s;
}

// [VMS14] section 2.4: each of four streams keeps 8 / 4 = 2 of the shared link, which is below its own 6.
TEST(FixedShares, SplitsEachCapacityOverAllThatCrossIt) {
  expect_rates(star(8, {6, 6, 6, 6}), R"(
  - {from: mem0, to: gpu0, size: 1 MB}
  - {from: mem0, to: gpu1, size: 1 MB}
  - {from: mem0, to: gpu2, size: 1 MB}
  - {from: mem0, to: gpu3, size: 1 MB}
)",
               {2, 2, 2, 2});
}

// The batch has one stream, and 6 by itself. The application has another one over the link of 8: 4 each.
TEST(FixedShares, TransfersOfTheWholeApplicationHaveAShare) {
  const Topology machine = star(8, {6, 6});
  const Batch first = test::make_batch(machine, "  - {from: mem0, to: gpu0, size: 1 MB}\n");
  const Batch second = test::make_batch(machine, "  - {from: mem0, to: gpu1, size: 1 MB}\n");
  const Batch idle = test::make_batch(machine, "  - {from: mem0, to: gpu1, size: 0}\n");
  const auto rate = [&](const ApplicationLoad& application) {
    FixedShares shares;
    shares.load(machine, Basis::Nominal, first, application);
    return shares.rates(0).data;
  };
  EXPECT_EQ(rate({}), 6);
  EXPECT_EQ(rate(ApplicationLoad(std::array{&first})), 6);
  EXPECT_EQ(rate(ApplicationLoad(std::array{&first, &second})), 4);
  EXPECT_EQ(rate(ApplicationLoad(std::array{&first, &idle})), 6);
}

// What the application lacks, the batch still has its share of: 6 alone.
TEST(FixedShares, ABatchOutsideItsApplicationIsAlone) {
  const Topology machine = star(8, {6, 6});
  const Batch first = test::make_batch(machine, "  - {from: mem0, to: gpu0, size: 1 MB}\n");
  const Batch idle = test::make_batch(machine, "  - {from: mem0, to: gpu1, size: 0}\n");
  FixedShares shares;
  shares.load(machine, Basis::Nominal, first, ApplicationLoad(std::array{&idle}));
  EXPECT_EQ(shares.rates(0).data, 6);
}

// Equal contents make equal batches, whoever counted them.
TEST(ApplicationLoad, IsAValue) {
  const Topology machine = star(8, {6, 6});
  const Batch batch = test::make_batch(machine, "  - {from: mem0, to: gpu0, size: 1 MB}\n");
  const Batch other = test::make_batch(machine, "  - {from: mem0, to: gpu1, size: 1 MB}\n");
  EXPECT_EQ(batch.within(ApplicationLoad(std::array{&batch})), batch.within(ApplicationLoad(std::array{&batch})));
  EXPECT_NE(batch.within(ApplicationLoad(std::array{&batch})),
            batch.within(ApplicationLoad(std::array{&batch, &other})));
  EXPECT_NE(batch.within(ApplicationLoad(std::array{&batch})), batch);
}

// 8 split in two is 4; the first keeps only its own 1, and what it leaves stays unused.
TEST(FixedShares, WhatIsLeftOverStaysUnused) {
  expect_rates(star(8, {1, 6}), R"(
  - {from: mem0, to: gpu0, size: 1 MB}
  - {from: mem0, to: gpu1, size: 1 MB}
)",
               {1, 4});
}

// In and out cross a capacity of 12. Weights 3 : 1: 9 and 3. Costs 1 and 2 with equal weights: each 12 / (1 + 2) = 4.
TEST(FixedShares, GoesByWeightAndCost) {
  const auto chip = [](const std::string& cost) {
    return "  shared:\n    - {name: chip, capacity: 12 GB/s, members: [{from: mem0, to: hub0}, {from: hub0, to: mem0" +
           cost + "}]}\n";
  };
  constexpr std::string_view kOneEachWay = R"(
  - {from: mem0, to: gpu0, size: 1 MB}
  - {from: gpu1, to: mem0, size: 1 MB}
)";
  expect_rates(star(50, {50, 50}, chip("") + "  weights: {h2d: 3, d2h: 1}\n"), kOneEachWay, {9, 3});
  expect_rates(star(50, {50, 50}, chip(", cost: 2")), kOneEachWay, {4, 4});
}

// Two that take turns on one engine count twice: 9 / 3 each. One without bytes does not count.
TEST(FixedShares, CountsTurnsOnAnEngineAndNoEmptyCopies) {
  expect_rates(star(9, {6, 6}), R"(
  - {from: mem0, to: gpu0, size: 1 MB}
  - {from: mem0, to: gpu0, size: 2 MB}
  - {from: mem0, to: gpu1, size: 1 MB}
  - {from: mem0, to: gpu1, size: 0}
)",
               {3, 3, 3, 0});
}

// A staged copy counts once on each link: up 6 / 1 for its pipeline fill, down 6 / 2 beside a copy of its own
// direction.
TEST(FixedShares, AStagedCopyHasALeadOfItsFirstLeg) {
  const Topology machine = star(6, {50, 50, 50}, "  peer_access: none\n");
  const Batch batch = test::make_batch(machine, R"(
  - {from: gpu0, to: gpu1, size: 1 MB}
  - {from: mem0, to: gpu2, size: 1 MB}
)");
  FixedShares shares;
  shares.load(machine, Basis::Nominal, batch);
  EXPECT_DOUBLE_EQ(shares.rates(0).fill, 6);
  EXPECT_DOUBLE_EQ(shares.rates(0).data, 3);
  EXPECT_DOUBLE_EQ(shares.rates(1).data, 3);
}

// ---- under a measured table

// Two links of 50 behind 100: each has 50 by the graph. Together the table gives them 40 and 30, gpu1 alone 45.
TEST(FixedShares, AreNoMoreThanTheTableGives) {
  const Topology machine = star(100, {50, 50}, R"(  table:
    - {h2d: {gpu0: 48 GB/s}}
    - {h2d: {gpu1: 45 GB/s}}
    - {h2d: {gpu0: 40 GB/s, gpu1: 30 GB/s}}
)");
  expect_rates(machine, "  - {from: mem0, to: gpu0, size: 1 MB}\n  - {from: mem0, to: gpu1, size: 1 MB}\n", {40, 30});
  expect_rates(machine, "  - {from: mem0, to: gpu1, size: 1 MB}\n", {45});
}

// Co-runners make gpu0 faster, as measurements may say: what it has alone is what it can keep.
TEST(FixedShares, AreTheLeastBesideAllCorunners) {
  const Topology machine = star(100, {50, 50}, R"(  table:
    - {h2d: {gpu0: 41 GB/s}}
    - {h2d: {gpu1: 45 GB/s}}
    - {h2d: {gpu0: 42 GB/s, gpu1: 30 GB/s}}
)");
  expect_rates(machine, "  - {from: mem0, to: gpu0, size: 1 MB}\n  - {from: mem0, to: gpu1, size: 1 MB}\n", {41, 30});
}

// Both directions of a GPU with one engine are never active together, whatever a row says of them.
TEST(FixedShares, LeaveOutCorunnersThatCannotBe) {
  const Topology machine = test::make_machine(R"(  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu, copy_engines: 1}}
  links: [{from: mem0, to: gpu0, bandwidth: 50 GB/s, back: 50 GB/s}]
  table: [{h2d: {gpu0: 45 GB/s}}, {h2d: {gpu0: 20 GB/s}, d2h: {gpu0: 20 GB/s}}]
)");
  expect_rates(machine, "  - {from: mem0, to: gpu0, size: 1 MB}\n  - {from: gpu0, to: mem0, size: 1 MB}\n", {45, 50});
}

// One workspace, machine after machine and batch after batch: nothing of the one before is left.
TEST(FixedShares, ForgetTheTableBefore) {
  FixedShares shares;
  const auto share = [&](const Topology& machine, std::string_view streams) {
    shares.load(machine, Basis::Nominal, test::make_batch(machine, streams));
    return shares.rates(0).data;
  };
  constexpr std::string_view kUp = "  - {from: mem0, to: gpu0, size: 1 MB}\n";
  constexpr std::string_view kDown = "  - {from: gpu0, to: mem0, size: 1 MB}\n";
  for (int round = 0; round < 3; ++round) {
    const Topology one = star(100, {50}, "  table: [{h2d: {gpu0: 20 GB/s}}, {d2h: {gpu0: 22 GB/s}}]\n");
    EXPECT_EQ(share(one, kUp), 20);
    EXPECT_EQ(share(one, kDown), 22);
    EXPECT_EQ(share(star(100, {50}, "  table: [{h2d: {gpu0: 30 GB/s}}]\n"), kUp), 30);
    EXPECT_EQ(share(star(100, {50}), kUp), 50);
  }
}

// All shares together never exceed a capacity.
TEST(FixedShares, NeverExceedACapacityOfRandomMachines) {
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const Topology machine = test::random_machine(seed / 3);
    const Batch batch = test::random_batch(machine, seed);
    FixedShares shares;
    shares.load(machine, Basis::Guaranteed, batch);
    const auto capacities = test::slow_capacities(machine, Basis::Guaranteed);
    std::vector<double> used(capacities.size(), 0);
    for (std::size_t s = 0; s < batch.streams().size(); ++s) {
      if (!batch.streams()[s].transfer) continue;
      const RouteView route = find_route(machine, *batch.streams()[s].transfer);
      std::vector<LinkId> links(route.first.begin(), route.first.end());
      links.insert(links.end(), route.second.begin(), route.second.end());
      const auto costs = test::slow_costs(machine, links);
      for (std::size_t c = 0; c < used.size(); ++c) used[c] += shares.rates(s).data * costs[c];
    }
    for (std::size_t c = 0; c < used.size(); ++c) EXPECT_LE(used[c], capacities[c] * (1 + 1e-12)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tutti::internal
