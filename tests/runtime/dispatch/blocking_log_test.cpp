#include "runtime/dispatch/blocking_log.hpp"

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

constexpr TaskId kLonger{0U}, kShorter{1U};

TEST(BlockingLog, NamesTheTaskThatTookTheMost) {
  BlockingLog log(2);
  log.add(kLonger, Duration{0});
  log.add(kShorter, Duration{-5});
  EXPECT_EQ(log.worst(), std::nullopt);
  log.add(kShorter, Duration{2});
  log.add(kLonger, Duration{3});
  EXPECT_EQ(log.worst(), kLonger);
  log.add(kShorter, Duration{2});
  EXPECT_EQ(log.worst(), kShorter);
  EXPECT_EQ(log.total(), Duration{7});
  log.clear();
  EXPECT_EQ(log.worst(), std::nullopt);
  EXPECT_EQ(log.total(), Duration{0});
  log.add(kLonger, Duration{1});
  EXPECT_EQ(log.total(), Duration{1});
}

}  // namespace
}  // namespace tutti::internal
