// The domain decomposition of [VMS14] section 5, Table 1: 3.69 GB to two GPUs, 100 times (boundary points 1 ms, then
// 295.2 MB each way beside 23 ms of inner points), and back.
#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "apps/tutti/lab/workloads.hpp"
#include "model/planners/planner.hpp"
#include "model/sharing/compile_machine.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

std::string machine_path(const std::string& name) { return test::source_path("configs/machines/" + name + ".yaml"); }

/// The card of the shipped Sandy Bridge file that is named, with its two GPUs, and nothing else.
MachineSpec one_card(const std::string& card) {
  MachineSpec spec = load_machine(machine_path("sandy-bridge-k10")).value().spec();
  const auto is_other = [&](const std::string& name) {
    const auto& gpus = card == "card0" ? std::array{"gpu2", "gpu3", "card1"} : std::array{"gpu0", "gpu1", "card0"};
    return std::ranges::find(gpus, name) != gpus.end();
  };
  std::erase_if(spec.vertices, [&](const auto& vertex) { return is_other(vertex.name); });
  std::erase_if(spec.links, [&](const LinkSpec& link) { return is_other(link.from) || is_other(link.to); });
  return spec;
}

Workload domain_on(const Topology& machine) { return make_workloads(machine, {}, "domain").value().at(0); }

double seconds(const Workload& domain, std::string_view planner) {
  BatchSimulation workspace;
  double ns = 0;
  for (const std::size_t batch : domain.order)
    ns += predict(*find_planner(planner), domain.batches[batch], Basis::Nominal, workspace);
  return ns / 1e9;
}

double domain_seconds(const MachineSpec& spec, std::string_view planner) {
  return seconds(domain_on(compile(spec).value()), planner);
}

// Published: 3.18 s. Card 1 of the weights that follow from Table 2 has 11.984 GB/s down to its GPUs and 11.732 up from
// them, and 11.984 and 11.691 at each GPU:
//   scatter   3690 MB / 11.984              =  307.910 ms
//   100 x     1 ms + max(23, 295.2 / 11.984 = 24.633) = 2563.284 ms
//   gather    3690 MB / 11.732              =  314.524 ms
// 3.1857 s in all, 0.2 % above the published figure. This takes copies between GPUs to have the rate at which they
// arrive, that of copies from the host to that GPU: the text has no weights for them. The GPUs are linked directly
// here.
TEST(PublishedWorkloads, TheDomainDecompositionTakes3Point186SecondsOnSandyBridge) {
  MachineSpec spec = one_card("card1");
  const LinkBandwidth arriving{GBps{11.984}, {}};
  spec.links.push_back({"gpu2", "gpu3", arriving, arriving});
  const double found = domain_seconds(spec, "completion_aligned");
  EXPECT_NEAR(found, 3.1857, 0.0001);
  EXPECT_NEAR(found, 3.18, 0.002 * 3.18);
}

// The shipped file has a GPU's link up, 11.691 GB/s, on the way between two GPUs: 295.2 / 11.691 = 25.250 ms, so
// 307.910 + 100 x 26.250 + 314.524 = 3247.4 ms: 2.1 % above the published figure.
TEST(PublishedWorkloads, TheShippedSandyBridgeIsWithin2Point2PercentOfThePublishedFigure) {
  const double found = domain_seconds(one_card("card1"), "completion_aligned");
  EXPECT_NEAR(found, 3.2474, 0.0001);
  EXPECT_NEAR(found, 3.18, 0.022 * 3.18);
}

// Published: 25.19 s with an allocation of the bandwidth that holds for the whole application, 7.9 times as long as
// with batches. Card 1 as shipped, with the shares of the transfers that cross each link: a GPU's link up carries its
// gather and its message, 11.691 / 2 = 5.8455 GB/s each, its link down its scatter and the neighbour's message, 5.992
// each.
//   scatter   1845 MB / 5.992               =  307.910 ms
//   100 x     1 ms + 295.2 MB / 5.8455 = 50.5004      = 5150.04 ms
//   gather    1845 MB / 5.8455              =  315.627 ms
// 5.7736 s, 1.78 times the 3.2474 s of batches. So the published ratio does not follow from shares of links. The next
// test has shares from which it does.
TEST(PublishedWorkloads, StaticAllocationTakes1Point78TimesAsLongWhereThePublishedRatioIs7Point9) {
  const MachineSpec spec = one_card("card1");
  const double batches = domain_seconds(spec, "completion_aligned");
  const double shares = domain_seconds(spec, "static_allocation");
  EXPECT_NEAR(shares, 5.7736, 0.0001);
  EXPECT_NEAR(shares / batches, 1.7779, 0.0001);
  EXPECT_NEAR(25.19 / 3.18, 7.92, 0.005);
  EXPECT_LT(shares / batches, 25.19 / 3.18);
  EXPECT_EQ(domain_seconds(spec, "bandwidth_allocation"), batches);  // each batch by itself: all its streams are equal
  RecordProperty("ratio", std::to_string(shares / batches));
}

// What 25.19 s may be: all transfers of the application have an eighth each of every link, whether they cross it or
// not. Eight are two scatters, two gathers, and two messages in two legs each. On card 0:
//   8 x (3690 MB / 12.0645 + 100 x 295.2 MB / 11.681 + 3690 MB / 12.190) + 100 x 1 ms
//     = 8 x (305.856 + 2527.181 + 302.707) + 100 = 25185.9 ms
TEST(PublishedWorkloads, AnEighthOfEveryLinkForEachTransferTakesThePublished25Point19Seconds) {
  constexpr double kCardDown = 12.0645, kCardUp = 12.190, kGpuDown = 11.681;
  const Topology machine = compile(one_card("card0")).value();
  const auto link = [&](const char* from, const char* to) {
    for (const Link& at : machine.links())
      if (at.from == machine.find_vertex(from) && at.to == machine.find_vertex(to)) return at.bandwidth.nominal.value;
    return 0.0;
  };
  EXPECT_EQ(std::make_tuple(link("cpu0", "card0"), link("card0", "cpu0"), link("card0", "gpu0")),
            std::make_tuple(kCardDown, kCardUp, kGpuDown));  // of the shipped file
  EXPECT_NEAR((8 * (3690 / kCardDown + 100 * 295.2 / kGpuDown + 3690 / kCardUp) + 100) / 1000, 25.19, 0.005);
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
    const Topology machine = load_machine(machine_path(name)).value();
    const Workload domain = domain_on(machine);
    for (const Batch& batch : domain.batches)
      for (const Planner& planner : planners())
        EXPECT_EQ(find_violation(machine, batch, plan(planner, batch).timeline).value_or("none"), "none")
            << name << ", " << planner.name;
    const std::size_t copies = 2 * (machine.gpus().size() - 1);
    EXPECT_EQ(domain.batches[2].streams().size(), copies + machine.gpus().size()) << name;
  }
}

// [VMS14] Table 1, seconds: Nehalem 20.03 with batches, 25.59 with bandwidth allocation, 23.10 with time division;
// Sandy Bridge 3.18, 25.19, 6.43. What holds of every machine is the first place.
TEST(PublishedWorkloads, TheDomainDecompositionIsSoonestWithBatches) {
  for (const std::string& name : shipped_machines()) {
    const Workload domain = domain_on(load_machine(machine_path(name)).value());
    const double batches = seconds(domain, "completion_aligned") * (1 - 1e-9);
    for (const char* planner : {"bandwidth_allocation", "static_allocation", "time_division"})
      EXPECT_LE(batches, seconds(domain, planner)) << name << ", " << planner;
  }
}

}  // namespace
}  // namespace tutti::internal
