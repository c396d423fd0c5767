#include "runtime/pageable/copy_bytes.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

// Every size up to some blocks of the streaming loop, and every position in a cache line at both ends; the bytes around
// the destination stay as they were.
TEST(CopyBytes, CopyWhatTheyShallAndNothingElse) {
  test::Random random(3);
  std::vector<std::byte> from(2000);
  for (std::byte& byte : from) byte = static_cast<std::byte>(random.below(256));
  for (const CopyBytes how : kCopyBytes) {
    const CopyRoutine copy = routine_of(how);
    for (std::size_t size = 0; size < 1500; size += size < 300 ? 1 : 37) {
      const auto from_at = static_cast<std::size_t>(random.below(64)),
                 to_at = static_cast<std::size_t>(random.below(64));
      std::vector<std::byte> to(2000, std::byte{0xa5}), expected = to;
      std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(from_at), size,
                  expected.begin() + static_cast<std::ptrdiff_t>(to_at));
      copy(to.data() + to_at, from.data() + from_at, size);
      ASSERT_EQ(to, expected) << to_string(how) << ", " << size << " bytes";
    }
  }
}

TEST(CopyBytes, StayAsTheyAreWhenTheyArePushedOut) {
  std::vector<std::byte> bytes(5000, std::byte{0x5a});
  const std::vector<std::byte> expected = bytes;
  push_out(bytes.data() + 3, 4990);
  push_out(bytes.data(), 0);
  EXPECT_EQ(bytes, expected);
}

}  // namespace
}  // namespace tutti::internal
