#include "apps/tutti/formats/record_json.hpp"

#include <gtest/gtest.h>

namespace tutti::internal {

struct CrateOutput {
  std::string name;
  std::optional<Duration> ready = {};
  std::optional<std::optional<int>> shelf = {};
  std::vector<Bytes> sizes_bytes = {};
  double drift = 0;
};
template <>
struct Record<CrateOutput> {
  static constexpr std::array<std::string_view, 2> words{"red", "blue"};
  static constexpr std::tuple fields{Field{"name", &CrateOutput::name}.one_of(words).means("colour"),
                                     Field{"ready_us", &CrateOutput::ready}.means("when it is ready; null: never"),
                                     Field{"shelf", &CrateOutput::shelf}.if_any().since("0.2.0").means(
                                         "its shelf; null: on the floor; of stored ones"),
                                     Field{"sizes_bytes", &CrateOutput::sizes_bytes}.means("sizes"),
                                     Field{"drift", &CrateOutput::drift}.may_be_negative().means("drift")};
};

namespace {

TEST(RecordJson, WritesTheFieldsInTheOrderOfTheirTable) {
  CrateOutput crate{"red", Duration{2500}};
  crate.sizes_bytes = {Bytes{3}, Bytes{4}};
  EXPECT_EQ(json_of(crate).dump(), R"({"name":"red","ready_us":2.5,"sizes_bytes":[3,4],"drift":0.0})");
}

// A value that does not apply is left out with its key; one that is not there is null.
TEST(RecordJson, TellsWhatIsLeftOutFromNull) {
  CrateOutput crate{"blue"};
  EXPECT_FALSE(json_of(crate).contains("shelf"));
  EXPECT_TRUE(json_of(crate)["ready_us"].is_null());
  crate.shelf.emplace();
  EXPECT_TRUE(json_of(crate)["shelf"].is_null());
  *crate.shelf = 3;
  EXPECT_EQ(json_of(crate)["shelf"], 3);
}

TEST(RecordJson, SchemaSaysAllThatATableSays) {
  EXPECT_EQ(
      schema_of_output<CrateOutput>("crate").dump(),
      R"({"$schema":"http://json-schema.org/draft-07/schema#",)"
      R"("title":"what crate prints with --json","type":"object",)"
      R"("properties":{)"
      R"("name":{"description":"colour","type":"string","enum":["red","blue"]},)"
      R"("ready_us":{"description":"when it is ready; null: never; us","type":["number","null"],"minimum":0},)"
      R"("shelf":{"description":"its shelf; null: on the floor; of stored ones; since 0.2.0","type":["integer","null"],"minimum":0},)"
      R"("sizes_bytes":{"description":"sizes; bytes","type":"array","items":{"type":"integer","minimum":0}},)"
      R"("drift":{"description":"drift","type":"number"}},)"
      R"("additionalProperties":false,"required":["name","ready_us","sizes_bytes","drift"]})");
}

// The unit of a value is the end of its key, so one without would be in no unit.
TEST(RecordJson, KeysNameTheirUnits) {
  EXPECT_EQ(unit_of_key("start_ms"), "ms");
  EXPECT_EQ(unit_of_key("bytes"), "bytes");
  EXPECT_EQ(unit_of_key("atoms"), "");
  EXPECT_TRUE(names_unit<std::optional<Duration>>("start_ns"));
  EXPECT_FALSE(names_unit<Duration>("start"));
  EXPECT_FALSE(names_unit<std::vector<GBps>>("rate_ms"));
}

}  // namespace
}  // namespace tutti::internal
