#include "apps/wafer_inspection/generator.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "apps/wafer_inspection/defects.hpp"
#include "apps/wafer_inspection/die_compare.hpp"

namespace wafer {
namespace {

Wafer made(const WaferSpec& spec) { return make_wafer(spec, "wafer.png").value(); }

/// FNV-1a, to write a whole picture down as one number.
std::uint64_t fingerprint(const GrayImage& image) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::uint8_t pixel : image.bytes()) hash = (hash ^ pixel) * 0x100000001b3;
  return hash;
}

TEST(MakeWafer, GivesTheSameBytesForTheSameSeed) {
  const WaferSpec spec{.width = 300, .height = 260, .seed = 8};
  EXPECT_EQ(made(spec), made(spec));
  EXPECT_NE(made(spec).image, made({.width = 300, .height = 260, .seed = 9}).image);
}

// Not derived by hand: written down once, so that no compiler and no machine draws another wafer.
TEST(MakeWafer, GivesTheSameBytesEverywhere) {
  EXPECT_EQ(fingerprint(made({.width = 256, .height = 256, .seed = 1}).image), 0x5f3f171f06d6c48c);
}

TEST(MakeWafer, SaysHowItWasMade) {
  const Wafer wafer = made({.width = 512, .height = 256, .seed = 5, .noise = 3, .defects = 7});
  EXPECT_EQ(wafer.image.width(), 512);
  EXPECT_EQ(wafer.image.height(), 256);
  EXPECT_EQ(wafer.truth.image, "wafer.png");
  EXPECT_EQ(wafer.truth.grid, default_die_grid(512, 256).value());
  EXPECT_EQ(wafer.truth.seed, 5U);
  EXPECT_EQ(wafer.truth.noise, 3);
  EXPECT_EQ(wafer.truth.defects.size(), 7U);
}

// Without noise and defects every die is the first die.
TEST(MakeWafer, RepeatsOneDie) {
  const Wafer wafer = made({.width = 250, .height = 270, .seed = 2, .noise = 0, .defects = 0});
  const DieGrid& grid = wafer.truth.grid;
  for (int y = 0; y < grid.rows * grid.die_height; ++y)
    for (int x = 0; x < grid.columns * grid.die_width; ++x)
      ASSERT_EQ(wafer.image.at(grid.left + x, grid.top + y),
                wafer.image.at(grid.left + x % grid.die_width, grid.top + y % grid.die_height));
}

TEST(MakeWafer, KeepsItsNoiseWithinTheAmplitude) {
  const Wafer still = made({.width = 256, .height = 256, .seed = 2, .noise = 0, .defects = 0});
  for (const int noise : {1, 4, 8}) {
    const Wafer noisy = made({.width = 256, .height = 256, .seed = 2, .noise = noise, .defects = 0});
    int lowest = 0;
    int highest = 0;
    for (std::size_t i = 0; i < still.image.bytes().size(); ++i) {
      const int deviation = noisy.image.bytes()[i] - still.image.bytes()[i];
      lowest = std::min(lowest, deviation);
      highest = std::max(highest, deviation);
    }
    EXPECT_GE(lowest, -noise);
    EXPECT_LE(highest, noise);
    EXPECT_LE(lowest, -noise / 2) << "noise, not silence";
    EXPECT_GE(highest, noise / 2);
  }
}

// The clean wafer of the same seed has the same circuit and noise, so what differs is what was planted.
TEST(MakeWafer, PlantsWhatItsTruthSays) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Wafer clean = made({.width = 256, .height = 256, .seed = seed, .defects = 0});
    const Wafer wafer = made({.width = 256, .height = 256, .seed = seed, .defects = 15});
    GrayImage changed{256, 256};
    for (std::size_t i = 0; i < changed.bytes().size(); ++i) {
      const int difference = std::abs(clean.image.bytes()[i] - wafer.image.bytes()[i]);
      EXPECT_TRUE(difference == 0 || difference >= 45);
      changed.bytes()[i] = difference != 0;
    }
    auto found = find_defects(changed, 0);
    ASSERT_EQ(found.size(), wafer.truth.defects.size());
    for (const PlantedDefect& defect : wafer.truth.defects)
      EXPECT_EQ(std::ranges::count(found, FoundDefect{defect.box, defect.area, 1}), 1);
  }
}

TEST(MakeWafer, KeepsDefectsApartAndDecidable) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Wafer wafer = made({.width = 256, .height = 256, .seed = seed, .defects = 60});
    const DieGrid& grid = wafer.truth.grid;
    const auto column = [&](const Box& box) { return (box.x - grid.left) / grid.die_width; };
    const auto row = [&](const Box& box) { return (box.y - grid.top) / grid.die_height; };
    const auto in_die = [&](const Box& box) {
      return Box{(box.x - grid.left) % grid.die_width, (box.y - grid.top) % grid.die_height, box.width, box.height};
    };
    const auto boxes = boxes_of(wafer.truth);
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      EXPECT_LE(in_die(boxes[i]).x + boxes[i].width, grid.die_width) << "inside one die";
      EXPECT_LE(in_die(boxes[i]).y + boxes[i].height, grid.die_height) << "inside one die";
      for (std::size_t k = 0; k < i; ++k) {
        EXPECT_EQ(shared_area(with_rim(boxes[i], 4), boxes[k]), 0);
        if (column(boxes[i]) == column(boxes[k]) && std::abs(row(boxes[i]) - row(boxes[k])) <= comparison_reach) {
          EXPECT_EQ(shared_area(in_die(boxes[i]), in_die(boxes[k])), 0);
        }
      }
    }
  }
}

TEST(MakeWafer, PlantsEveryKindAtEverySize) {
  for (const int side : {256, 512, 1024}) {
    std::set<DefectKind> kinds;
    for (std::uint64_t seed = 0; seed < 4; ++seed)
      for (const auto& defect : made({.width = side, .height = side, .seed = seed}).truth.defects)
        kinds.insert(defect.kind);
    EXPECT_EQ(kinds.size(), 4U) << side;
  }
}

TEST(MakeWafer, RefusesWhatItCannotDraw) {
  const auto refusal = [](const WaferSpec& spec) {
    const auto wafer = make_wafer(spec, "wafer.png");
    return wafer ? std::string{} : wafer.error().text();
  };
  EXPECT_NE(refusal({.width = 239}).find("each side is 240"), std::string::npos);
  EXPECT_NE(refusal({.noise = 9}).find("0 to 8"), std::string::npos);
  EXPECT_NE(refusal({.noise = -1}).find("0 to 8"), std::string::npos);
  EXPECT_NE(refusal({.defects = -1}).find("0 to 1000"), std::string::npos);
  EXPECT_NE(refusal({.defects = 1001}).find("0 to 1000"), std::string::npos);
  EXPECT_NE(refusal({.width = 240, .height = 240, .defects = 1000}).find("has room for"), std::string::npos);
}

}  // namespace
}  // namespace wafer
