#include "runtime/dispatch/blocking_log.hpp"

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

constexpr TaskId kA{0U}, kB{1U};

TEST(BlockingLog, NamesTheTaskThatTookTheMost) {
  BlockingLog log(2);
  log.add(kA, Duration{0});
  log.add(kB, Duration{-5});
  EXPECT_EQ(log.worst(), std::nullopt);
  log.add(kB, Duration{2});
  log.add(kA, Duration{3});
  EXPECT_EQ(log.worst(), kA);
  log.add(kB, Duration{2});
  EXPECT_EQ(log.worst(), kB);
  EXPECT_EQ(log.total(), Duration{7});
  log.clear();
  EXPECT_EQ(log.worst(), std::nullopt);
  EXPECT_EQ(log.total(), Duration{0});
  log.add(kA, Duration{1});
  EXPECT_EQ(log.total(), Duration{1});
}

}  // namespace
}  // namespace tutti::internal
