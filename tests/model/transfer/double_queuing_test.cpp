#include "model/transfer/double_queuing.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

// 12 GB/s over the link, 4 from a thread: ceil(12 / 4) = 3 threads. They read and write 2 x 3 x 4 = 24, the engine
// reads 12: 36 of the memory's 40 GB/s, and floor((40 - 12) / 8) = 3 threads at most.
TEST(DoubleQueuing, AsManyThreadsAsFillTheLink) {
  const ProducerChoice choice = choose_producers({GBps{12}, GBps{4}, GBps{40}}, 16);
  EXPECT_EQ(choice, (ProducerChoice{3, 3, 3, GBps{12}, true}));
}

// With 30 GB/s of memory floor((30 - 12) / 8) = 2 threads: the link cannot be filled, and 30 / 3 = 10 GB/s are left.
TEST(DoubleQueuing, SaysTheRateWhereTheMemoryIsTooSlow) {
  const ProducerChoice choice = choose_producers({GBps{12}, GBps{4}, GBps{30}}, 16);
  EXPECT_EQ(choice, (ProducerChoice{3, 3, 2, GBps{10}, false}));
}

// Two cores: 2 x 4 = 8 GB/s.
TEST(DoubleQueuing, SaysTheRateWhereCoresAreTooFew) {
  const ProducerChoice choice = choose_producers({GBps{12}, GBps{4}, GBps{100}}, 2);
  EXPECT_EQ(choice, (ProducerChoice{2, 3, 11, GBps{8}, false}));
}

// Buffers that stay in the caches: 2 of 3 passes are left, and 30 GB/s feed 15 > 12; floor(30 / 8) = 3 threads.
TEST(DoubleQueuing, ReadsBuffersInTheCaches) {
  const ProducerChoice choice = choose_producers({GBps{12}, GBps{4}, GBps{30}}, 16, MemoryPasses::Cached);
  EXPECT_EQ(choice, (ProducerChoice{3, 3, 3, GBps{12}, true}));
}

// Where both conditions hold the link is full, and where the link is full the second one lacks less than a thread.
TEST(DoubleQueuing, FillsTheLinkWhereBothConditionsHold) {
  test::Random random(9);
  for (int round = 0; round < 5000; ++round) {
    const DoubleQueuingSpeeds speeds{GBps{random.real(1, 60)}, GBps{random.real(1, 20)}, GBps{random.real(2, 400)}};
    const ProducerChoice choice = choose_producers(speeds, random.between(1, 64));
    const double demand = speeds.link.value + 2 * choice.threads * speeds.thread.value;
    if (choice.threads * speeds.thread.value >= speeds.link.value && demand <= speeds.memory.value) {
      ASSERT_TRUE(choice.fills_link);
      ASSERT_EQ(choice.rate, speeds.link);
    }
    if (choice.fills_link) {
      ASSERT_LE(demand, speeds.memory.value * (1 + 1e-9));
    }
    ASSERT_LE(choice.rate.value, speeds.link.value);
  }
}

}  // namespace
}  // namespace tutti::internal
