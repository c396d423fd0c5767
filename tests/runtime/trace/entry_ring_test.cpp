// The ring between a real-time thread and the journal: order, what fits, what is lost; and two threads at once.
#include "runtime/trace/entry_ring.hpp"

#include <thread>

#include <gtest/gtest.h>

#include "tests/runtime/trace/random_entries.hpp"

namespace tutti::internal {
namespace {

JobEntry numbered(std::uint64_t index) {
  JobEntry entry;
  entry.index = index;
  entry.arrival = Duration{static_cast<std::int64_t>(3 * index)};
  return entry;
}

TEST(EntryRing, GivesJobsBackInTheirOrder) {
  test::Random random(1);
  EntryRing ring(Bytes{1 << 20});
  RecordedJob job;
  EXPECT_FALSE(ring.pop(job));
  std::uint64_t handed_over = 0;
  for (int round = 0; round < 500; ++round) {
    std::vector<RecordedJob> expected(random.below(20));
    for (RecordedJob& each : expected) {
      each = {0, handed_over++, test::random_entry(random), test::random_streams(random, 30)};
      EXPECT_TRUE(ring.push(each.entry, each.streams));
    }
    for (const RecordedJob& each : expected) {
      ASSERT_TRUE(ring.pop(job));
      EXPECT_EQ(job, each);
    }
    EXPECT_FALSE(ring.pop(job));
  }
  EXPECT_EQ(ring.handed_over(), handed_over);
  EXPECT_EQ(ring.lost(), 0U);
}

// The smallest ring has room for one job with all its stream times, 16 + 152 + 2048 * 24 = 49,320 bytes, so it has
// 65,536: 390 jobs of 168 bytes.
TEST(EntryRing, CountsTheJobsThatFindNoRoom) {
  EntryRing ring(Bytes{0});
  for (std::uint64_t i = 0; i < 390; ++i) EXPECT_TRUE(ring.push(numbered(i), {}));
  EXPECT_FALSE(ring.has_room(0));
  EXPECT_FALSE(ring.push(numbered(390), {}));
  EXPECT_FALSE(ring.push(numbered(391), {}));
  EXPECT_EQ(ring.lost(), 2U);
  EXPECT_EQ(ring.handed_over(), 392U);

  // One job taken out makes room for one; its number shows that two are missing before it.
  RecordedJob job;
  ASSERT_TRUE(ring.pop(job));
  EXPECT_TRUE(ring.push(numbered(392), {}));
  EXPECT_FALSE(ring.push(numbered(393), {}));
  for (std::uint64_t i = 1; i < 390; ++i) {
    ASSERT_TRUE(ring.pop(job));
    EXPECT_EQ(job.number, i);
  }
  ASSERT_TRUE(ring.pop(job));
  EXPECT_EQ(job.number, 392U);
  EXPECT_EQ(job.entry, numbered(392));
  EXPECT_FALSE(ring.pop(job));
}

TEST(EntryRing, HasRoomForOneJobWithAllItsStreamTimes) {
  EntryRing ring(Bytes{0});
  const std::vector<StreamTime> streams(kMostStreamTimes + 5,
                                        StreamTime{1, 2, Duration{3}, Duration{4}, Duration{5}, Duration{6}});
  RecordedJob job;
  for (std::uint64_t i = 0; i < 10; ++i) {
    EXPECT_TRUE(ring.push(numbered(i), streams));
    EXPECT_FALSE(ring.push(numbered(i), streams)) << "there is no room for two";
    ASSERT_TRUE(ring.pop(job));
    EXPECT_EQ(job.entry, numbered(i));
    EXPECT_EQ(job.streams, std::vector<StreamTime>(streams.begin(), streams.begin() + kMostStreamTimes));
  }
}

// The one that hands over never waits, so some are lost; every one is either taken out, whole and in order, or counted.
TEST(EntryRing, TakesAndGivesInTwoThreads) {
  constexpr std::uint64_t kJobs = test::rounds(400'000);
  EntryRing ring(Bytes{0});
  std::thread hands_over([&] {
    std::vector<StreamTime> streams;
    for (std::uint64_t i = 0; i < kJobs; ++i) {
      streams.assign(i % 5,
                     StreamTime{0, static_cast<std::uint32_t>(i), Duration{1}, Duration{2}, Duration{2}, Duration{3}});
      ring.push(numbered(i), streams);
      if (i % 1000 == 0) std::this_thread::yield();
    }
  });
  RecordedJob job;
  std::uint64_t taken = 0, next = 0;
  bool whole = true, in_order = true;
  const auto take_all = [&] {
    while (ring.pop(job)) {
      ++taken;
      in_order &= job.number >= next;
      next = job.number + 1;
      whole &= job.entry == numbered(job.number) && job.streams.size() == job.number % 5;
      for (const StreamTime& time : job.streams) whole &= time.stream == static_cast<std::uint32_t>(job.number);
    }
  };
  while (ring.handed_over() < kJobs) take_all();
  hands_over.join();
  take_all();
  EXPECT_TRUE(whole);
  EXPECT_TRUE(in_order);
  EXPECT_GT(taken, 0U);
  EXPECT_EQ(taken + ring.lost(), kJobs);
}

}  // namespace
}  // namespace tutti::internal
