// The domain decomposition of [VMS14] section 5, Table 1: 3.69 GB to two GPUs, 100 times (boundary points 1 ms, then
// 295.2 MB each way beside 23 ms of inner points), and back. `tutti bench methods --only domain` prints these sums.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "apps/lab/benches/workloads.hpp"
#include "model/planners/planner.hpp"
#include "model/sharing/compile_machine.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

Topology published_machine(const std::string& name) {
  return load_machine(test::source_path("configs/machines/" + name + ".yaml")).value();
}

Workload domain_on(const Topology& machine) { return make_workloads(machine, {}, "domain").value().at(0); }

double seconds(const Workload& domain, std::string_view planner) {
  BatchSimulation workspace;
  double ns = 0;
  for (const std::size_t batch : domain.order)
    ns += predict(*find_planner(planner), domain.batches[batch], Basis::Nominal, workspace);
  return ns / 1e9;
}

// Published: 3.18 s on Sandy Bridge. Card 1 of the weights that follow from Table 2 has 11.984 GB/s down to its GPUs
// and 11.732 up from them. A copy between GPUs crosses the link up of one, 11.691, and the link down of the
// other, 11.984:
//   scatter   3690 MB / 11.984                        =  307.910 ms
//   100 x     1 ms + max(23, 295.2 / 11.691 = 25.250) = 2625.02  ms
//   gather    3690 MB / 11.732                        =  314.524 ms
// 3.2474 s in all, 2.1 % above the published figure.
TEST(PublishedWorkloads, TheDomainDecompositionOnSandyBridgeIsWithin2Point2PercentOfThePublishedFigure) {
  const double found = seconds(domain_on(published_machine("k10-card1")), "completion_aligned");
  EXPECT_NEAR(found, 3.2474, 0.0001);
  EXPECT_NEAR(found, 3.18, 0.022 * 3.18);
}

// Not reproduced. Published: 25.19 s with an allocation of the bandwidth that holds for the whole application, 7.9
// times as long as with batches. With the shares of the transfers that cross each link, a GPU's link up carries its
// gather and its message, 11.691 / 2 = 5.8455 GB/s each, its link down its scatter and the neighbour's message, 5.992
// each:
//   scatter   1845 MB / 5.992                         =  307.910 ms
//   100 x     1 ms + 295.2 MB / 5.8455 = 50.5004      = 5150.04  ms
//   gather    1845 MB / 5.8455                        =  315.627 ms
// 5.7736 s, 1.78 times the 3.2474 s of batches.
TEST(PublishedWorkloads, StaticAllocationTakes1Point78TimesAsLongWhereThePublishedRatioIs7Point9) {
  const Workload domain = domain_on(published_machine("k10-card1"));
  const double batches = seconds(domain, "completion_aligned");
  const double shares = seconds(domain, "static_allocation");
  EXPECT_NEAR(shares, 5.7736, 0.0001);
  EXPECT_NEAR(shares / batches, 1.7779, 0.0001);
  EXPECT_LT(shares / batches, 25.19 / 3.18);
  EXPECT_EQ(seconds(domain, "bandwidth_allocation"), batches);  // each batch by itself: all its streams are equal
}

// Not reproduced. Published: 20.03 s on Nehalem, whose GPUs have one engine and no access to each other (`--no-peer`).
// A staged copy holds both engines, so the two messages go one after the other, each at the 4.392 GB/s of the way up,
// behind its first chunk of 8.389 MB:
//   scatter   3690 MB / 9.432                         =   391.221 ms
//   100 x     1 ms + 2 x (8.389 + 295.2) MB / 4.392   = 13924.6   ms
//   gather    3690 MB / 4.392                         =   840.164 ms
// 15.156 s, 24 % below the published figure.
TEST(PublishedWorkloads, TheDomainDecompositionOnNehalemIsAQuarterBelowThePublishedFigure) {
  const double found =
      seconds(domain_on(published_machine("nehalem-c2050").without_peer_access()), "completion_aligned");
  EXPECT_NEAR(found, 15.156, 0.001);
  EXPECT_NEAR(found / 20.03, 0.757, 0.001);
}

// ---- every shipped machine

std::vector<std::string> shipped_machines() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_path("configs/machines")))
    names.push_back(entry.path().stem());
  std::ranges::sort(names);
  return names;
}

TEST(PublishedWorkloads, TheDomainDecompositionHasPlansOnEveryShippedMachine) {
  const auto names = shipped_machines();
  ASSERT_GE(names.size(), 7U);
  for (const std::string& name : names) {
    const Topology machine = published_machine(name);
    const Workload domain = domain_on(machine);
    for (const Batch& batch : domain.batches)
      for (const Planner& planner : planners())
        EXPECT_EQ(find_violation(machine, batch, plan(planner, batch).timeline).value_or("none"), "none")
            << name << ", " << planner.name;
    const std::size_t copies = 2 * (machine.gpus().size() - 1);
    EXPECT_EQ(domain.batches[2].streams().size(), copies + machine.gpus().size()) << name;
  }
}

// [VMS14] Table 1 has the batch method first on both hosts. That holds on every machine that is shipped.
TEST(PublishedWorkloads, TheDomainDecompositionIsSoonestWithBatches) {
  for (const std::string& name : shipped_machines()) {
    const Workload domain = domain_on(published_machine(name));
    const double batches = seconds(domain, "completion_aligned") * (1 - 1e-9);
    for (const char* planner : {"bandwidth_allocation", "static_allocation", "time_division"})
      EXPECT_LE(batches, seconds(domain, planner)) << name << ", " << planner;
  }
}

}  // namespace
}  // namespace tutti::internal
