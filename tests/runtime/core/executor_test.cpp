#include "runtime/core/executor.hpp"

#include <gtest/gtest.h>

#include "model/batch/safe_bound.hpp"
#include "tests/runtime/small_machine.hpp"

namespace tutti::internal {
namespace {

using test::kernel_stream;
using test::Station;

/// As admission plans it.
ExecutionPlan admitted(const Batch& batch) {
  ExecutionPlan planned = plan(planners().front(), batch, Basis::Guaranteed);
  planned.latest = latest_finish(planned);
  return planned;
}

TEST(Executor, RefusesBatchesFromOutsideAnAdmittedRun) {
  Station station;
  auto outside = station.prepare({kernel_stream("s", station.at("gpu0"), "spin")}, {{}});
  {
    Executor::AdmittedRun run(station.executor);
    const auto refused = station.executor.issue(outside);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::InvalidInput);
    EXPECT_NE(refused.error().message.find("an admitted run owns the machine"), std::string::npos);

    const Batch operation = station.batch({kernel_stream("s", station.at("gpu0"), "spin")});
    auto inside = run.prepare(admitted(operation), {{}});
    ASSERT_TRUE(inside.has_value());
    EXPECT_TRUE(station.executor.issue(*inside).has_value());
    EXPECT_TRUE(station.executor.synchronize(*inside).has_value());
  }
  EXPECT_TRUE(station.executor.issue(outside).has_value()) << "the machine is free again";
  EXPECT_TRUE(station.executor.synchronize(outside).has_value());
}

TEST(Executor, DoesNotWaitForABatchThatWasNeverIssued) {
  Station station;
  auto batch = station.prepare({kernel_stream("s", station.at("gpu0"), "spin")}, {{}});
  const auto refused = station.executor.synchronize(batch);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message, "the batch was never issued; there is nothing to wait for");
}

TEST(Executor, RefusesBatchesOfAnEarlierAdmittedRun) {
  Station station;
  const Batch operation = station.batch({kernel_stream("s", station.at("gpu0"), "spin")});
  auto earlier = Executor::AdmittedRun(station.executor).prepare(admitted(operation), {{}});
  ASSERT_TRUE(earlier.has_value());
  const Executor::AdmittedRun later(station.executor);
  EXPECT_FALSE(station.executor.issue(*earlier).has_value());
}

// Admitted with 25 ns for a kernel that usually takes 10: it keeps to the plan that it was admitted with.
TEST(Executor, RunsAnAdmittedBatchByItsOwnPlan) {
  Station station;
  auto stream = kernel_stream("s", station.at("gpu0"), "spin", 10);
  stream.kernel->worst = Duration{25};
  const Batch operation = station.batch({stream});
  Executor::AdmittedRun run(station.executor);
  auto batch = run.prepare(admitted(operation), {{}});
  ASSERT_TRUE(batch.has_value());
  ASSERT_TRUE(station.executor.issue(*batch).has_value());
  EXPECT_EQ(station.executor.synchronize(*batch)->finish, Duration{25});
}

// The links of the other machine are faster.
TEST(Executor, RefusesAPlanOfAnotherMachine) {
  Station station;
  const Topology other = test::small_machine("9 GB/s");
  const Batch batch = Batch::make(other, {kernel_stream("s", station.at("gpu0"), "spin")}).value();
  const auto refused = station.executor.prepare(plan(planners().front(), batch), {{}}, "a batch");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidInput);
  EXPECT_NE(refused.error().message.find("planned for another machine"), std::string::npos);
}

TEST(ExecutorDeath, APlanThatWasNotAdmittedIsABug) {
  Station station;
  Executor::AdmittedRun run(station.executor);
  const Batch batch = station.batch({kernel_stream("s", station.at("gpu0"), "spin")});
  EXPECT_DEATH(static_cast<void>(run.prepare(plan(planners().front(), batch), {{}})), "has a latest finish");
}

TEST(ExecutorDeath, TwoAdmittedRunsAtATimeAreABug) {
  Station station;
  Executor::AdmittedRun run(station.executor);
  EXPECT_DEATH(Executor::AdmittedRun(station.executor), "one admitted run at a time");
}

TEST(PreparedBatch, MayMoveWhileItRuns) {
  Station station;
  auto batch = station.prepare({kernel_stream("s", station.at("gpu0"), "spin")}, {{}});
  ASSERT_TRUE(station.executor.issue(batch).has_value());
  PreparedBatch moved = std::move(batch);
  EXPECT_FALSE(station.executor.issue(moved).has_value()) << "it is still under way";
  EXPECT_TRUE(station.executor.synchronize(moved).has_value());
}

TEST(BufferOwner, MovesAndGivesBackOnce) {
  Station station;
  Buffer first = station.allocate(station.at("gpu2"), 100'000);
  Buffer second = std::move(first);
  EXPECT_EQ(first.view().data, nullptr);
  EXPECT_EQ(second.view().size, Bytes{100'000});
  EXPECT_FALSE(station.backend->allocate(station.at("gpu2"), Bytes{1}).has_value());
  { const Buffer third = std::move(second); }
  EXPECT_TRUE(station.backend->allocate(station.at("gpu2"), Bytes{100'000}).has_value());
}

}  // namespace
}  // namespace tutti::internal
