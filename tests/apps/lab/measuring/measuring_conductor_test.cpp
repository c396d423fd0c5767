#include "apps/lab/measuring/measuring_conductor.hpp"

#include <memory>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "apps/lab/fits/cost_batch.hpp"
#include "model/planners/planner.hpp"
#include "tests/runtime/small_machine.hpp"

namespace tutti::internal {
namespace {

using test::Station;

/// The small machine with room for these samples, and a dispatch of 7 us.
Topology roomy_machine(Duration dispatch = Duration{7000}) {
  return test::changed(test::small_machine(), [&](MachineSpec& spec) {
    spec.setup.dispatch = dispatch;
    for (Vertex& vertex : spec.vertices) vertex.memory = {};
  });
}

CostOptions few_led() {
  CostOptions options;
  options.repetitions = options.repetitions_of_one = 2;
  options.largest = Bytes{64 << 10};
  return options;
}

// The simulated machine takes its dispatch of 7 us and the length of the plan, whichever lane has its turn. gpu2
// reaches no other GPU: its staged copies are left out, and all else is there.
TEST(MeasuringConductor, TimesAreThoseOfTheMachine) {
  Station station(std::make_unique<VirtualClock>(), Station::make_sim, roomy_machine());
  const auto samples = measure_led_costs(station.executor, plan_led_costs(station.machine, few_led()), few_led());
  ASSERT_TRUE(samples.has_value()) << samples.error().text();
  std::set<int> lanes;
  std::set<CostWork> works;
  std::set<std::size_t> streams;
  for (const CostSample& sample : *samples) {
    const Batch batch = cost_batch(station.machine, sample).value().batch;
    const double length = as_ns(plan(*find_planner("all_at_once"), batch).timeline.latency);
    for (const double ns : sample.ns) EXPECT_NEAR(ns, 7000 + length, 1) << to_string(sample.work);
    lanes.insert(sample.lanes);
    works.insert(sample.work);
    if (sample.on_all) streams.insert(batch.streams().size());
  }
  EXPECT_EQ(streams, std::set{station.machine.gpus().size()});
  EXPECT_EQ(lanes.size(), 3U);
  EXPECT_EQ(works, (std::set{CostWork::Up, CostWork::Down, CostWork::Peer, CostWork::Kernel, CostWork::LoneKernels}));
}

// All tasks of a burst arrive together, and a machine whose conductor takes no time begins one of them on each engine
// at that instant.
TEST(MeasuringConductor, ABurstLastsUntilEachEngineHasBegun) {
  Station station(std::make_unique<VirtualClock>(), Station::make_sim, roomy_machine(Duration{0}));
  CostMeasurements found;
  ASSERT_TRUE(measure_bursts(station.executor, few_led(), found).has_value());
  EXPECT_EQ(found.visits, 2 * 14 + 2 * static_cast<int>(station.machine.gpus().size()));
  EXPECT_EQ(found.bursts, std::vector<double>(5 * 40, 0));
}

TEST(MeasuringConductor, AMachineThatLeadsNothingIsNoted) {
  Station station(std::make_unique<RealClock>(), Station::make_sim, roomy_machine());
  CostOptions options = few_led();
  std::string note;
  options.note = [&](const std::string& sentence) { note = sentence; };
  const auto samples = measure_led_costs(station.executor, plan_led_costs(station.machine, options), options);
  ASSERT_TRUE(samples.has_value()) << samples.error().text();
  EXPECT_TRUE(samples->empty());
  EXPECT_EQ(note.find("costs of what a GPU leads are not measured: "), 0U) << note;
  CostMeasurements found;
  ASSERT_TRUE(measure_bursts(station.executor, options, found).has_value());
  EXPECT_EQ(found, CostMeasurements{});
}

}  // namespace
}  // namespace tutti::internal
