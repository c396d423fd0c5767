#include <cstdint>
#include <cstdlib>

#include <gtest/gtest.h>

#include "runtime/dispatch/buffer_sets.hpp"
#include "tests/runtime/shared_runs.hpp"

namespace tutti::internal {
namespace {

using std::chrono::nanoseconds;
using test::SharingCounts;
using test::SharingWay;
using test::Station;

class SharedBuffers : public testing::TestWithParam<SharingWay> {};

INSTANTIATE_TEST_SUITE_P(Ways, SharedBuffers, testing::ValuesIn(test::kSharingWays));

/// `TUTTI_SHARED_SETS` sets, or a number for tests that run often.
std::uint64_t sets_to_run() {
  const char* const asked = std::getenv("TUTTI_SHARED_SETS");
  return asked == nullptr ? (test::kSanitized ? 40 : 150) : std::strtoull(asked, nullptr, 10);
}

TEST_P(SharedBuffers, AreReadAsTheNewestCompleteJobLeftThem) {
  SharingCounts counts;
  for (std::uint64_t seed = 1; seed <= sets_to_run(); ++seed) {
    Station station;
    test::expect_sharing(station, seed, GetParam(), {"gpu0", "gpu1", "gpu2"},
                         nanoseconds{200 * static_cast<std::int64_t>(1 + seed % 20)}, 60, counts);
    if (HasFailure()) return;
  }
  RecordProperty("jobs", std::to_string(counts.jobs));
  EXPECT_GT(counts.sets - counts.refused, counts.sets / 10);
  EXPECT_GT(counts.looks, counts.jobs / 10);
}

TEST(BufferSets, AreTakenInTurnWhereNobodyReadsThem) {
  BufferSets sets(3, 3);
  EXPECT_EQ(sets.next(4), 1U);
  for (std::uint64_t job = 0; job < 7; ++job) {
    EXPECT_EQ(sets.take(job), job % 3);
    sets.complete(job % 3, job);
    sets.give_back(job % 3);
  }
}

TEST(BufferSets, NobodyWritesWhatIsNewestOrHeld) {
  BufferSets sets(1, 3);
  const std::size_t untouched = sets.hold_newest();
  const std::size_t first = sets.take(0);
  EXPECT_NE(first, untouched);
  sets.complete(first, 0);
  sets.give_back(first);
  EXPECT_EQ(sets.expected_newest(), first);
  const std::size_t second = sets.take(1);
  EXPECT_NE(second, first) << "is the newest";
  EXPECT_NE(second, untouched) << "is held";
  sets.complete(second, 1);
  sets.give_back(second);
  EXPECT_EQ(sets.take(2), first) << "is free again";
}

TEST(BufferSets, TheNewestIsThatOfTheJobReleasedLast) {
  BufferSets sets(2, 4);
  const std::size_t first = sets.take(0), second = sets.take(1);
  sets.complete(second, 1);
  sets.complete(first, 0);
  EXPECT_EQ(sets.hold_newest(), second);
}

TEST(BufferSets, AreKeptForAJobThatIsExpected) {
  BufferSets sets(1, 3);
  const auto next = sets.next(0);
  sets.give_back(sets.hold_newest());
  EXPECT_EQ(sets.next(0), next);
  EXPECT_EQ(sets.take(0), next);
  sets.expect(*next);
  EXPECT_EQ(sets.expected_newest(), next);
  sets.fail(*next);  // and its callbacks have the set still
  EXPECT_NE(sets.expected_newest(), next);
}

}  // namespace
}  // namespace tutti::internal
