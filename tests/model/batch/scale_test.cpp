// Batches of many streams on machines with many rows, beside the slow simulation; no word about time, which is measured
// in tests/bench.
#include <vector>

#include <gtest/gtest.h>

#include "model/planners/planner.hpp"
#include "tests/support/random.hpp"
#include "tests/support/slow_simulation.hpp"
#include "tests/support/trees.hpp"

namespace tutti::internal {
namespace {

struct Size {
  test::Tree tree;
  std::size_t gpus, streams;
};
constexpr Size kSizes[] = {{test::Tree::Nested, 4, 120},  {test::Tree::Nested, 32, 80},  {test::Tree::Sockets, 4, 200},
                           {test::Tree::Sockets, 8, 100}, {test::Tree::Sockets, 16, 80}, {test::Tree::Sockets, 32, 80}};

/// From the gates that a planner chose, the slow simulation has all streams start and end when ours does.
void expect_like_slow(const Planner& planner, const Topology& machine, const Batch& batch) {
  BatchSimulation simulation;
  const double latency = predict(planner, batch, Basis::Nominal, simulation);
  std::vector<double> gates;
  for (const StreamTimes& times : simulation.times()) gates.push_back(times.gate);
  const auto slow = test::slow_forward(machine, Basis::Nominal, batch, planner.rates, gates);
  EXPECT_NEAR(latency, slow.latency, 1e-9 * latency);
  for (std::size_t i = 0; i < gates.size(); ++i) {
    const StreamTimes& times = simulation.times()[i];
    EXPECT_NEAR(times.transfer_start, slow.times[i].transfer_start, 1e-9 * latency) << "stream " << i;
    EXPECT_NEAR(times.transfer_end, slow.times[i].transfer_end, 1e-9 * latency) << "stream " << i;
    EXPECT_NEAR(times.kernel_end, slow.times[i].kernel_end, 1e-9 * latency) << "stream " << i;
  }
}

TEST(ManyStreams, AreLikeTheSlowSimulation) {
  test::Random random(21);
  for (const auto& [tree, gpus, streams] : kSizes) {
    for (const bool kernels : {false, true}) {
      if (test::kSanitized && (!kernels || gpus > 16)) continue;  // the others run the same code
      SCOPED_TRACE(testing::Message() << gpus << " GPUs, " << streams << " streams");
      const Topology machine = test::make_tree(tree, gpus);
      const Batch batch = test::make_tree_batch(machine, tree, streams, kernels, random);
      for (const char* planner : {"completion_aligned", "all_at_once"})
        expect_like_slow(*find_planner(planner), machine, batch);
    }
  }
}

// The most that a batch may hold. Nothing compares it with the slow simulation, but the timeline keeps its rules: bytes
// add up, nothing overlaps on an engine, the length is the last end.
TEST(ManyStreams, AsManyAsABatchHoldsKeepTheRulesAndRepeatToTheLastBit) {
  test::Random random(22);
  for (const test::Tree tree : {test::Tree::Nested, test::Tree::Sockets}) {
    const Topology machine = test::make_tree(tree, 64);
    const auto batch = test::make_tree_batch(machine, tree, Batch::kMostStreams, true, random);
    const auto few = test::make_tree_batch(machine, tree, 8, true, random);
    const Planner& planner = planners().front();
    EXPECT_EQ(find_violation(machine, batch, plan(planner, batch).timeline).value_or("none"), "none");
    BatchSimulation fresh, used;
    predict(planner, few, Basis::Nominal, used);
    predict(planner, batch, Basis::Nominal, used);
    predict(planner, few, Basis::Nominal, used);
    EXPECT_EQ(predict(planner, batch, Basis::Nominal, used), predict(planner, batch, Basis::Nominal, fresh));
    for (std::size_t i = 0; i < batch.streams().size(); ++i)
      EXPECT_EQ(used.times()[i].transfer_start, fresh.times()[i].transfer_start) << "stream " << i;
  }
}

}  // namespace
}  // namespace tutti::internal
