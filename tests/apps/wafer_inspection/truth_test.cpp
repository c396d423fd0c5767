#include "apps/wafer_inspection/truth.hpp"

#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "apps/output_file.hpp"
#include "tests/apps/temporary_folder.hpp"

namespace wafer {
namespace {

Truth example() {
  Truth truth{.image = "wafer.png", .grid = default_die_grid(256, 256).value(), .seed = 18446744073709551615U};
  truth.noise = 4;
  truth.defects = {{DefectKind::Scratch, {12, 34, 5, 6}, 7}, {DefectKind::ExtraMaterial, {250, 250, 6, 6}, 36}};
  return truth;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

void expect_refused(const std::string& json, const std::string& because) {
  const auto truth = truth_from_json(json, "truth.json");
  ASSERT_FALSE(truth) << because;
  EXPECT_EQ(truth.error().code, tutti::ErrorCode::InvalidInput);
  EXPECT_EQ(truth.error().text().find("truth.json: "), 0U);
  EXPECT_NE(truth.error().text().find(because), std::string::npos) << truth.error().text();
}

TEST(Truth, IsWrittenWithUnitsInItsKeys) {
  Truth truth = example();
  truth.seed = 3;
  truth.defects.resize(1);
  EXPECT_EQ(to_json(truth), R"({
  "schema_version": 1,
  "image": "wafer.png",
  "width_px": 256,
  "height_px": 256,
  "left_px": 8,
  "top_px": 8,
  "die_width_px": 12,
  "die_height_px": 8,
  "die_columns": 20,
  "die_rows": 30,
  "seed": 3,
  "noise_levels": 4,
  "defects": [
    {
      "kind": "scratch",
      "x_px": 12,
      "y_px": 34,
      "width_px": 5,
      "height_px": 6,
      "area_px": 7
    }
  ]
}
)");
}

TEST(Truth, ReadsBackWhatItWrote) {
  const TemporaryFolder folder;
  const auto path = folder.file("wafer.json");
  ASSERT_TRUE(tutti::programs::write_file(path, to_json(example())));
  const auto read = read_truth(path);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(*read, example());
}

TEST(Truth, NamesEveryKind) {
  EXPECT_EQ(to_string(DefectKind::Particle), "particle");
  EXPECT_EQ(to_string(DefectKind::MissingMaterial), "missing_material");
  EXPECT_EQ(to_string(DefectKind::ExtraMaterial), "extra_material");
}

TEST(Truth, RefusesWhatIsNoTruth) {
  const std::string good = to_json(example());
  expect_refused("", "no JSON object");
  expect_refused("[]", "no JSON object");
  expect_refused(good.substr(0, good.size() / 2), "no JSON object");
  expect_refused(std::string(1'000'000, '['), "nested deeper than 64 levels");
  expect_refused("{}", "schema_version");
  expect_refused(replaced(good, "\"schema_version\": 1", "\"schema_version\": 2"), "schema_version is not 1");
  expect_refused(replaced(good, "\"seed\"", "\"sead\""), "seed is missing");
  expect_refused(replaced(good, "\"die_rows\": 30", "\"die_rows\": \"30\""), "die_rows is missing");
  // 8 px of frame and 32 dies of 8 px are 264 px, in an image of 256.
  expect_refused(replaced(good, "\"die_rows\": 30", "\"die_rows\": 32"), "dies do not stand inside the image");
  expect_refused(replaced(good, "\"x_px\": 12", "\"x_px\": -12"), "x_px is missing or no whole number");
  expect_refused(replaced(good, "\"x_px\": 12", "\"x_px\": 252"), "defect 0 is empty or not inside");
  expect_refused(replaced(good, "\"x_px\": 12", "\"x_px\": 12000000000"), "x_px is 12000000000");
  expect_refused(replaced(good, "scratch", "dent"), "kind is \"dent\"");
  expect_refused(replaced(good, "\"defects\": [", "\"defects\": 5, \"rest\": ["), "defects is missing or no list");
  expect_refused(replaced(good, "\"defects\": [", "\"defects\": [17, "), "kind is missing");
}

TEST(Truth, RefusesFilesThatAreMissingOrTooLarge) {
  const TemporaryFolder folder;
  const auto path = folder.file("truth.json");
  EXPECT_FALSE(read_truth(path));
  std::ofstream{path} << std::string((4U << 20) + 1, ' ');
  const auto refused = read_truth(path);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("too large"), std::string::npos);
  EXPECT_FALSE(tutti::programs::write_file(folder.file("no/such/folder.json"), to_json(example())));
}

}  // namespace
}  // namespace wafer
