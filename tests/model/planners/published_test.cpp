#include <array>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "model/batch/batch_yaml.hpp"
#include "model/planners/planner.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

Timeline plan_file(std::string_view planner, std::string_view batch) {
  const auto file = load_batch(test::source_path("configs/batches/" + std::string(batch) + ".yaml"));
  EXPECT_TRUE(file) << file.error().text();
  return plan(*find_planner(planner), *file).timeline;
}

constexpr double kMicrosecond = 1e-3;  // in ms

// [VMS14] section 2.4. Back in time from the end: the small images' kernels last 3.2 ms, then their transfers split 8
// GB/s for 32 MB / 4 = 8 ms, until 11.2; the large ones' kernels last 12.8 ms, their transfers 128 MB / 4 = 32 ms
// more: 44.8.
TEST(Published, TheExampleTakes44Point8Ms) {
  EXPECT_NEAR(to_ms(plan_file("completion_aligned", "inspection-example").latency), 44.8, kMicrosecond);
}

// A quarter of 8 GB/s each: 128 MB / 2 = 64 ms, then 12.8 ms of kernel.
TEST(Published, TheExampleTakes76Point8MsWithBandwidthAllocation) {
  EXPECT_NEAR(to_ms(plan_file("bandwidth_allocation", "inspection-example").latency), 76.8, kMicrosecond);
}

// One after the other at 6 GB/s, the long kernels first: 320 MB / 6 = 53.3333 ms, then the last kernel's 3.2 ms.
TEST(Published, TheExampleTakes56Point533MsWithTimeDivision) {
  EXPECT_NEAR(to_ms(plan_file("time_division", "inspection-example").latency), 53.0 + 1.0 / 3 + 3.2, kMicrosecond);
}

struct Row {
  std::string_view batch;
  std::vector<double> streams_ms;
};

// [VMS14] Table 2: a stream's figure is its end minus its own start; the batch is as long as its longest stream.
TEST(Published, TheTwelveStreamsOfTable2) {
  const std::array rows{Row{"nehalem-h2d", {60.71, 38.46}}, Row{"nehalem-d2h", {91.69, 61.12}},
                        Row{"sandy-bridge-h2d", {43.74, 32.25, 18.40, 15.60}},
                        Row{"sandy-bridge-d2h", {34.11, 22.02, 8.59, 5.72}}};
  for (const Row& row : rows) {
    const Timeline timeline = plan_file("completion_aligned", row.batch);
    ASSERT_EQ(timeline.streams.size(), row.streams_ms.size()) << row.batch;
    for (std::size_t i = 0; i < row.streams_ms.size(); ++i) {
      const StreamTimeline& line = timeline.streams[i];
      EXPECT_NEAR(to_ms(line.end() - line.start()), row.streams_ms[i], 0.02) << row.batch << " stream " << i;
      EXPECT_NEAR(to_ms(line.end()), to_ms(timeline.latency), kMicrosecond) << row.batch << " stream " << i;
    }
    EXPECT_NEAR(to_ms(timeline.latency), row.streams_ms[0], 0.02) << row.batch;
  }
}

// The paper's order on its example: the batch method first, then time division, then bandwidth allocation.
TEST(Published, TheBatchMethodIsShortestOnTheExample) {
  const auto batch = plan_file("completion_aligned", "inspection-example").latency;
  const auto division = plan_file("time_division", "inspection-example").latency;
  const auto allocation = plan_file("bandwidth_allocation", "inspection-example").latency;
  EXPECT_LT(batch, division);
  EXPECT_LT(division, allocation);
}

}  // namespace
}  // namespace tutti::internal
