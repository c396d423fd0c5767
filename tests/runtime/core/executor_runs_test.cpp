// Runs of batches, on the simulated machine and the virtual clock.
#include <vector>

#include <gtest/gtest.h>

#include "runtime/core/executor.hpp"
#include "tests/runtime/small_machine.hpp"

namespace tutti::internal {
namespace {

using test::bound;
using test::copy_stream;
using test::kernel_stream;
using test::Station;

/// A copy of n bytes, hence of n ns, between buffers of its own.
struct Copy {
  Copy(Station& station, std::int64_t n)
      : source(station.allocate(station.at("mem0"), static_cast<std::size_t>(n))),
        destination(station.allocate(station.at("gpu0"), static_cast<std::size_t>(n))),
        streams{copy_stream("s", station.at("mem0"), station.at("gpu0"), n)},
        bindings{bound(source.view(), destination.view())},
        batch(station.prepare(streams, bindings)) {}

  Buffer source, destination;
  std::vector<CommandStream> streams;
  std::vector<StreamBinding> bindings;
  PreparedBatch batch;
};

// 500 bytes at 1 byte/ns; one after the other.
TEST(ExecutorRun, ReturnsWhenAllIsFinished) {
  Station station;
  Copy copy(station, 500);
  for (const std::int64_t start : {0, 500, 1000}) {
    const auto result = station.executor.run(copy.batch);
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(result->start, Duration{start});
    EXPECT_EQ(result->finish, Duration{start + 500});
    EXPECT_EQ(station.clock->now(), Duration{start + 500});
  }
}

// The first takes 500 ns, the second 300: 0 to 500, 500 to 800.
TEST(ExecutorIssue, QueuesUpInTheOrderOfIssue) {
  Station station;
  Copy first(station, 500), second(station, 300);
  ASSERT_TRUE(station.executor.issue(first.batch).has_value());
  ASSERT_TRUE(station.executor.issue(second.batch).has_value());
  EXPECT_EQ(station.clock->now(), Duration{0}) << "it returns at once";
  const auto later = station.executor.synchronize(second.batch);
  const auto earlier = station.executor.synchronize(first.batch);
  ASSERT_TRUE(earlier && later);
  EXPECT_EQ(earlier->start, Duration{0});
  EXPECT_EQ(earlier->finish, Duration{500});
  EXPECT_EQ(later->start, Duration{500});
  EXPECT_EQ(later->finish, Duration{800});
  EXPECT_EQ(station.clock->now(), Duration{800});
}

TEST(ExecutorIssue, RefusesABatchThatIsUnderWay) {
  Station station;
  Copy copy(station, 500);
  ASSERT_TRUE(station.executor.issue(copy.batch).has_value());
  ASSERT_FALSE(station.executor.query(copy.batch));
  for (const auto& again : {station.executor.issue(copy.batch), station.executor.run(copy.batch).map([](auto&&) {})}) {
    ASSERT_FALSE(again.has_value());
    EXPECT_EQ(again.error().code, ErrorCode::InvalidInput);
    EXPECT_NE(again.error().message.find("still under way"), std::string::npos);
  }
  EXPECT_TRUE(station.executor.synchronize(copy.batch).has_value());
  EXPECT_TRUE(station.executor.issue(copy.batch).has_value());
}

TEST(ExecutorQuery, LetsTimePassUntilTheBatchIsFinished) {
  Station station;
  Copy copy(station, 500);
  ASSERT_TRUE(station.executor.issue(copy.batch).has_value());
  EXPECT_FALSE(station.executor.query(copy.batch));
  int polls = 1;
  while (!station.executor.query(copy.batch)) ASSERT_LT(++polls, 100);
  EXPECT_EQ(station.clock->now(), Duration{500});
}

// What a query called finished is not under way any more.
TEST(ExecutorQuery, FreesABatchForItsNextRun) {
  Station station;
  Copy copy(station, 500);
  for (int run = 1; run <= 3; ++run) {
    ASSERT_TRUE(station.executor.issue(copy.batch).has_value()) << run;
    while (!station.executor.query(copy.batch)) {
    }
    EXPECT_EQ(station.clock->now(), Duration{500 * run});
  }
  EXPECT_TRUE(station.executor.synchronize(copy.batch).has_value());
}

// The copy runs from 0 to 500 while the program does something else until 10 ms; the next one starts then.
TEST(ExecutorSynchronize, ReportsWhenTheBatchEndedHoweverLateItIsAsked) {
  Station station;
  Copy copy(station, 500);
  ASSERT_TRUE(station.executor.issue(copy.batch).has_value());
  station.clock->wait_until(Duration{10'000'000});
  const auto result = station.executor.synchronize(copy.batch);
  ASSERT_TRUE(result.has_value()) << result.error().text();
  EXPECT_EQ(result->finish, Duration{500});
  EXPECT_EQ(copy.batch.measured(), copy.batch.plan().timeline);
  EXPECT_EQ(station.clock->now(), Duration{10'000'000});
  EXPECT_EQ(station.executor.run(copy.batch)->start, Duration{10'000'000});
}

TEST(ExecutorSynchronize, ReportsTheSameAgain) {
  Station station;
  Copy copy(station, 500);
  ASSERT_TRUE(station.executor.run(copy.batch).has_value());
  const auto again = station.executor.synchronize(copy.batch);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->finish, Duration{500});
}

// Copies of 500 and 200 bytes on links of their own, the second with a kernel of 700 ns behind it: max(500, 200 + 700)
// = 900. Worst-case times are for admission; the prediction is the usual one.
TEST(ExecutorRun, TakesWhatWasPredicted) {
  Station station;
  auto second = copy_stream("b", station.at("mem0"), station.at("gpu1"), 200);
  second.kernel = Kernel{station.at("gpu1"), Duration{700}, Duration{5000}, "spin"};
  const std::vector<CommandStream> streams{copy_stream("a", station.at("mem0"), station.at("gpu0"), 500), second};
  const Buffer source = station.allocate(station.at("mem0"), 700);
  const Buffer one = station.allocate(station.at("gpu0"), 500), other = station.allocate(station.at("gpu1"), 200);
  auto batch = station.prepare(
      streams, {bound(source.view(), one.view()), bound(test::part_of(source.view(), 500, 200), other.view())});
  EXPECT_EQ(batch.plan().timeline.latency, Duration{900});
  const auto result = station.executor.run(batch);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->finish - result->start, Duration{900});
}

}  // namespace
}  // namespace tutti::internal
