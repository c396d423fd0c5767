#include "sched/whatif/cut_search.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "sched/tasks/cut.hpp"
#include "tests/support/task_timings.hpp"

namespace tutti::internal {
namespace {

using oracle::Dice;
using Sizes = std::vector<std::int64_t>;

constexpr std::int64_t kWhole = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kPlenty = 1'000'000;

// 10 bytes fall into 2 chunks from 5 up to 9, into 3 at 4 (4, 3, 3). 7 bytes into 2 from 4 to 6. So both alike: 5 to 6.
TEST(SizesWithEqualCuts, GiveEveryBatchTheSamePieces) {
  EXPECT_EQ(sizes_with_equal_cuts(Sizes{10}, 5), (CutRange{5, 9}));
  EXPECT_EQ(sizes_with_equal_cuts(Sizes{10}, 9), (CutRange{5, 9}));
  EXPECT_EQ(sizes_with_equal_cuts(Sizes{10}, 4), (CutRange{4, 4}));
  EXPECT_EQ(sizes_with_equal_cuts(Sizes{10, 7}, 5), (CutRange{5, 6}));
  EXPECT_EQ(sizes_with_equal_cuts(Sizes{10, 7}, 9), (CutRange{7, 9}));
  EXPECT_EQ(sizes_with_equal_cuts(Sizes{10, 7}, 10), (CutRange{10, kWhole}));
}

// A million bytes are 1000 chunks of 1000, or of 1001, and of whatever is less.
TEST(SizesWithEqualCuts, KnowTheMostPieces) {
  EXPECT_EQ(sizes_with_equal_cuts(Sizes{1'000'000}, 1000), (CutRange{1, 1001}));
  EXPECT_EQ(sizes_with_equal_cuts(Sizes{1'000'000}, 1002), (CutRange{1002, 1002}));
}

/// Where a batch of 100 bytes falls into so many chunks.
CutFound find_where(const std::function<bool(std::size_t)>& holds, std::int64_t now = 0) {
  return find_cut([&](std::int64_t size) { return holds(chunks_of(100, size)); }, Sizes{100}, now, kPlenty);
}

// 3 chunks are 34 to 49 bytes each; 5 are 20 to 24.
TEST(FindCut, FindsTheLargestPieces) {
  EXPECT_EQ(find_where([](std::size_t chunks) { return chunks >= 3; }).size, 49);
  EXPECT_EQ(find_where([](std::size_t chunks) { return chunks == 3 || chunks >= 5; }).size, 49);
  EXPECT_EQ(find_where([](std::size_t chunks) { return chunks == 5; }).size, 24);
  const CutFound none = find_where([](std::size_t) { return false; });
  EXPECT_FALSE(none.size.has_value());
  EXPECT_TRUE(none.all_tried);
}

// Now in chunks of 2, with too much set-up: fewer hold; even none at all.
TEST(FindCut, FindsLargerOnesThanNow) {
  EXPECT_EQ(find_where([](std::size_t chunks) { return chunks > 1 && chunks < 20; }, 2).size, 99);
  EXPECT_EQ(find_where([](std::size_t chunks) { return chunks < 20; }, 2).size, 100);
}

// 10 MB in at least 700 chunks: below 10^7 / 699 = 14,306.15, to a 1000th 14,300. Not each number of chunks is tried.
TEST(FindCut, TakesLongerStepsTowardsSmallPieces) {
  int tried = 0;
  const auto holds = [&](std::int64_t size) {
    ++tried;
    return chunks_of(10'000'000, size) >= 700;
  };
  EXPECT_EQ(find_cut(holds, Sizes{10'000'000}, 0, kPlenty).size, 14'306 - 6);
  EXPECT_LT(tried, 120);
}

// Of 20 chunks 2, 3 and 4 leave 11, fewer than three quarters: a 16th below 24 B are 23 B, 5 chunks like 24 B. 6 are
// left, fewer than half: so half of 19 B comes next, 10 B, which would be 10 chunks.
TEST(FindCut, StopsWhereTooManyPiecesWereMade) {
  Sizes tried;
  const auto never = [&](std::int64_t size) { return tried.push_back(size), false; };
  const CutFound found = find_cut(never, Sizes{100}, 200, 20);
  EXPECT_FALSE(found.size.has_value());
  EXPECT_FALSE(found.all_tried);
  EXPECT_EQ(tried, (Sizes{99, 49, 33, 24}));
}

// 1000 batches in at least 10 chunks, of which 60,000 may be made: steps become halves in time to find some.
TEST(FindCut, GetsFarWithManyBatches) {
  const Sizes largest(1000, 1'000'000);
  const auto holds = [&](std::int64_t size) { return chunks_of(1'000'000, size) >= 10; };
  const CutFound found = find_cut(holds, largest, 0, 60'000);
  ASSERT_TRUE(found.size.has_value());
  EXPECT_TRUE(holds(*found.size));
}

// Against all sizes, one after the other, whatever holds: below 65 ways to cut none is left out.
TEST(FindCut, AgreesWithTryingEverySize) {
  Dice dice(3);
  int found = 0;
  for (int round = 0; round < 2000; ++round) {
    Sizes largest(static_cast<std::size_t>(dice.roll(1, 3)));
    for (std::int64_t& size : largest) size = dice.roll(1, 60);
    const std::int64_t salt = dice.roll(0, 1'000'000);
    const auto holds = [&](std::int64_t size) {
      std::int64_t mixed = salt;
      for (const std::int64_t bytes : largest)
        mixed = (mixed * 31 + static_cast<std::int64_t>(chunks_of(bytes, size))) % 1'000'003;
      return mixed % 17 == 0;
    };
    std::int64_t now = dice.roll(0, 60);
    const std::int64_t whole = *std::max_element(largest.begin(), largest.end());
    if (holds(now > 0 ? now : whole)) continue;
    std::optional<std::int64_t> slow;
    for (std::int64_t size = 1; size <= whole; ++size)
      if (holds(size)) slow = size;
    ASSERT_EQ(find_cut(holds, largest, now, kPlenty).size, slow);
    found += slow ? 1 : 0;
  }
  EXPECT_GT(found, 500);
}

}  // namespace
}  // namespace tutti::internal
