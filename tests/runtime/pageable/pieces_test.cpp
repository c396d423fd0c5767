#include "runtime/pageable/pieces.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

constexpr std::size_t kKiB = 1 << 10, kMiB = 1 << 20;
using Range = Pieces::Range;

// Buffers of 2 MiB, four threads: pieces of 512, 1024, 1536 and 2048 KiB (5 MiB in all), then 2 MiB at a time; the last
// piece of 44 MiB is the MiB that is left.
TEST(Pieces, BeginSmallAndThenFillTheirBuffers) {
  const Pieces pieces(44 * kMiB, 2 * kMiB, 4);
  ASSERT_EQ(pieces.count(), 24U);
  EXPECT_EQ(pieces[0], (Range{0, 512 * kKiB}));
  EXPECT_EQ(pieces[1], (Range{512 * kKiB, 1 * kMiB}));
  EXPECT_EQ(pieces[2], (Range{1536 * kKiB, 1536 * kKiB}));
  EXPECT_EQ(pieces[3], (Range{3 * kMiB, 2 * kMiB}));
  EXPECT_EQ(pieces[4], (Range{5 * kMiB, 2 * kMiB}));
  EXPECT_EQ(pieces[23], (Range{43 * kMiB, 1 * kMiB}));
}

// Four threads have at least four pieces each: 32 MiB go in pieces of 2 MiB, though buffers have 8.
TEST(Pieces, AreEnoughForEveryThread) {
  const Pieces pieces(32 * kMiB, 8 * kMiB, 4);
  EXPECT_EQ(pieces[3], (Range{3 * kMiB, 2 * kMiB}));
  EXPECT_EQ(pieces[4], (Range{5 * kMiB, 2 * kMiB}));
}

// 100 KiB by four threads: a tenth is 10 KiB, in whole pages 12; pieces of 12, 24 and 36 KiB, and the 28 that are left.
TEST(Pieces, AreSmallerWhereTheCopyIs) {
  const Pieces pieces(100 * kKiB, 2 * kMiB, 4);
  ASSERT_EQ(pieces.count(), 4U);
  EXPECT_EQ(pieces[0], (Range{0, 12 * kKiB}));
  EXPECT_EQ(pieces[2], (Range{36 * kKiB, 36 * kKiB}));
  EXPECT_EQ(pieces[3], (Range{72 * kKiB, 28 * kKiB}));
}

TEST(Pieces, AreOneWhereTheCopyIsSmall) {
  const Pieces pieces(5, 2 * kMiB, 8);
  ASSERT_EQ(pieces.count(), 1U);
  EXPECT_EQ(pieces[0], (Range{0, 5}));
}

TEST(Pieces, AbutAndCoverEveryCopy) {
  test::Random random(17);
  for (int round = 0; round < 2000; ++round) {
    const std::size_t buffer = std::size_t{1} << random.between(6, 22);
    const auto bytes = static_cast<std::size_t>(1 + random.below(std::uint64_t{1} << random.between(1, 26)));
    const Pieces pieces(bytes, buffer, static_cast<std::size_t>(random.between(1, 16)));
    std::size_t end = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(pieces.count(), 500); ++i) {
      ASSERT_EQ(pieces[i].offset, end);
      ASSERT_GT(pieces[i].bytes, 0U);
      ASSERT_LE(pieces[i].bytes, buffer);
      end += pieces[i].bytes;
    }
    const auto [offset, size] = pieces[pieces.count() - 1];
    ASSERT_EQ(offset + size, bytes);
  }
}

}  // namespace
}  // namespace tutti::internal
