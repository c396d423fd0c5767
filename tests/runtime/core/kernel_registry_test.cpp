#include "runtime/core/kernel_registry.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

std::uint64_t checksum_of(std::string_view text) {
  const KernelRegistry registry = KernelRegistry::with_builtins();
  std::uint64_t sum = 0;
  registry.find("checksum")->host({std::as_bytes(std::span(text)), std::as_writable_bytes(std::span(&sum, 1)), {}, {}});
  return sum;
}

TEST(KernelRegistry, StartsWithTheBuiltins) {
  const KernelRegistry registry = KernelRegistry::with_builtins();
  EXPECT_NE(registry.find("checksum"), nullptr);
  EXPECT_NE(registry.find("spin"), nullptr);
  EXPECT_EQ(registry.find("Spin"), nullptr);
  EXPECT_EQ(registry.find(""), nullptr);
  EXPECT_EQ(KernelRegistry().find("spin"), nullptr);
}

TEST(KernelRegistry, TakesEachNameOnce) {
  KernelRegistry registry = KernelRegistry::with_builtins();
  int calls = 0;
  ASSERT_TRUE(registry.add("count", [&](const KernelLaunch&) { ++calls; }).has_value());
  registry.find("count")->host({});
  EXPECT_EQ(calls, 1);
  for (const char* name : {"count", "spin"}) {
    const auto again = registry.add(name, [](const KernelLaunch&) {});
    ASSERT_FALSE(again.has_value());
    EXPECT_EQ(again.error().code, ErrorCode::InvalidInput);
    EXPECT_NE(again.error().message.find(name), std::string::npos);
  }
  registry.find("count")->host({});
  EXPECT_EQ(calls, 2) << "the first one stayed";
}

// The well-known examples of Fletcher-64 with little-endian words, the last one padded with zeros:
//   "abcde"    0xc8c6c527646362c6
//   "abcdef"   0xc8c72b276463c8c6
//   "abcdefgh" 0x312e2b28cccac8c6
// The last by hand: 0x64636261 + 0x68676665 = 0xcccac8c6; 0x64636261 + 0xcccac8c6 = 0x1312e2b27, less 2^32 - 1 is
// 0x312e2b28.
TEST(Checksum, IsFletchersSum) {
  EXPECT_EQ(checksum_of("abcde"), 0xc8c6c527646362c6U);
  EXPECT_EQ(checksum_of("abcdef"), 0xc8c72b276463c8c6U);
  EXPECT_EQ(checksum_of("abcdefgh"), 0x312e2b28cccac8c6U);
  EXPECT_EQ(checksum_of(""), 0U);
}

TEST(Checksum, WritesOnlyWhereThereIsRoom) {
  const KernelRegistry registry = KernelRegistry::with_builtins();
  const HostKernel& checksum = registry.find("checksum")->host;
  const std::vector<std::byte> input(16, std::byte{7});
  checksum({input, {}, {}, {}});
  std::vector<std::byte> output(12, std::byte{0xee});
  checksum({input, std::span(output).first(7), {}, {}});
  EXPECT_EQ(output, std::vector<std::byte>(12, std::byte{0xee}));
  checksum({input, output, {}, {}});
  EXPECT_NE(output[0], std::byte{0xee});
  EXPECT_TRUE(std::all_of(output.begin() + 8, output.end(), [](std::byte b) { return b == std::byte{0xee}; }));
}

}  // namespace
}  // namespace tutti::internal
