#include "apps/tutti/formats/svg.hpp"

#include <set>

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

TEST(Svg, EscapesTextAndLeavesControlCharactersOut) {
  EXPECT_EQ(xml("a<b> & 'c' \"d\"\n"), "a&lt;b&gt; &amp; &#39;c&#39; &quot;d&quot;");
}

// 0 to 44.8 in about 10 steps is 4.48 a step: the next of 1, 2, 5, 10 is 5. -3 to 3 in 6 steps is exactly 1.
TEST(Svg, TicksAreRoundNumbers) {
  EXPECT_EQ(ticks(0, 44.8, 10), (std::vector<double>{0, 5, 10, 15, 20, 25, 30, 35, 40}));
  EXPECT_EQ(ticks(-3, 3, 6), (std::vector<double>{-3, -2, -1, 0, 1, 2, 3}));
}

// A unit is taken from twice its size on: 2 ms is 2 of "ms", 1.999 ms is 1999 of "us".
TEST(Svg, UnitsKeepNumbersShort) {
  EXPECT_EQ(time_unit(2e6).name, "ms");
  EXPECT_EQ(time_unit(1.999e6).name, "us");
  EXPECT_EQ(byte_unit(3e9).name, "GB");
  EXPECT_EQ(byte_unit(0).name, "B");
}

// A letter is 0.6 of the font's size wide: 10 letters of size 10 need 60, and 36 hold 6: five and the ellipsis, of
// which two stand on either side.
TEST(Svg, LongTextsLoseTheirMiddle) {
  EXPECT_EQ(shortened("abcdefghij", 10, 60), "abcdefghij");
  EXPECT_EQ(shortened("abcdefghij", 10, 36), "ab\u2026ij");
}

TEST(Svg, SevenSeriesDiffer) {
  std::set<std::string_view> fills;
  for (std::size_t series = 0; series < 7; ++series) fills.insert(series_colour(series).fill);
  EXPECT_EQ(fills.size(), 7U);
  EXPECT_EQ(series_colour(7).fill, series_colour(0).fill);
}

TEST(Svg, AFileHasItsSizeAndWhatWasDrawn) {
  Svg svg;
  svg.rect(1, 2, 3, 4, "class='lane'", "1 < 2");
  svg.text(5, 6, "a & b");
  const std::string file = svg.file(960, 100);
  EXPECT_EQ(file.find("<svg xmlns='http://www.w3.org/2000/svg' width='960' height='100'"), 0U);
  EXPECT_NE(
      file.find("<rect x='1.00' y='2.00' width='3.00' height='4.00' class='lane'><title>1 &lt; 2</title></rect>\n"),
      std::string::npos);
  EXPECT_NE(file.find("<text x='5.00' y='6.00'>a &amp; b</text>\n</svg>\n"), std::string::npos);
}

}  // namespace
}  // namespace tutti::internal
