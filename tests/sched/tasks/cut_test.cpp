#include "sched/tasks/cut.hpp"

#include <array>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/random.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

Batch batch_on(const Topology& machine) {
  return test::make_batch(machine, R"(  - {name: large, from: mem0, to: gpu0, size: 1000 B, kernel: {time: 20 ns}}
  - {name: small, from: mem0, to: gpu1, size: 7 B}
  - {name: alone, kernel: {on: gpu1, time: 30 ns}}
)");
}

std::vector<std::int64_t> sizes(const Batch& batch) {
  std::vector<std::int64_t> sizes;
  for (const CommandStream& stream : batch.streams())
    sizes.push_back(stream.transfer ? stream.transfer->size.count : -1);
  return sizes;
}

// 1000 / 300 rounds up to 4 chunks: 250 each of the large one; 7 bytes begin at 0, 1, 3, 5.
TEST(Cut, SharesBytesEvenlyAndLeavesKernelsToTheLastPiece) {
  const Topology machine = test::star(8, {8, 8});
  const Chunks chunks = cut(batch_on(machine), Bytes{300});
  ASSERT_EQ(chunks.size(), 4U);
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(sizes(chunks[0]), (Sizes{250, 1}));
  EXPECT_EQ(sizes(chunks[1]), (Sizes{250, 2}));
  EXPECT_EQ(sizes(chunks[2]), (Sizes{250, 2}));
  EXPECT_EQ(sizes(chunks[3]), (Sizes{250, 2, -1}));
  for (std::size_t chunk = 0; chunk < 3; ++chunk)
    for (const CommandStream& stream : chunks[chunk].streams()) EXPECT_FALSE(stream.kernel.has_value());
  EXPECT_TRUE(chunks[3].streams()[0].kernel.has_value());
  EXPECT_TRUE(chunks[3].streams()[2].kernel.has_value());
}

// 8 chunks of 1 MB are one batch, as often as they run; the last has its kernel and is another. Of 8,000,003 bytes the
// eighths end at 1,000,000.375 k: the third, sixth and last are a byte longer.
TEST(Cut, EqualChunksAreOneBatch) {
  const auto batch_of = [](std::int64_t size) {
    return test::make_batch(test::star(8, {8}),
                            fmt::format("  - {{from: mem0, to: gpu0, size: {} B, kernel: {{time: 20 ns}}}}\n", size));
  };
  const Chunks even = cut(batch_of(8'000'000), Bytes{1'000'000});
  EXPECT_EQ(even.order, (std::vector<std::size_t>{0, 0, 0, 0, 0, 0, 0, 1}));
  const Chunks uneven = cut(batch_of(8'000'003), Bytes{1'000'001});
  EXPECT_EQ(uneven.order, (std::vector<std::size_t>{0, 0, 1, 0, 0, 1, 0, 2}));
  EXPECT_EQ(uneven.batches.size(), 3U);
}

TEST(Cut, PiecesBelongToTheApplicationOfTheBatch) {
  const Batch batch = batch_on(test::star(8, {8, 8}));
  const Batch whole = batch.within(ApplicationLoad(std::array{&batch}));
  const Chunks chunks = cut(whole, Bytes{300});
  for (const Batch& chunk : chunks.batches) EXPECT_EQ(chunk.application(), whole.application());
}

TEST(Cut, LeavesSmallBatchesWhole) {
  const Batch batch = batch_on(test::star(8, {8, 8}));
  EXPECT_EQ(cut(batch, Bytes{1000}).batches, (std::vector{batch}));
  EXPECT_EQ(cut(batch, Bytes{0}).batches, (std::vector{batch}));
}

TEST(Cut, MakesNoMorePiecesThanItMayMake) {
  const Topology machine = test::star(8, {8});
  EXPECT_EQ(cut(test::make_batch(machine, "  - {from: mem0, to: gpu0, size: 1 GB}\n"), Bytes{1}).size(), kMostChunks);
}

// Seeded: chunks follow each other without a gap, up to the last byte, and none is larger than asked for.
TEST(Cut, LosesNoByte) {
  test::Random random(3);
  const Topology machine = test::star(8, {8});
  for (int round = 0; round < 200; ++round) {
    const std::int64_t size = random.between(1, 100'000), most = random.between(200, 5000);
    const Batch whole = test::make_batch(machine, fmt::format("  - {{from: mem0, to: gpu0, size: {} B}}\n", size));
    const Chunks chunks = cut(whole, Bytes{most});
    std::int64_t sum = 0;
    for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      EXPECT_EQ(chunk_start(*whole.streams()[0].transfer, chunk, chunks.size()), Bytes{sum});
      const Bytes moved = chunks[chunk].streams()[0].transfer->size;
      EXPECT_LE(moved, Bytes{most});
      sum += moved.count;
    }
    EXPECT_EQ(sum, size);
  }
}

// Rows that lie apart stay together: all are in the first chunk, beside a third of the other copy.
TEST(Cut, LeavesRowsWhole) {
  const Batch whole = test::make_batch(test::star(8, {8, 8}),
                                       "  - {from: mem0, to: gpu0, size: 3000 B, rows: 10, pitch: 1 kB}\n"
                                       "  - {from: mem0, to: gpu1, size: 3000 B}\n");
  const Chunks chunks = cut(whole, Bytes{1000});
  ASSERT_EQ(chunks.size(), 3U);
  EXPECT_EQ(chunks[0].streams()[0].transfer->size, Bytes{3000});
  EXPECT_EQ(chunks[0].streams()[0].transfer->extent(), Bytes{9300});  // nine pitches and a row
  EXPECT_EQ(chunks[0].streams()[1].transfer->size, Bytes{1000});
  EXPECT_EQ(chunks[1].streams()[0].transfer->size, Bytes{0});
  EXPECT_EQ(chunks[2].streams()[0].transfer->extent(), Bytes{0});
}

}  // namespace
}  // namespace tutti::internal
