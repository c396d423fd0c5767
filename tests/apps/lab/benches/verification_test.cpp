#include "apps/lab/benches/verification.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "model/base/document.hpp"
#include "model/batch/batch_yaml.hpp"
#include "model/sharing/compile_machine.hpp"
#include "runtime/sim/sim_backend.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

Topology h200x4() { return load_machine(test::source_path("configs/machines/h200x4.yaml")).value(); }

const Planner& at_once() { return *find_planner("all_at_once"); }

RandomBatchOptions options_of(int count, std::uint64_t seed) {
  RandomBatchOptions options;
  options.count = count;
  options.seed = seed;
  return options;
}

// What the regime promises: 1 to 100 transfers an engine of 4 KiB to 512 MiB, 2 GiB an engine, kernels of 5 us to 10
// ms, 20 ms in the mean; and every group has some.
TEST(RandomBatches, AreOfTheWholeRegime) {
  const Topology machine = h200x4();
  const auto batches = random_batches(machine, at_once(), options_of(60, 3));
  ASSERT_TRUE(batches.has_value()) << batches.error().text();
  ASSERT_EQ(batches->size(), 60U);
  std::set<std::string> groups;
  double predicted = 0;
  std::size_t most = 0;
  BatchSimulation workspace;
  for (const VerifiedBatch& batch : *batches) {
    groups.insert(batch.groups.begin(), batch.groups.end());
    predicted += predict(at_once(), batch.batch, Basis::Nominal, workspace);
    std::map<EngineId, std::pair<Bytes, std::size_t>> engines;
    for (std::size_t s = 0; s < batch.batch.streams().size(); ++s) {
      const CommandStream& stream = batch.batch.streams()[s];
      if (stream.kernel) {
        EXPECT_GE(stream.kernel->time, std::chrono::microseconds(5));
        EXPECT_LE(stream.kernel->time, std::chrono::milliseconds(10) + Duration{1});
      }
      if (!stream.transfer) continue;
      EXPECT_GE(stream.transfer->size, Bytes{4096});
      EXPECT_LE(stream.transfer->size, Bytes{512 << 20});
      auto& [bytes, count] = engines[batch.batch.work()[s].engines[0]];
      bytes += stream.transfer->size;
      most = std::max(most, ++count);
    }
    for (const auto& [engine, load] : engines) EXPECT_LE(load.first, Bytes{2LL << 30});
  }
  EXPECT_LE(predicted / 60, 20e6);
  EXPECT_GE(predicted / 60, 1e6);
  EXPECT_GE(most, 50U);
  EXPECT_EQ(groups, (std::set<std::string>{"both ways", "d2h", "h2d", "kernels", "large", "large transfers",
                                           "many transfers", "peers", "small", "staged"}));
}

TEST(RandomBatches, AreTheSameForTheSameSeed) {
  const Topology machine = h200x4();
  const auto a = random_batches(machine, at_once(), options_of(5, 7)),
             b = random_batches(machine, at_once(), options_of(5, 7)),
             c = random_batches(machine, at_once(), options_of(5, 8));
  ASSERT_TRUE(a && b && c);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(a->at(i).batch, b->at(i).batch);
  EXPECT_NE(a->at(0).batch, c->at(0).batch);
}

// A batch as a file is the same batch, whatever it has.
TEST(BatchYaml, ReadsBackAsTheSameBatch) {
  const Topology machine = h200x4();
  const auto batches = random_batches(machine, at_once(), options_of(20, 5));
  ASSERT_TRUE(batches.has_value());
  for (const VerifiedBatch& batch : *batches) {
    const auto document = parse_document(batch_yaml(batch.batch, "machine.yaml"), "b.yaml");
    ASSERT_TRUE(document.has_value()) << document.error().text();
    const auto again = batch_from(*document, machine);
    ASSERT_TRUE(again.has_value()) << again.error().text();
    EXPECT_EQ(again->merging(), batch.batch.merging());
    ASSERT_EQ(again->streams().size(), batch.batch.streams().size());
    for (std::size_t s = 0; s < again->streams().size(); ++s) {
      EXPECT_EQ(again->streams()[s].transfer, batch.batch.streams()[s].transfer);
      EXPECT_EQ(again->streams()[s].kernel, batch.batch.streams()[s].kernel);
    }
  }
}

/// One stream from its gate at 100 us, planned from there to 200 us.
Timeline line(std::int64_t start_us, std::int64_t end_us, std::int64_t latency_us) {
  const auto us = [](std::int64_t count) { return Duration{1000 * count}; };
  Timeline timeline;
  timeline.latency = us(latency_us);
  timeline.setup = us(10);
  timeline.streams.push_back({"a", TransferInterval{{}, us(start_us), us(end_us), {}}, {}, us(110)});
  return timeline;
}

// The gate at 110 us opens 10 us of set-up earlier on hardware, at 100: a start at 103 is 3 us late.
TEST(StartsAfterGates, AreCountedFromThePlannedInstantWithoutSetup) {
  EXPECT_EQ(starts_after_gates(line(110, 200, 200), line(103, 190, 195)), std::vector<double>{3000});
  EXPECT_TRUE(starts_after_gates(line(120, 200, 200), line(120, 200, 200)).empty()) << "waits for something else";
}

// At most 210 us, and 5 us for a gate. Over at 205 and seen at 250: the host saw it late. Started 45 us late, 40 more
// than allowed, and 30 us over: the gate. Started in time: unknown.
TEST(CauseOfALateRun, IsTheHostWhereThatExplainsAll) {
  const Timeline plan = line(110, 200, 200);
  const Duration latest{210'000}, gate{5'000};
  EXPECT_EQ(cause_of(plan, line(103, 205, 250), latest, gate), LateCause::Seen);
  EXPECT_EQ(cause_of(plan, line(145, 238, 240), latest, gate), LateCause::Gate);
  EXPECT_EQ(cause_of(plan, line(103, 238, 240), latest, gate), LateCause::Unknown);
  EXPECT_EQ(cause_of(plan, line(125, 238, 240), latest, gate), LateCause::Unknown) << "15 us of 30";
  EXPECT_EQ(cause_of(plan, line(103, 238, 240), latest, gate, Duration{30'000}), LateCause::Seen);
  EXPECT_EQ(cause_of(plan, line(103, 238, 240), latest, gate, Duration{29'000}), LateCause::Unknown);
  EXPECT_EQ(cause_of(plan, line(103, 238, 240), latest, gate, {}, Duration{30'000}), LateCause::Copier);
  EXPECT_EQ(cause_of(plan, line(103, 238, 240), latest, gate, Duration{1'000}, Duration{28'000}), LateCause::Unknown);
}

// The simulated machine does what is planned: nothing is late, in a row neither, and buffers that transfers share
// suffice.
TEST(VerifyBatches, FindNothingLateOnASimulatedMachine) {
  const Topology machine = load_machine(test::source_path("configs/machines/inspection-example.yaml")).value();
  RandomBatchOptions options = options_of(30, 1);
  options.largest = Bytes{64 << 10};
  const auto batches = random_batches(machine, planners().front(), options);
  ASSERT_TRUE(batches.has_value()) << batches.error().text();
  const KernelRegistry kernels = KernelRegistry::with_builtins();
  VirtualClock clock;
  SimBackend backend(machine, kernels, clock);
  Executor executor(machine, backend, clock);
  const auto runs = verify_batches(executor, planners().front(), *batches, 2, nullptr);
  ASSERT_TRUE(runs.has_value()) << runs.error().text();
  for (const Verification& batch : runs->batches) {
    EXPECT_EQ(batch.latencies.size(), 4U);
    EXPECT_EQ(batch.in_a_row.size(), 2U);
    EXPECT_EQ(batch.above_latest(), 0U);
    for (const Duration latency : batch.in_a_row) EXPECT_EQ(latency, batch.predicted.latency);
  }
  EXPECT_FALSE(runs->starts_us.empty());
}

}  // namespace
}  // namespace tutti::internal
