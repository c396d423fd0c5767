#include "apps/lab/reports/transfers_report.hpp"

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

SampleSummary times_of(double average, double p999, double worst) {
  return {1000, average, average, average, p999, worst};
}

/// Two methods up at two sizes, idle and under load; under load one cell is missing.
TransfersRecord record_of_two() {
  TransfersRecord record;
  record.machine = "m";
  record.backend = "sim";
  record.clock = "real";
  record.ends = {"gpu0", "mem0", "heap0"};
  record.lines = {{&measured_methods()[0], CopyDirection::Up}, {&measured_methods()[1], CopyDirection::Up}};
  record.sizes = {Bytes{4}, Bytes{8}};
  record.conditions = {{{LoadKind::None, Scheduling::Fifo, ""},
                        {{times_of(1, 10, 20), times_of(2, 20, 20)}, {times_of(4, 40, 50), times_of(3, 30, 60)}}},
                       {{LoadKind::Cpu, Scheduling::Ordinary, "2 threads"},
                        {{times_of(5, 30, 30), times_of(5, 50, 80)}, {SampleSummary{}, times_of(5, 45, 60)}}}};
  record.pairs = {{0, 1, Bytes{4}, times_of(6, 7, 8)}};
  return record;
}

// 30 / 10 and 30 / 20; 50 / 20 and 80 / 20; 45 / 30 and 60 / 60; the engine's 8 B were not timed under load.
TEST(LoadFactors, AreOfCellsThatWereTimedIdleToo) {
  const auto factors = load_factors(record_of_two());
  ASSERT_EQ(factors.size(), 3U);
  EXPECT_EQ(factors[0].line, 0U);
  EXPECT_DOUBLE_EQ(factors[0].p999, 3);
  EXPECT_DOUBLE_EQ(factors[0].worst, 1.5);
  EXPECT_DOUBLE_EQ(factors[1].p999, 2.5);
  EXPECT_DOUBLE_EQ(factors[1].worst, 4);
  EXPECT_DOUBLE_EQ(factors[2].p999, 1.5);
  EXPECT_DOUBLE_EQ(factors[2].worst, 1);
}

TEST(TransfersText, NamesTheBestMethodBySizeAndTheLargestFactor) {
  const std::string text = transfers_text(record_of_two());
  EXPECT_NE(text.find("best average up: engine from 4 B, pageable from 8 B\n"), std::string::npos) << text;
  EXPECT_NE(text.find("best worst up: engine from 4 B\n"), std::string::npos) << text;
  EXPECT_NE(text.find("cpu, SCHED_OTHER: 99.9 % is at most 3.00 times idle (engine up, 4 B)\n"), std::string::npos);
  EXPECT_NE(text.find("cpu, SCHED_OTHER (load by 2 threads)\n"), std::string::npos);
  EXPECT_NE(text.find("[FUJ13]"), std::string::npos);
}

TEST(TransfersJson, HasACellForEachTimedCopy) {
  const Json json = transfers_json(record_of_two());
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["copies"].size(), 7U);
  EXPECT_EQ(json["copies"][0]["p999_us"], 10);
  EXPECT_EQ(json["copies"][0]["load"], "none");
  EXPECT_EQ(json["conditions"][1]["load_by"], "2 threads");
  EXPECT_EQ(json["factors"].size(), 3U);
  EXPECT_EQ(json["pairs"][0]["second"]["method"], "pageable");
  EXPECT_TRUE(json["date"].is_null());
}

// A line breaks where a size was left out: the engine's under load is one point.
TEST(TransfersSvg, DrawsEveryConditionAndBreaksLines) {
  const std::string svg = transfers_svg(record_of_two());
  for (const char* words : {"up: idle, SCHED_FIFO", "down: cpu, SCHED_OTHER", ">engine<", ">pageable<"})
    EXPECT_NE(svg.find(words), std::string::npos) << words;
  EXPECT_EQ(svg, transfers_svg(record_of_two()));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(TransfersSvg, HasRoomForOneSizeAlone) {
  TransfersRecord record = record_of_two();
  record.sizes.resize(1);
  for (CopyTimesUnder& under : record.conditions) under.cells.resize(1);
  const std::string svg = transfers_svg(record);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

}  // namespace
}  // namespace tutti::internal
