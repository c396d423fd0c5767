#include "runtime/dispatch/slot_ring.hpp"

#include <atomic>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/runtime/ring_runs.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

using test::Camera;
using test::RingMemory;
using test::RingWay;
using test::Station;

/// A slot that a job has got, as (slot, number, whether it is new).
using Got = std::tuple<std::size_t, std::uint64_t, bool>;
Got got(const HeldSlot& held) { return {held.slot(), held.number(), held.is_new()}; }

std::string refusal(const Expected<void>& answer) { return answer ? "" : answer.error().message; }

// Of four slots the producer writes 0, 1 and 0 again; 3 is what was there before the first.
TEST(SlotRing, GivesTheNewestCompleteSlotAndMarksItOnce) {
  RingMemory memory(4, 1);
  std::vector<std::size_t> freed;
  SlotRing ring(memory.slots(), [&](std::size_t slot) { freed.push_back(slot); });
  HeldSlot first = ring.take();
  EXPECT_EQ(got(first), Got(3, 0, false)) << "as the program left it";
  EXPECT_EQ(ring.begin(), 0U);
  EXPECT_EQ(ring.begin(), 1U);
  ASSERT_TRUE(ring.complete(1) && ring.complete(0));
  EXPECT_EQ(freed, (std::vector<std::size_t>{1})) << "nobody took it, and 0 is newer";
  HeldSlot second = ring.take();
  EXPECT_EQ(got(second), Got(0, 2, true));
  HeldSlot third = ring.take();
  EXPECT_EQ(got(third), Got(0, 2, false)) << "nothing new: the newest again";
  second.give_back();
  first.give_back();
  EXPECT_EQ(freed, (std::vector<std::size_t>{1, 3}));
  third.give_back();
  EXPECT_FALSE(ring.is_free(0)) << "the next job may need it once more";
  EXPECT_EQ(got(ring.take()), Got(0, 2, false));
  EXPECT_EQ(ring.begin(), 2U);
  ASSERT_TRUE(ring.complete(2).has_value());
  EXPECT_EQ(freed, (std::vector<std::size_t>{1, 3, 0}));
  EXPECT_EQ(ring.newest(), 2U);
  EXPECT_TRUE(ring.is_free(0) && ring.is_free(1) && ring.is_free(3) && !ring.is_free(2) && !ring.is_free(4));
}

TEST(SlotRing, RefusesWhatTheProducerHasNot) {
  RingMemory memory(3, 1);
  SlotRing ring(memory.slots(), nullptr);
  EXPECT_EQ(refusal(ring.complete(3)), "there is no slot 3; the ring has 3, from 0");
  EXPECT_EQ(refusal(ring.begin(7)), "there is no slot 7; the ring has 3, from 0");
  EXPECT_EQ(refusal(ring.complete(0)),
            "slot 0 is not being written: it is free; begin it, write, and complete it once");
  ASSERT_TRUE(ring.begin(0).has_value());
  EXPECT_EQ(refusal(ring.begin(0)), "slot 0 is not free: the producer has begun it; begin one that is");
  ASSERT_TRUE(ring.complete(0).has_value());
  const char* const held =
      "slot 0 is not being written: it is the newest one, or a job holds it; begin it, write, and "
      "complete it once";
  EXPECT_EQ(refusal(ring.complete(0)), held) << "twice";
  HeldSlot job = ring.take();
  EXPECT_EQ(refusal(ring.complete(0)), held) << "a job has it";
  EXPECT_EQ(refusal(ring.begin(0)), "slot 0 is not free: it is the newest one, or a job holds it; begin one that is");
  EXPECT_TRUE(ring.begin() && ring.begin());
  EXPECT_FALSE(ring.begin()) << "one job and two that are written";
  HeldSlot moved = std::move(job);
  EXPECT_TRUE(moved.holds() && !job.holds());  // NOLINT: it holds nothing now
  EXPECT_TRUE(ring.join());
  EXPECT_FALSE(ring.join()) << "one run at a time";
}

// Up to `alive` jobs hold slots and give them back in any order, from two threads. What a job sees is whole while it
// has it, not older than what was complete when it took it, and not older than what the job before it had.
TEST(SlotRing, SlotsAreWholeAndNewestAtAnyRate) {
  for (const std::size_t alive : {1U, 2U, 5U}) {
    RingMemory memory(alive + 2, 64);
    SlotRing ring(memory.slots(), nullptr);
    Camera camera(ring, memory, {});
    test::Random random(alive);
    std::deque<HeldSlot> jobs;
    std::uint64_t last = 0, seen = 0;
    const auto expect_whole = [&](const HeldSlot& job) {
      for (const std::uint64_t word : memory[job.slot()]) ASSERT_EQ(word, job.number());
    };
    std::mutex mutex;
    std::vector<HeldSlot> ended;
    std::atomic<bool> stops = false;
    std::atomic<std::size_t> held = 0;
    const auto end = [&](HeldSlot& job) {
      expect_whole(job);
      job.give_back();
      --held;
    };
    std::thread callbacks([&] {
      while (!stops || held > 0) {
        std::vector<HeldSlot> mine;
        {
          const std::lock_guard lock(mutex);
          mine.swap(ended);
        }
        for (HeldSlot& job : mine) end(job);
        std::this_thread::yield();
      }
    });
    const auto end_one = [&](bool here) {
      const std::size_t which = random.below(jobs.size());
      HeldSlot job = std::move(jobs[which]);
      jobs.erase(jobs.begin() + static_cast<std::ptrdiff_t>(which));
      if (here) return end(job);
      const std::lock_guard lock(mutex);
      ended.push_back(std::move(job));
    };
    for (int i = 0; i < (test::kSanitized ? 2'000 : 20'000) && !testing::Test::HasFailure(); ++i) {
      while (held == alive) {
        if (!jobs.empty()) end_one(true);
        std::this_thread::yield();
      }
      const std::uint64_t complete = camera.complete();
      jobs.push_back(ring.take());
      ++held;
      const HeldSlot& job = jobs.back();
      expect_whole(job);
      EXPECT_GE(job.number(), complete);
      EXPECT_GE(job.number(), last);
      EXPECT_EQ(job.is_new(), job.number() > last);
      seen += job.is_new() ? 1 : 0;
      last = job.number();
      if (random.one_in(2)) end_one(!random.one_in(8));
    }
    while (!jobs.empty()) end_one(true);
    stops = true;
    callbacks.join();
    camera.stop();
    EXPECT_GT(seen, 0U);
    EXPECT_EQ(camera.without_slot(), 0U) << alive << " jobs and two slots";
  }
}

TEST(SlotRing, CountsTheFramesOfSeveralProducers) {
  RingMemory memory(6, 8);
  SlotRing ring(memory.slots(), nullptr);
  constexpr std::uint64_t kFrames = 20'000;
  const auto produce = [&] {
    for (std::uint64_t frame = 0; frame < kFrames;) {
      const auto slot = ring.begin();
      if (!slot) continue;
      std::ranges::fill(memory[*slot], frame);
      EXPECT_TRUE(ring.complete(*slot).has_value());
      ++frame;
    }
  };
  std::thread one(produce), other(produce);
  std::uint64_t last = 0;
  while (last < 2 * kFrames) {
    const HeldSlot job = ring.take();
    EXPECT_GE(job.number(), last);
    last = job.number();
    for (const std::uint64_t word : memory[job.slot()]) ASSERT_EQ(word, memory[job.slot()].front());
  }
  one.join();
  other.join();
  EXPECT_EQ(ring.take().number(), 2 * kFrames);
}

class RingRuns : public testing::TestWithParam<RingWay> {};

INSTANTIATE_TEST_SUITE_P(Ways, RingRuns, testing::ValuesIn(test::kRingWays));

TEST_P(RingRuns, JobsGetWholeFramesOfACameraAtAnotherRate) {
  Station station;
  test::expect_whole_frames(station, GetParam(), std::chrono::microseconds{100}, test::kSanitized ? 2'000 : 20'000);
}

}  // namespace
}  // namespace tutti::internal
