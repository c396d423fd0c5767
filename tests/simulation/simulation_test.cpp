#include <gtest/gtest.h>

#include "tests/simulation/simulated_run.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal::simulation {
namespace {

// `tools/simulate` runs more of them.
TEST(Simulation, KeepsItsInvariants) {
  std::uint64_t inside = 0, outside_missed = 0, batches = 0, faults = 0, journals = 0, triggers = 0, overlapping = 0;
  const std::uint64_t seeds = test::rounds(400U);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Outcome outcome = run({.seed = seed, .jobs = 60});
    ASSERT_FALSE(outcome.violation.has_value()) << "seed " << seed << ": " << *outcome.violation;
    inside += outcome.inside ? 1 : 0;
    outside_missed += outcome.missed;
    batches += outcome.batches;
    faults += outcome.faults;
    journals += outcome.journals;
    triggers += outcome.triggers;
    overlapping += outcome.overlaps ? 1 : 0;
  }
  EXPECT_GE(inside * 10, seeds * 2) << "too few seeds are inside the envelope";
  EXPECT_GT(outside_missed, 0U) << "nothing goes wrong";
  EXPECT_GT(batches, seeds * 60) << "batches are not watched";
  EXPECT_GT(faults, seeds * 10) << "faults of the list meet nothing";
  EXPECT_GE(overlapping * 5, seeds) << "too few seeds overlap";
  EXPECT_GT(triggers, seeds * 5) << "triggers are missing";
  EXPECT_GE(journals, seeds / 16) << "journals are missing";
}

TEST(Simulation, IsTheSameForTheSameSeed) {
  for (std::uint64_t seed = 1; seed <= (test::kSanitized ? 5 : 20); ++seed) {
    const Outcome one = run({.seed = seed}), two = run({.seed = seed});
    EXPECT_EQ(one.jobs, two.jobs);
    EXPECT_EQ(one.missed, two.missed);
    EXPECT_EQ(one.over, two.over);
    EXPECT_EQ(one.faults, two.faults);
    EXPECT_EQ(one.batches, two.batches);
  }
}

// Each planted fault breaks its invariant in some of the seeds, and is known by it.
TEST(Simulation, FindsEveryPlantedFault) {
  for (const Plant& plant : plants().first(test::kSanitized ? 3 : plants().size())) {
    bool found = false;
    for (std::uint64_t seed = 1; seed <= 60 && !found; ++seed) {
      const Outcome outcome = run({.seed = seed, .jobs = 60, .planted = std::string(plant.name)});
      found = outcome.violation && outcome.violation->find(plant.violates) != std::string::npos;
    }
    EXPECT_TRUE(found) << plant.name;
  }
}

TEST(Simulation, ShrinksACaseThatBreaksAnInvariant) {
  const Case small = shrunk({.seed = 3, .jobs = 60, .planted = "doubled"});
  EXPECT_EQ(small.jobs, 1U);
  EXPECT_EQ(small.tasks, 1U);
  EXPECT_TRUE(run(small).violation.has_value());
}

}  // namespace
}  // namespace tutti::internal::simulation
