// A program of its own: it replaces `operator new` to count what issuing a batch takes from the heap.
#include <gtest/gtest.h>
#include <tutti/tutti.hpp>

#include "tests/support/allocations.hpp"

namespace {

using tutti::internal::test::allocations;

TEST(ApiAllocation, HappensNowhereBetweenIssueAndCompletion) {
  const auto batch = tutti::Batch::load(TUTTI_CONFIGS "/batches/inspection-example.yaml").value();
  const std::uint64_t at_first = allocations();
  auto runtime = tutti::Runtime::open(batch.machine().value()).value();
  auto prepared = runtime.prepare(batch, runtime.allocate_for(batch).value(), 2).value();
  EXPECT_GT(allocations(), at_first) << "what the library allocates is counted";

  const std::uint64_t before = allocations();
  bool ok = true;
  for (int i = 0; i < 2; ++i) {
    auto first = tutti::batchOpAsync(prepared);
    auto second = tutti::batchOpAsync(prepared);
    while (!*tutti::batchOpQuery(*second)) {
    }
    ok &= tutti::batchOpSynchronize(*first).has_value() && tutti::batchOpSynchronize(*second).has_value();
    ok &= tutti::batchOp(prepared).has_value();
  }
  EXPECT_EQ(allocations() - before, 0U);
  EXPECT_TRUE(ok);
}

}  // namespace
