// The image half of the inspection as a whole: draw, split, compare each part on its own, find, match.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "apps/wafer_inspection/defects.hpp"
#include "apps/wafer_inspection/die_compare.hpp"
#include "apps/wafer_inspection/die_grid.hpp"
#include "apps/wafer_inspection/generator.hpp"

namespace wafer {
namespace {

/// The report of a wafer whose parts never saw each other's dies.
GrayImage report_of(const Wafer& wafer, std::span<const int> percent) {
  const DieGrid& grid = wafer.truth.grid;
  std::vector<tutti::Bytes> declared;
  for (const int share : percent) declared.push_back({std::int64_t{grid.width} * grid.height * share / 100});
  const auto parts = split_image(grid, declared).value();

  GrayImage report{grid.width, grid.height};
  for (const Part& part : parts) {
    const auto offset = static_cast<std::size_t>(part.offset);
    const auto bytes = static_cast<std::size_t>(part.bytes);
    const std::vector<std::uint8_t> sent(wafer.image.bytes().begin() + part.offset,
                                         wafer.image.bytes().begin() + part.offset + part.bytes);
    die_compare(sent, report.bytes().subspan(offset, bytes), {grid.width, grid.die_height, default_threshold});
  }
  return report;
}

/// Every planted defect is found with its exact box and area, and nothing else is.
void expect_exact(const WaferSpec& spec, std::span<const int> percent) {
  SCOPED_TRACE(testing::Message() << spec.width << " px, seed " << spec.seed << ", noise " << spec.noise);
  const Wafer wafer = make_wafer(spec, "wafer.png").value();
  const GrayImage report = report_of(wafer, percent);
  const auto found = find_defects(report);
  const Score result = score(boxes_of(wafer.truth), found);
  EXPECT_EQ(result.hit.size(), wafer.truth.defects.size());
  EXPECT_TRUE(result.missed.empty());
  EXPECT_TRUE(result.false_alarms.empty());
  for (const PlantedDefect& defect : wafer.truth.defects)
    EXPECT_TRUE(std::ranges::any_of(
        found, [&](const FoundDefect& find) { return find.box == defect.box && find.area == defect.area; }));
}

constexpr std::array kShares{40, 10, 10, 40};

TEST(Inspection, FindsAllAndOnlyWhatWasPlanted) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) expect_exact({.width = 256, .height = 256, .seed = seed}, kShares);
  for (std::uint64_t seed = 0; seed < 40; ++seed) expect_exact({.width = 512, .height = 512, .seed = seed}, kShares);
  for (std::uint64_t seed = 0; seed < 10; ++seed) expect_exact({.width = 1024, .height = 1024, .seed = seed}, kShares);
  for (std::uint64_t seed = 0; seed < 3; ++seed) expect_exact({.width = 2048, .height = 2048, .seed = seed}, kShares);
}

TEST(Inspection, FindsAllUnderTheStrongestNoiseAndInACrowd) {
  for (std::uint64_t seed = 0; seed < 30; ++seed)
    expect_exact({.width = 256, .height = 256, .seed = seed, .noise = max_noise, .defects = 60}, kShares);
}

TEST(Inspection, DoesNotDependOnTheSplit) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const WaferSpec spec{.width = 321, .height = 259, .seed = seed};
    expect_exact(spec, std::array{100});
    expect_exact(spec, std::array{50, 50});
    expect_exact(spec, std::array{25, 25, 25, 25, 25});
    expect_exact(spec, std::array<int, 10>{10, 10, 10, 10, 10, 10, 10, 10, 10, 10});
  }
}

TEST(Inspection, IsSilentOnCleanWafers) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Wafer wafer =
        make_wafer({.width = 256, .height = 256, .seed = seed, .noise = max_noise, .defects = 0}, "clean.png").value();
    EXPECT_EQ(report_of(wafer, kShares), GrayImage(256, 256));
  }
}

}  // namespace
}  // namespace wafer
