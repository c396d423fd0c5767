// A prediction allocates nothing once its workspace has seen the batch. A program of its own, since it counts every
// `operator new` there is.
#include <gtest/gtest.h>

#include "model/planners/planner.hpp"
#include "tests/support/allocations.hpp"
#include "tests/support/random.hpp"
#include "tests/support/random_machine.hpp"

namespace tutti::internal {
namespace {

// But for the default planner, which asks for latest finishes.
TEST(Predict, AllocatesNothingAfterTheFirstCall) {
  for (std::uint64_t seed = 0; seed < test::rounds(300U); ++seed) {
    const Topology machine = test::random_machine(seed);
    const Batch batch = test::random_batch(machine, seed);
    for (const Planner& planner : planners().subspan(1)) {
      BatchSimulation workspace;
      predict(planner, batch, Basis::Nominal, workspace);
      const std::uint64_t before = test::allocations();
      for (const Basis basis : {Basis::Nominal, Basis::Nominal}) predict(planner, batch, basis, workspace);
      EXPECT_EQ(test::allocations() - before, 0U) << planner.name << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tutti::internal
