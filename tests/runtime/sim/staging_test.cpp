#include "runtime/sim/staging.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "tests/runtime/small_machine.hpp"

namespace tutti::internal {
namespace {

using Byteses = std::vector<std::byte>;

constexpr std::size_t kChunk = 64;

/// What arrives between two rims that nothing may write to.
Byteses moved(StagedCopy& staging, const Byteses& source) {
  constexpr std::size_t kRim = 16;
  Byteses destination(source.size() + 2 * kRim, std::byte{0xee});
  staging.move(source, std::span(destination).subspan(kRim, source.size()));
  for (std::size_t i = 0; i < kRim; ++i) {
    EXPECT_EQ(destination[i], std::byte{0xee});
    EXPECT_EQ(destination[destination.size() - 1 - i], std::byte{0xee});
  }
  return {destination.begin() + kRim, destination.end() - kRim};
}

TEST(StagedCopy, MovesEverySizeAroundItsChunk) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, kChunk - 1, kChunk, kChunk + 1, 2 * kChunk, 3 * kChunk + 7}) {
    StagedCopy staging(Bytes{kChunk});
    staging.reserve(Bytes{static_cast<std::int64_t>(size)});
    const Byteses source = test::pattern(size, size + 1);
    EXPECT_EQ(moved(staging, source), source) << size;
  }
}

TEST(StagedCopy, MovesSmallerOnesWithTheMemoryOfTheLargest) {
  StagedCopy staging(Bytes{kChunk});
  for (const std::int64_t size : {0, 200, 3}) staging.reserve(Bytes{size});
  for (const std::size_t size : {200U, 1U, 0U, 64U, 130U}) {
    const Byteses source = test::pattern(size, size);
    EXPECT_EQ(moved(staging, source), source) << size;
  }
}

TEST(StagedCopy, TakesChunksOfOneByteAndChunksLargerThanAllCopies) {
  for (const std::int64_t chunk : {std::int64_t{1}, std::int64_t{1} << 53}) {
    StagedCopy staging(Bytes{chunk});
    staging.reserve(Bytes{10});  // no more than this is taken, however large the chunk
    const Byteses source = test::pattern(10, 5);
    EXPECT_EQ(moved(staging, source), source) << chunk;
  }
}

TEST(StagedCopyDeath, TwoSizesAreABug) {
  StagedCopy staging(Bytes{kChunk});
  staging.reserve(Bytes{10});
  Byteses source(10), destination(9);
  EXPECT_DEATH(staging.move(source, destination), "one size");
}

}  // namespace
}  // namespace tutti::internal
