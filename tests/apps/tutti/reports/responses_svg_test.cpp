#include "apps/tutti/reports/responses_svg.hpp"

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "apps/tutti/formats/svg.hpp"
#include "tests/apps/tutti/reports/svg_elements.hpp"

namespace tutti::internal {
namespace {

constexpr Duration kBound{10'000'000};

JobEntry job_of(Duration response) {
  JobEntry job;
  job.start = Duration{0};
  job.finish = response;
  job.deadline = Duration{20'000'000};
  if (response > job.deadline) job.verdict = JobVerdict::Missed;
  if (response > kBound) job.broken = BrokenBound{BoundCause::Transfer, response - kBound};
  return job;
}

std::string picture_of(const std::vector<Duration>& responses, bool keeps_jobs, std::optional<Duration> bound = kBound,
                       Duration deadline = Duration{20'000'000}) {
  JobSummary summary;
  for (const Duration response : responses) summary.add(job_of(response));
  const MeasuredTask task{"inspect", deadline, bound};
  const std::vector<Duration> exact = keeps_jobs ? responses : std::vector<Duration>{};
  return responses_svg({&task, 1}, {&summary, 1}, {&exact, 1});
}

/// The bars: rectangles with a tooltip.
std::vector<SvgElement> bars_of(const std::string& picture) {
  std::vector<SvgElement> bars = elements_of(picture, "rect");
  std::erase_if(bars, [](const SvgElement& bar) { return bar.text.find("response") == std::string::npos; });
  return bars;
}

/// The lines of bound and deadline, which stand upright on the axis.
std::vector<SvgElement> limits_of(const std::string& picture) {
  std::vector<SvgElement> lines = elements_of(picture, "line");
  std::erase_if(lines, [](const SvgElement& line) { return line.attribute("stroke-width").empty(); });
  return lines;
}

/// The place of the bound; the deadline's line is dashed.
double bound_of(const std::string& picture) {
  for (const SvgElement& line : limits_of(picture))
    if (line.attribute("stroke-dasharray").empty()) return line.number("x1");
  return -1;
}

// Three responses are 4 ms, two are the bound of 10 ms, one is 15 ms. The histogram has 10 ms in a bucket that ends at
// 10.09 ms.
TEST(ResponsesSvg, AResponseOfTheBoundStandsOnItsLine) {
  for (const bool keeps_jobs : {true, false}) {
    const std::string picture = picture_of(
        {Duration{4'000'000}, Duration{4'000'000}, Duration{4'000'000}, kBound, kBound, Duration{15'000'000}},
        keeps_jobs);
    const auto bars = bars_of(picture);
    ASSERT_EQ(bars.size(), 3) << picture;
    EXPECT_EQ(bars[1].attribute("fill"), bars[0].attribute("fill"));
    EXPECT_NE(bars[2].attribute("fill"), bars[0].attribute("fill"));
    const double bound = bound_of(picture);
    EXPECT_LT(bars[0].right(), bound);
    EXPECT_LT(bars[1].number("x"), bound);
    EXPECT_GT(bars[1].right(), bound);
    EXPECT_NEAR((bars[1].number("x") + bars[1].right()) / 2, bound, 0.5);
  }
}

// A response 1 ns over the bound stands on the line, too, and is red: the colour is exact, the place is not.
TEST(ResponsesSvg, ResponsesOverTheBoundAreRed) {
  const std::string picture = picture_of({kBound, kBound + Duration{1}, Duration{15'000'000}}, true);
  const auto bars = bars_of(picture);
  ASSERT_EQ(bars.size(), 3);
  EXPECT_EQ(bars[0].number("x"), bars[1].number("x"));
  EXPECT_NE(bars[0].attribute("fill"), bars[1].attribute("fill"));
  EXPECT_EQ(bars[1].attribute("fill"), bars[2].attribute("fill"));
  EXPECT_NE(picture.find("2 over bound"), std::string::npos);
}

// A bound of 10 ms on an axis up to 1.3 s lies in the first of 120 bins; responses a hundred times as long are drawn,
// too.
TEST(ResponsesSvg, ResponsesFarBeyondTheBoundAreDrawn) {
  EXPECT_EQ(bars_of(picture_of({Duration{1'000'000}, Duration{1'000'000'000}}, true)).size(), 2);
  EXPECT_EQ(bars_of(picture_of({Duration{1'000'000}, Duration{90'000'000}}, true)).size(), 2);
}

// Without a bound, as in a replay, 25 ms are late beyond a deadline of 20 ms.
TEST(ResponsesSvg, WithoutABoundLateResponsesAreRed) {
  const std::string picture = picture_of({Duration{4'000'000}, Duration{25'000'000}}, true, {});
  const auto bars = bars_of(picture);
  ASSERT_EQ(bars.size(), 2);
  EXPECT_NE(bars[0].attribute("fill"), bars[1].attribute("fill"));
  EXPECT_NE(picture.find("than the deadline where there is none"), std::string::npos);
  EXPECT_NE(picture.find("inspect: 2 responses, worst 25.000 ms, deadline 20.000 ms, which 1 did not meet;"),
            std::string::npos);
}

// Names of lines that stand side by side, in the left half of the picture, in its middle and in its right half.
TEST(ResponsesSvg, NoNameLiesOnALine) {
  for (const auto& [bound, deadline, longest] :
       {std::tuple(10, 11, 30), {10, 11, 21}, {10, 11, 10}, {20, 21, 10}, {11, 10, 10}, {1, 2, 100}}) {
    const std::string picture =
        picture_of({Duration{longest * 1'000'000}}, true, Duration{bound * 1'000'000}, Duration{deadline * 1'000'000});
    const auto lines = limits_of(picture);
    ASSERT_EQ(lines.size(), 2);
    for (const SvgElement& name : elements_of(picture, "text")) {
      if (name.text != "bound" && name.text != "deadline") continue;
      const double width = text_width(name.text, 11), x = name.number("x");
      const double left = name.attribute("text-anchor") == "end" ? x - width : x;
      EXPECT_GE(left, 0);
      EXPECT_LE(left + width, 860);
      for (const SvgElement& line : lines)
        EXPECT_FALSE(line.number("x1") > left && line.number("x1") < left + width &&
                     line.number("y1") < name.number("y"))
            << bound << ' ' << deadline << ' ' << longest << ": " << name.text;
    }
  }
}

TEST(ResponsesSvg, TheAxisHasTicksWithUnits) {
  const std::string picture = picture_of({Duration{4'000'000}}, true);
  for (const char* tick : {">0 ms<", ">5 ms<", ">10 ms<", ">20 ms<"})
    EXPECT_NE(picture.find(tick), std::string::npos) << tick;
}

TEST(ResponsesSvg, ATaskWithoutResponsesHasNoBars) { EXPECT_TRUE(bars_of(picture_of({}, true)).empty()); }

}  // namespace
}  // namespace tutti::internal
