#include "runtime/pageable/double_queue.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

using Held = DoubleQueue::Held;

// Two buffers, three pieces: the third has to wait for a buffer.
TEST(DoubleQueue, APieceWaitsForAFreeBuffer) {
  DoubleQueue queue(2);
  queue.begin(3);
  EXPECT_EQ(queue.begin_fill(), (Held{0, 0}));
  EXPECT_EQ(queue.begin_fill(), (Held{1, 1}));
  EXPECT_EQ(queue.begin_fill(), std::nullopt);
  queue.end_fill({1, 1});
  EXPECT_EQ(queue.begin_empty(), (Held{1, 1}));
  EXPECT_EQ(queue.begin_empty(), std::nullopt);
  EXPECT_EQ(queue.begin_fill(), std::nullopt);
  queue.end_empty({1, 1});
  EXPECT_EQ(queue.begin_fill(), (Held{2, 1}));
}

// The engine holds buffer 0 of the first copy while the second one goes through buffer 1 alone, and ends.
TEST(DoubleQueue, ACopyEndsWhileTheEngineStillHasABufferOfTheOneBefore) {
  DoubleQueue queue(2);
  queue.begin(1);
  queue.end_fill(*queue.begin_fill());
  const auto first = queue.begin_empty();
  ASSERT_TRUE(queue.is_handed_over());
  ASSERT_FALSE(queue.is_over());
  queue.begin(2);
  for (std::size_t piece = 0; piece < 2; ++piece) {
    ASSERT_EQ(queue.begin_fill(), (Held{piece, 1}));
    queue.end_fill({piece, 1});
    ASSERT_EQ(queue.begin_empty(), (Held{piece, 1}));
    queue.end_empty({piece, 1});
  }
  EXPECT_TRUE(queue.is_over());
  queue.give_back(first->buffer);
  EXPECT_EQ(queue.free_buffers(), 2U);
}

TEST(DoubleQueue, AbortFreesWhatIsFullAndWaitsForWhatIsHeld) {
  DoubleQueue queue(3);
  queue.begin(9);
  const auto filling = queue.begin_fill();
  queue.end_fill(*queue.begin_fill());
  queue.end_fill(*queue.begin_fill());
  const auto emptying = queue.begin_empty();
  queue.abort();
  EXPECT_EQ(queue.begin_fill(), std::nullopt);
  EXPECT_EQ(queue.begin_empty(), std::nullopt);
  EXPECT_FALSE(queue.is_handed_over());
  queue.end_fill(*filling);
  EXPECT_TRUE(queue.is_handed_over());
  EXPECT_FALSE(queue.is_over());
  queue.end_empty(*emptying);
  EXPECT_TRUE(queue.is_over());
  EXPECT_EQ(queue.free_buffers(), 3U);
}

// ---- every order

/// A queue with the threads of both stages: each of them idle or with a piece in its hands. The engine may have all.
struct World {
  DoubleQueue queue;
  std::vector<std::optional<Held>> fillers;   ///< [threads of the first stage]
  std::vector<std::optional<Held>> emptiers;  ///< [threads of the second stage]
  std::vector<int> filled, emptied;           ///< [pieces] how often
  bool may_abort = false;

  [[nodiscard]] std::vector<std::size_t> key() const {
    std::vector<std::size_t> all{queue.free_buffers(), queue.full_buffers(), queue.was_aborted(), may_abort};
    const auto add = [&](const std::vector<std::optional<Held>>& stage) {
      for (const auto& held : stage) {
        all.push_back(held ? held->piece + 1 : 0);
        all.push_back(held ? held->buffer + 1 : 0);
      }
    };
    add(fillers);
    add(emptiers);
    // The queues themselves, by taking a copy apart.
    DoubleQueue rest = queue;
    while (const auto held = rest.begin_empty()) {
      all.push_back(held->piece + 1);
      all.push_back(held->buffer + 1);
    }
    while (const auto held = rest.begin_fill()) {
      all.push_back(100 + held->piece);
      all.push_back(100 + held->buffer);
    }
    for (std::size_t p = 0; p < filled.size(); ++p)
      all.push_back(static_cast<std::size_t>(10 * filled[p] + emptied[p]));
    return all;
  }
};

void check(const World& world, std::uint32_t buffers) {
  std::vector<int> owners(buffers);
  for (const auto* stage : {&world.fillers, &world.emptiers})
    for (const auto& held : *stage)
      if (held) ++owners[held->buffer];
  ASSERT_TRUE(std::ranges::all_of(owners, [](int count) { return count <= 1; })) << "a buffer in two hands";
  const auto held = static_cast<std::size_t>(std::ranges::count(owners, 1));
  ASSERT_EQ(world.queue.free_buffers() + world.queue.full_buffers() + held, buffers) << "a buffer is lost";
  for (std::size_t p = 0; p < world.filled.size(); ++p) {
    ASSERT_LE(world.filled[p], 1) << "piece " << p << " twice";
    ASSERT_LE(world.emptied[p], world.filled[p]) << "piece " << p << " was emptied before it was filled";
  }
}

/// All worlds that one step leads to.
std::vector<World> steps(const World& world) {
  std::vector<World> next;
  for (std::size_t i = 0; i < world.fillers.size(); ++i) {
    World one = world;
    auto& mine = one.fillers[i];
    if (mine) {
      ++one.filled[mine->piece];
      one.queue.end_fill(*mine);
      mine.reset();
    } else if (!(mine = one.queue.begin_fill())) {
      continue;
    }
    next.push_back(one);
  }
  for (std::size_t i = 0; i < world.emptiers.size(); ++i) {
    World one = world;
    auto& mine = one.emptiers[i];
    if (mine) {
      ++one.emptied[mine->piece];
      one.queue.end_empty(*mine);
      mine.reset();
    } else if (!(mine = one.queue.begin_empty())) {
      continue;
    }
    next.push_back(one);
  }
  if (world.may_abort) {
    World one = world;
    one.may_abort = false;
    one.queue.abort();
    next.push_back(one);
  }
  return next;
}

/// Visits every state that a copy can be in. @return how many there are
std::size_t explore(std::size_t fillers, std::size_t emptiers, std::uint32_t buffers, std::size_t pieces,
                    bool may_abort) {
  World start{DoubleQueue(buffers), {}, {}, std::vector<int>(pieces), std::vector<int>(pieces), may_abort};
  start.fillers.resize(fillers);
  start.emptiers.resize(emptiers);
  start.queue.begin(pieces);
  std::set<std::vector<std::size_t>> seen{start.key()};
  std::deque<World> open{start};
  while (!open.empty() && !testing::Test::HasFatalFailure()) {
    const World world = open.front();
    open.pop_front();
    check(world, buffers);
    bool moves = false;
    for (const World& next : steps(world)) {
      moves = moves || next.may_abort == world.may_abort;
      if (seen.insert(next.key()).second) open.push_back(next);
    }
    if (moves) continue;
    EXPECT_TRUE(world.queue.is_over()) << "nobody can move: a deadlock";
    EXPECT_EQ(world.queue.free_buffers(), buffers);
    if (!world.queue.was_aborted()) {
      EXPECT_TRUE(std::ranges::all_of(world.emptied, [](int count) { return count == 1; })) << "a piece is lost";
    }
  }
  return seen.size();
}

// Upwards: two threads fill, the engine holds as many buffers as there are. Downwards: the engine fills, two threads
// empty. N = 2, so 4 buffers.
TEST(DoubleQueue, NoOrderOfStepsLosesOrDoublesAPieceOrABuffer) {
  EXPECT_GT(explore(2, 2, 4, 6, false), 1000U);
  EXPECT_GT(explore(2, 1, 4, 6, false), 500U);
  EXPECT_GT(explore(1, 2, 2, 5, false), 100U);
  EXPECT_GT(explore(2, 2, 1, 4, false), 10U);
}

TEST(DoubleQueue, NoOrderOfStepsLosesABufferWhereACopyIsAborted) {
  EXPECT_GT(explore(2, 2, 4, 5, true), 1000U);
  EXPECT_GT(explore(2, 1, 3, 5, true), 500U);
  EXPECT_GT(explore(1, 2, 2, 5, true), 100U);
}

}  // namespace
}  // namespace tutti::internal
