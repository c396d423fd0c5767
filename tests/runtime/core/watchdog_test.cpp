#include "runtime/core/watchdog.hpp"

#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// 10 x 3 ms + 2 s; 2.5 x 3 ns + 1 ns = 8.5 ns.
TEST(Watchdog, LimitsARunByItsPlanAndATimeBeyond) {
  EXPECT_EQ(Watchdog{}.limit(milliseconds(3)), milliseconds(2030));
  EXPECT_EQ((Watchdog{2.5, Duration{1}}.limit(Duration{3})), Duration{9});
  EXPECT_EQ((Watchdog{1, Duration{0}}.limit(Duration{0})), Duration{0});
}

TEST(Watchdog, LimitsAreTheLongestTimeWhereTheyWouldBeLonger) {
  EXPECT_EQ(Watchdog{}.limit(Duration::max() / 10), Duration::max());
  EXPECT_EQ((Watchdog{1, Duration::max()}.limit(Duration{1})), Duration::max());
  EXPECT_EQ((Watchdog{1, Duration::max() - seconds(2)}.limit(seconds(1))), Duration::max() - seconds(1));
}

TEST(Watchdog, IsWrittenAsTheCommandLineTakesIt) {
  EXPECT_EQ(to_string(Watchdog{}), "10x+2s");
  EXPECT_EQ(to_string(Watchdog{1.5, milliseconds(100)}), "1.5x+100ms");
}

TEST(Watchdog, GivesUpNoRunThatGoesAsPlanned) {
  EXPECT_TRUE(check_watchdog({}).has_value());
  EXPECT_TRUE(check_watchdog({1, Duration{0}}).has_value());
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const Watchdog wrong :
       {Watchdog{0.99, seconds(1)}, Watchdog{kInfinity, seconds(1)},
        Watchdog{std::numeric_limits<double>::quiet_NaN(), seconds(1)}, Watchdog{2, Duration{-1}}}) {
    const auto refused = check_watchdog(wrong);
    ASSERT_FALSE(refused.has_value()) << to_string(wrong);
    EXPECT_EQ(refused.error().code, ErrorCode::InvalidInput);
    EXPECT_EQ(refused.error().message.find("a watchdog of " + to_string(wrong)), 0U) << refused.error().message;
  }
}

}  // namespace
}  // namespace tutti::internal
