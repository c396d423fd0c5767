#include "sched/cut.hpp"

#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/random.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti {
namespace {

BatchOperation batch_on(const Topology& machine) {
  return test::make_batch(machine, R"(  - {name: large, from: mem0, to: gpu0, size: 1000 B, kernel: {time: 20 ns}}
  - {name: small, from: mem0, to: gpu1, size: 7 B}
  - {name: alone, kernel: {on: gpu1, time: 30 ns}}
)");
}

std::vector<std::int64_t> sizes(const BatchOperation& batch) {
  std::vector<std::int64_t> sizes;
  for (const CommandStream& stream : batch.streams())
    sizes.push_back(stream.transfer ? stream.transfer->size.count : -1);
  return sizes;
}

// 1000 / 300 rounds up to 4 pieces: 250 each of the large one; 7 bytes begin at 0, 1, 3, 5.
TEST(Cut, SharesBytesEvenlyAndLeavesKernelsToTheLastPiece) {
  const Topology machine = test::star(8, {8, 8});
  const auto pieces = cut(batch_on(machine), Bytes{300});
  ASSERT_EQ(pieces.size(), 4U);
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(sizes(pieces[0]), (Sizes{250, 1}));
  EXPECT_EQ(sizes(pieces[1]), (Sizes{250, 2}));
  EXPECT_EQ(sizes(pieces[2]), (Sizes{250, 2}));
  EXPECT_EQ(sizes(pieces[3]), (Sizes{250, 2, -1}));
  for (std::size_t piece = 0; piece < 3; ++piece)
    for (const CommandStream& stream : pieces[piece].streams()) EXPECT_FALSE(stream.kernel.has_value());
  EXPECT_TRUE(pieces[3].streams()[0].kernel.has_value());
  EXPECT_TRUE(pieces[3].streams()[2].kernel.has_value());
}

TEST(Cut, LeavesSmallBatchesWhole) {
  const BatchOperation batch = batch_on(test::star(8, {8, 8}));
  EXPECT_EQ(cut(batch, Bytes{1000}), (std::vector{batch}));
  EXPECT_EQ(cut(batch, Bytes{0}), (std::vector{batch}));
}

TEST(Cut, MakesNoMorePiecesThanItMayMake) {
  const Topology machine = test::star(8, {8});
  EXPECT_EQ(cut(test::make_batch(machine, "  - {from: mem0, to: gpu0, size: 1 GB}\n"), Bytes{1}).size(), kMostPieces);
}

// Seeded: pieces follow each other without a gap, up to the last byte, and none is larger than asked for.
TEST(Cut, LosesNoByte) {
  test::Random random(3);
  const Topology machine = test::star(8, {8});
  for (int round = 0; round < 200; ++round) {
    const std::int64_t size = random.between(1, 100'000), most = random.between(200, 5000);
    const auto pieces =
        cut(test::make_batch(machine, fmt::format("  - {{from: mem0, to: gpu0, size: {} B}}\n", size)), Bytes{most});
    std::int64_t sum = 0;
    for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
      EXPECT_EQ(piece_start(Bytes{size}, piece, pieces.size()), Bytes{sum});
      const Bytes moved = pieces[piece].streams()[0].transfer->size;
      EXPECT_LE(moved, Bytes{most});
      sum += moved.count;
    }
    EXPECT_EQ(sum, size);
  }
}

}  // namespace
}  // namespace tutti
