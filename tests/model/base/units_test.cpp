#include "model/base/units.hpp"

#include <array>
#include <limits>

#include <gtest/gtest.h>

#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

std::int64_t bytes(std::string_view text) {
  const auto size = parse_bytes(text);
  return size ? size->count : -1;
}

std::int64_t ns(std::string_view text, Rounding rounding = Rounding::Up) {
  const auto time = parse_duration(text, rounding);
  return time ? time->count() : -1;
}

double rate(std::string_view text) {
  const auto rate = parse_rate(text);
  return rate ? rate->value : -1;
}

template <class T>
std::string error_of(const Expected<T>& result) {
  return result ? "fine" : result.error().text();
}

TEST(Units, EverySizeUnitHasItsFactor) {
  EXPECT_EQ(bytes("17 B"), 17);
  EXPECT_EQ(bytes("3 kB"), 3'000);
  EXPECT_EQ(bytes("3 MB"), 3'000'000);
  EXPECT_EQ(bytes("3 GB"), 3'000'000'000);
  EXPECT_EQ(bytes("3 KiB"), 3 * 1024);
  EXPECT_EQ(bytes("64 MiB"), 67'108'864);
  EXPECT_EQ(bytes("2 GiB"), 2'147'483'648);
}

TEST(Units, EveryTimeUnitHasItsFactor) {
  EXPECT_EQ(ns("17 ns"), 17);
  EXPECT_EQ(ns("3.6 us"), 3'600);
  EXPECT_EQ(ns("25 ms"), 25'000'000);
  EXPECT_EQ(ns("2 s"), 2'000'000'000);
}

// 1 GiB/s = 2^30 byte/s = 1.073741824 byte/ns
TEST(Units, EveryRateUnitHasItsFactor) {
  EXPECT_EQ(rate("12.3 GB/s"), 12.3);
  EXPECT_EQ(rate("900 MB/s"), 0.9);
  EXPECT_EQ(rate("1 GiB/s"), 1.073741824);
}

// 0.1 + 0.2 is the classic: 0.3 MB is 300,000 bytes and not one more.
TEST(Units, DecimalsAreExact) {
  EXPECT_EQ(bytes("0.3 MB"), 300'000);
  EXPECT_EQ(bytes("1.1 GB"), 1'100'000'000);
  EXPECT_EQ(bytes(".5 GB"), 500'000'000);
  EXPECT_EQ(ns("4.35 us"), 4'350);
  EXPECT_EQ(ns("1.000000001 s"), 1'000'000'001);
}

// 1.5 B needs 2 bytes; 0.0000000001 GiB is 0.107 bytes, which needs 1.
TEST(Units, SizesGoUp) {
  EXPECT_EQ(bytes("1.5 B"), 2);
  EXPECT_EQ(bytes("0.0000000001 GiB"), 1);
  EXPECT_EQ(bytes("0.9999 kB"), 1'000);
}

TEST(Units, TimesGoTheWayThatIsAskedFor) {
  EXPECT_EQ(ns("1.0001 us", Rounding::Up), 1'001);
  EXPECT_EQ(ns("1.0009 us", Rounding::Down), 1'000);
  EXPECT_EQ(ns("1.001 us", Rounding::Up), 1'001);
  EXPECT_EQ(ns("1.001 us", Rounding::Down), 1'001);
}

TEST(Units, ZeroNeedsNoUnit) {
  EXPECT_EQ(bytes("0"), 0);
  EXPECT_EQ(bytes("0.000"), 0);
  EXPECT_EQ(bytes("0 GB"), 0);
  EXPECT_EQ(ns("0"), 0);
}

TEST(Units, BlanksBeforeTheUnitDoNotMatter) {
  EXPECT_EQ(bytes("64MiB"), 67'108'864);
  EXPECT_EQ(bytes("64   MiB"), 67'108'864);
}

// 28 digits stay exact: 0.0000000000000000000000000001 is 1e-28.
TEST(Units, TakesTwentyEightDigits) {
  EXPECT_EQ(bytes("1.000000000000000000000000000 B"), 1);
  EXPECT_EQ(bytes("1.000000000000000000000000001 B"), 2);
  EXPECT_EQ(bytes("0.0000000000000000000000000001 GiB"), 1);
  EXPECT_EQ(bytes("0000000000000000000000000000000000000001 B"), 1);
  EXPECT_EQ(error_of(parse_bytes("1.0000000000000000000000000001 B")),
            "'1.0000000000000000000000000001 B' has more than 28 digits; write fewer");
  EXPECT_EQ(error_of(parse_bytes("0.00000000000000000000000000001 B")),
            "'0.00000000000000000000000000001 B' has more than 28 decimals; write fewer");
}

TEST(Units, SaysWhatIsWrongWithASize) {
  struct Case {
    std::string_view text, error;
  };
  constexpr std::array cases{
      Case{"", "'' is not a number; write it like 64 MiB"},
      Case{"MB", "'MB' is not a number; write it like 64 MiB"},
      Case{".", "'.' is not a number; write it like 64 MiB"},
      Case{"-1 MB", "'-1 MB' is negative; only zero and above is possible here"},
      Case{"+1 MB", "'+1 MB' is not a number; write it like 64 MiB"},
      Case{"64", "'64' has no unit; write it like 64 MiB (units: B kB MB GB KiB MiB GiB)"},
      Case{"64 mb",
           "'64 mb' has the unknown unit 'mb'; did you mean '64 MB'? the units here are B kB MB GB KiB MiB GiB"},
      Case{"64 TB",
           "'64 TB' has the unknown unit 'TB'; did you mean '64000 GB'? the units here are B kB MB GB KiB MiB GiB"},
      Case{"64 ms", "'64 ms' is a time; write a size like 64 MiB"},
      Case{"1e3 B", "'1e3 B' has an exponent; write it out, like 64 MiB"},
      Case{"1.2.3 B", "'1.2.3 B' has the unknown unit '.3 B'; the units here are B kB MB GB KiB MiB GiB"},
      Case{"1,5 MB", "'1,5 MB' has a comma; write decimals with a point, like 1.5"},
      Case{"0x10 B", "'0x10 B' has the unknown unit 'x10 B'; the units here are B kB MB GB KiB MiB GiB"},
      Case{"nan B", "'nan B' is not a number; write it like 64 MiB"},
  };
  for (const Case& c : cases) EXPECT_EQ(error_of(parse_bytes(c.text)), c.error);
}

// 2^53 = 9007199254740992 bytes is the most that a double holds with all smaller ones.
TEST(Units, RefusesAbsurdSizes) {
  EXPECT_EQ(bytes("9007199254740992 B"), 9'007'199'254'740'992);
  EXPECT_EQ(error_of(parse_bytes("9007199254740993 B")),
            "'9007199254740993 B' is absurdly large; a size is at most 2^53 bytes (9 PB)");
  EXPECT_EQ(bytes("9999999999999999999999999999 GiB"), -1);
}

// 2^63 - 1 ns = 9223372036.854775807 s
TEST(Units, RefusesAbsurdTimes) {
  EXPECT_EQ(ns("9223372036.854775807 s"), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(error_of(parse_duration("9223372036.854775808 s")),
            "'9223372036.854775808 s' is absurdly long; a time is below 2^63 ns (292 years)");
  EXPECT_EQ(error_of(parse_duration("25")), "'25' has no unit; write it like 25 ms (units: ns us ms s)");
}

TEST(Units, RefusesZeroAndAbsurdRates) {
  EXPECT_EQ(error_of(parse_rate("0 GB/s")), "'0 GB/s' is zero; a rate must be above 0");
  EXPECT_EQ(error_of(parse_rate("0")), "'0' is zero; a rate must be above 0");
  EXPECT_EQ(error_of(parse_rate("0.0001 MB/s")),
            "'0.0001 MB/s' is absurd; a rate lies between 0.001 MB/s and 1000000 GB/s");
  EXPECT_EQ(error_of(parse_rate("1000001 GB/s")),
            "'1000001 GB/s' is absurd; a rate lies between 0.001 MB/s and 1000000 GB/s");
  EXPECT_EQ(error_of(parse_rate("8")), "'8' has no unit; write it like 12.3 GB/s (units: MB/s GB/s GiB/s)");
  EXPECT_EQ(error_of(parse_rate("8 Gb/s")),
            "'8 Gb/s' has the unknown unit 'Gb/s'; did you mean '1 GB/s'? the units here are MB/s GB/s GiB/s");
  EXPECT_EQ(error_of(parse_rate("-8 GB/s")), "'-8 GB/s' is negative; only zero and above is possible here");
}

// 8 bits are a byte: 100 Gbit/s are 12.5 GB/s. 40 Hz are 25 ms; 30 Hz are no whole number of ns. 1 MiB is 1.048576 MB.
TEST(Units, ConvertsUnitsOfNeighbours) {
  struct Case {
    std::string_view text, start;
  };
  for (const Case& c : {Case{"64 KB", "did you mean '64 kB'?"}, Case{"8 Mbit", "did you mean '1000 kB'?"},
                        Case{"3 M", "did you mean '3 MB'?"},
                        Case{"1.5\xc2\xa0MB", "has a no-break space in it; write an ordinary blank"},
                        Case{"40%", "'40%' is a share; write what it is of, like '40% of image'"},
                        Case{"50 of img", "'50 of img' is a share without '%'; write it like '40% of img'"}})
    EXPECT_NE(error_of(parse_bytes(c.text)).find(c.start), std::string::npos) << error_of(parse_bytes(c.text));
  for (const Case& c : {Case{"5 MS", "did you mean '5 ms'?"}, Case{"5 sec", "did you mean '5 s'?"},
                        Case{"5 \xc2\xb5s", "did you mean '5 us'?"}, Case{"5 \xce\xbcs", "did you mean '5 us'?"},
                        Case{"5 min", "did you mean '300 s'?"}, Case{"40 Hz", "did you mean '25 ms'?"},
                        Case{"30 Hz", "'30 Hz' is a frequency; write the time of one period"}})
    EXPECT_NE(error_of(parse_duration(c.text)).find(c.start), std::string::npos) << error_of(parse_duration(c.text));
  for (const Case& c : {Case{"100 Gbit/s", "did you mean '12.5 GB/s'?"}, Case{"25 Gbps", "did you mean '3.125 GB/s'?"},
                        Case{"500 MBps", "did you mean '500 MB/s'?"}, Case{"12 gb/s", "did you mean '12 GB/s'?"},
                        Case{"900 kB/s", "did you mean '0.9 MB/s'?"}, Case{"1 MiB/s", "did you mean '1.048576 MB/s'?"},
                        Case{"8 GT/s", "16 lanes move at most 16 GB/s, less what their protocol takes"}})
    EXPECT_NE(error_of(parse_rate(c.text)).find(c.start), std::string::npos) << error_of(parse_rate(c.text));
}

// 12.5 % of 8 B = 1 B; a third of a per cent of 1000 B = 3.33.. B, which needs 4.
TEST(Units, PercentagesAreExactAndGoUp) {
  EXPECT_EQ(parse_percentage("12.5", Bytes{8}), Bytes{1});
  EXPECT_EQ(parse_percentage("40", Bytes{160'000'000}), Bytes{64'000'000});
  EXPECT_EQ(parse_percentage("0.333333", Bytes{1000}), Bytes{4});
  EXPECT_EQ(parse_percentage("0.333333", Bytes{1000}, Rounding::Down), Bytes{3});
  EXPECT_EQ(parse_percentage("40", Bytes{160'000'000}, Rounding::Down), Bytes{64'000'000});
  EXPECT_EQ(parse_percentage("0", Bytes{1000}), Bytes{0});
  EXPECT_EQ(parse_percentage("200", Bytes{1000}), Bytes{2000});
  EXPECT_EQ(parse_percentage("100", Bytes{1LL << 53}), Bytes{1LL << 53});
}

TEST(Units, SaysWhatIsWrongWithAPercentage) {
  EXPECT_EQ(error_of(parse_percentage("forty", Bytes{8})), "'forty' is not a number; write it like 12.5");
  EXPECT_EQ(error_of(parse_percentage("-1", Bytes{8})), "'-1' is negative; only zero and above is possible here");
  EXPECT_EQ(error_of(parse_percentage("40 ", Bytes{8})), "a blank stands before the '%'; write it like '40%'");
  EXPECT_EQ(error_of(parse_percentage("40x", Bytes{8})), "'40x' is not a percentage; write it like 12.5");
  EXPECT_EQ(error_of(parse_percentage("1000001", Bytes{8})),
            "'1000001%' of 8 B is absurdly large; a size is at most 2^53 bytes (9 PB)");
  EXPECT_EQ(error_of(parse_percentage("101", Bytes{1LL << 53})),
            "'101%' of 8388608 GiB is absurdly large; a size is at most 2^53 bytes (9 PB)");
  EXPECT_EQ(error_of(parse_percentage("1.000000000000000000000000001", Bytes{1LL << 53})),
            "'1.000000000000000000000000001' has too many digits; write fewer");
}

TEST(Units, PrintsTheShortestExactForm) {
  EXPECT_EQ(to_string(Bytes{67'108'864}), "64 MiB");
  EXPECT_EQ(to_string(Bytes{160'000'000}), "160 MB");
  EXPECT_EQ(to_string(Bytes{17}), "17 B");
  EXPECT_EQ(to_string(Bytes{0}), "0 B");
  EXPECT_EQ(to_string(Bytes{1'500'000}), "1.5 MB");
  EXPECT_EQ(to_string(Bytes{1536 * 1024}), "1536 KiB");
  EXPECT_EQ(to_string(Duration{25'000'000}), "25 ms");
  EXPECT_EQ(to_string(Duration{3'600}), "3.6 us");
  EXPECT_EQ(to_string(Duration{-3'600}), "-3600 ns");
  EXPECT_EQ(to_string(GBps{12.3}), "12.3 GB/s");
  EXPECT_EQ(to_string(GBps{6.00000001}), "6.00000001 GB/s");
  EXPECT_EQ(to_string(GBps{1e-6}), "0.000001 GB/s");
}

TEST(Units, WhatIsPrintedReadsBackTheSame) {
  test::Random random(1);
  for (int i = 0; i < 20'000; ++i) {
    const auto shift = static_cast<int>(random.below(64));
    std::int64_t count = static_cast<std::int64_t>(random.next() >> 1) >> shift;
    if (random.one_in(2)) count = count >> 20 << 10;  // whole KiB
    if (random.one_in(3)) count = count / 1000 * 1000;
    EXPECT_EQ(ns(to_string(Duration{count})), count);
    count %= (1LL << 53) + 1;
    EXPECT_EQ(bytes(to_string(Bytes{count})), count) << to_string(Bytes{count});
  }
}

TEST(Units, RatesReadBackTheSame) {
  test::Random random(2);
  for (int i = 0; i < 5'000; ++i) {
    const double value = random.real(0.001, 1000);
    EXPECT_EQ(rate(to_string(GBps{value})), value);
  }
}

// Noise of a simulation (1e-6 ns and less) costs no nanosecond; anything more does.
TEST(Units, RoundingForgivesNoiseOnly) {
  EXPECT_EQ(round_up_ns(5.0), Duration{5});
  EXPECT_EQ(round_up_ns(5.0 + 1e-9), Duration{5});
  EXPECT_EQ(round_up_ns(5.001), Duration{6});
  EXPECT_EQ(round_down_ns(5.0 - 1e-9), Duration{5});
  EXPECT_EQ(round_down_ns(4.999), Duration{4});
  EXPECT_EQ(round_up_ns(-1e-9), Duration{0});
}

// Where a double no longer holds every fraction, the tolerance stays below half a nanosecond.
TEST(Units, RoundingNeverLosesWholeNanoseconds) {
  for (const double ns : {1e9, 1e12, 1e14, 1e15, 0x1p53}) {
    EXPECT_EQ(round_up_ns(ns).count(), static_cast<std::int64_t>(ns));
    EXPECT_EQ(round_down_ns(ns).count(), static_cast<std::int64_t>(ns));
  }
  EXPECT_EQ(round_up_ns(1e30), Duration::max());
}

}  // namespace
}  // namespace tutti::internal
