#include "runtime/dispatch/partition_machines.hpp"

#include <gtest/gtest.h>

#include "tests/support/two_sides.hpp"

namespace tutti::internal {
namespace {

constexpr const char* kToFirst = "from: mem0, to: gpu0, size: 6 kB";
constexpr const char* kToSecond = "from: mem0, to: gpu1, size: 6 kB";

PlannedTaskSet planned(const std::vector<std::string>& streams) {
  return AdmissionController(planners().front()).plan(test::tasks_of(test::two_sides(), streams));
}

TEST(PartitionMachines, AreOneForEachPartitionAndShareNothing) {
  const PlannedTaskSet set = planned({kToFirst, kToSecond, kToFirst});
  const KernelRegistry kernels;
  const auto made = PartitionMachines::make({}, set, *set.tasks.machine, kernels);
  ASSERT_TRUE(made.has_value()) << made.error().text();
  ASSERT_EQ(made->executors().size(), 2U);
  const Executor& first = *made->executors()[0];
  const Executor& second = *made->executors()[1];
  EXPECT_NE(&first.clock(), &second.clock());
  EXPECT_NE(&first.backend(), &second.backend());
  EXPECT_EQ(&first.machine(), &*set.tasks.machine);
  const RunPlace place = made->place();
  EXPECT_EQ(place.backend, "sim");
  EXPECT_EQ(place.clock, "virtual");
  EXPECT_EQ(place.partitions, 2U);
  EXPECT_TRUE(place.notes.empty());
}

// A set without tasks has a machine, too: it is one partition.
TEST(PartitionMachines, AreOneForASingleOne) {
  for (const PlannedTaskSet& set : {planned({kToFirst}), planned({})}) {
    const KernelRegistry kernels;
    const auto made = PartitionMachines::make({}, set, *set.tasks.machine, kernels);
    ASSERT_TRUE(made.has_value()) << made.error().text();
    EXPECT_EQ(made->executors().size(), 1U);
    EXPECT_EQ(made->place().partitions, 1U);
  }
}

TEST(PartitionMachines, AreNoneWhereABackendCannotBeMade) {
  const PlannedTaskSet set = planned({kToFirst, kToSecond});
  const KernelRegistry kernels;
  const tutti::BackendOptions options{.kind = BackendKind::Cuda};  // none of the GPUs has a bus id
  const auto made = PartitionMachines::make(options, set, *set.tasks.machine, kernels);
  ASSERT_FALSE(made.has_value());
  EXPECT_FALSE(made.error().message.empty());
}

TEST(PartitionMachines, AreNoneWhereTheWatchdogGivesUpWhatGoesAsPlanned) {
  const PlannedTaskSet set = planned({kToFirst});
  const auto made = PartitionMachines::make({.watchdog = {0.5, Duration{0}}}, set, *set.tasks.machine, {});
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().message.find("a watchdog of 0.5x+0ns would give up"), 0U) << made.error().message;
}

}  // namespace
}  // namespace tutti::internal
