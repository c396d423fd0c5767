// The five functions, on the simulated machine and the virtual clock.
#include "runtime/core/tutti.hpp"

#include <vector>

#include <gtest/gtest.h>

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
TEST(BatchOp, ReturnsWhenAllIsFinished) {
  Station station;
  Copy copy(station, 500);
  for (const std::int64_t start : {0, 500, 1000}) {
    const auto result = batchOp(station.executor, copy.batch);
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(result->start, Duration{start});
    EXPECT_EQ(result->finish, Duration{start + 500});
    EXPECT_EQ(station.clock->now(), Duration{start + 500});
  }
}

TEST(BatchOp, PreparesABatchThatIsNeededOnce) {
  Station station;
  Copy copy(station, 500);
  station.write(copy.source.view(), test::pattern(500, 1));
  const auto result = batchOp(station.executor, station.batch(copy.streams), copy.bindings);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->finish - result->start, Duration{500});
  EXPECT_EQ(station.read(copy.destination.view()), test::pattern(500, 1));
  const auto refused = batchOp(station.executor, station.batch(copy.streams), {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidInput);
}

// The first takes 500 ns, the second 300: 0 to 500, 500 to 800.
TEST(BatchOpAsync, QueuesUpInTheOrderOfIssue) {
  Station station;
  Copy first(station, 500), second(station, 300);
  ASSERT_TRUE(batchOpAsync(station.executor, first.batch).has_value());
  ASSERT_TRUE(batchOpAsync(station.executor, second.batch).has_value());
  EXPECT_EQ(station.clock->now(), Duration{0}) << "it returns at once";
  const auto later = batchOpSynchronize(station.executor, second.batch);
  const auto earlier = batchOpSynchronize(station.executor, first.batch);
  ASSERT_TRUE(earlier && later);
  EXPECT_EQ(earlier->start, Duration{0});
  EXPECT_EQ(earlier->finish, Duration{500});
  EXPECT_EQ(later->start, Duration{500});
  EXPECT_EQ(later->finish, Duration{800});
  EXPECT_EQ(station.clock->now(), Duration{800});
}

TEST(BatchOpAsync, RefusesABatchThatIsUnderWay) {
  Station station;
  Copy copy(station, 500);
  ASSERT_TRUE(batchOpAsync(station.executor, copy.batch).has_value());
  for (const auto& again :
       {batchOpAsync(station.executor, copy.batch), batchOp(station.executor, copy.batch).map([](auto&&) {})}) {
    ASSERT_FALSE(again.has_value());
    EXPECT_EQ(again.error().code, ErrorCode::InvalidInput);
    EXPECT_NE(again.error().message.find("still under way"), std::string::npos);
  }
  EXPECT_TRUE(batchOpSynchronize(station.executor, copy.batch).has_value());
  EXPECT_TRUE(batchOpAsync(station.executor, copy.batch).has_value());
}

TEST(BatchOpQuery, LetsTimePassUntilTheBatchIsFinished) {
  Station station;
  Copy copy(station, 500);
  ASSERT_TRUE(batchOpAsync(station.executor, copy.batch).has_value());
  EXPECT_FALSE(batchOpQuery(station.executor, copy.batch));
  int polls = 1;
  while (!batchOpQuery(station.executor, copy.batch)) ASSERT_LT(++polls, 100);
  EXPECT_EQ(station.clock->now(), Duration{500});
}

// What a query called finished is not under way any more.
TEST(BatchOpQuery, FreesABatchForItsNextRun) {
  Station station;
  Copy copy(station, 500);
  for (int run = 1; run <= 3; ++run) {
    ASSERT_TRUE(batchOpAsync(station.executor, copy.batch).has_value()) << run;
    while (!batchOpQuery(station.executor, copy.batch)) {
    }
    EXPECT_EQ(station.clock->now(), Duration{500 * run});
  }
  EXPECT_TRUE(batchOpSynchronize(station.executor, copy.batch).has_value());
}

// The copy runs from 0 to 500 while the program does something else until 10 ms; the next one starts then.
TEST(BatchOpSynchronize, TellsWhenTheBatchEndedHoweverLateItIsAsked) {
  Station station;
  Copy copy(station, 500);
  ASSERT_TRUE(batchOpAsync(station.executor, copy.batch).has_value());
  station.clock->wait_until(Duration{10'000'000});
  const auto result = batchOpSynchronize(station.executor, copy.batch);
  ASSERT_TRUE(result.has_value()) << result.error().text();
  EXPECT_EQ(result->finish, Duration{500});
  EXPECT_EQ(copy.batch.measured(), copy.batch.plan());
  EXPECT_EQ(station.clock->now(), Duration{10'000'000});
  EXPECT_EQ(batchOp(station.executor, copy.batch)->start, Duration{10'000'000});
}

TEST(BatchOpSynchronize, TellsTheSameAgain) {
  Station station;
  Copy copy(station, 500);
  ASSERT_TRUE(batchOp(station.executor, copy.batch).has_value());
  const auto again = batchOpSynchronize(station.executor, copy.batch);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->finish, Duration{500});
}

// Copies of 500 and 200 bytes on links of their own, the second with a kernel of 700 ns behind it: max(500, 200 + 700)
// = 900. Worst-case times are for admission; the prediction is the usual one.
TEST(PredictBatchLatency, IsWhatTheBatchThenTakes) {
  Station station;
  auto second = copy_stream("b", station.at("mem0"), station.at("gpu1"), 200);
  second.kernel = Kernel{station.at("gpu1"), Duration{700}, Duration{5000}, "spin"};
  const std::vector<CommandStream> streams{copy_stream("a", station.at("mem0"), station.at("gpu0"), 500), second};
  EXPECT_EQ(predictBatchLatency(station.executor, station.batch(streams)), Duration{900});

  const Buffer source = station.allocate(station.at("mem0"), 700);
  const Buffer one = station.allocate(station.at("gpu0"), 500), other = station.allocate(station.at("gpu1"), 200);
  const auto result =
      batchOp(station.executor, station.batch(streams),
              {bound(source.view(), one.view()), bound(test::part_of(source.view(), 500, 200), other.view())});
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->finish - result->start, Duration{900});
}

TEST(PredictBatchLatency, TakesNoTimeAndNoBuffers) {
  Station station;
  EXPECT_EQ(predictBatchLatency(station.executor,
                                station.batch({copy_stream("s", station.at("gpu0"), station.at("gpu2"), 3007)})),
            Duration{4007});  // staged: a lead of one chunk, then the bytes
  EXPECT_EQ(station.clock->now(), Duration{0});
}

}  // namespace
}  // namespace tutti::internal
