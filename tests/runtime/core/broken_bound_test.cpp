// Why a measured run took longer than promised: timelines worked by hand, then random batches with one thing wrong.
#include "runtime/core/broken_bound.hpp"

#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "model/batch/safe_bound.hpp"
#include "model/planners/planner.hpp"
#include "tests/runtime/small_machine.hpp"
#include "tests/support/random_machine.hpp"

namespace tutti::internal {
namespace {

using test::copy_stream;

TEST(Excesses, NameTheCauseThatTookMost) {
  Excesses excesses;
  EXPECT_EQ(excesses.largest(), BoundCause::Unknown);
  excesses.add(BoundCause::Kernel, Duration{-5});
  EXPECT_EQ(excesses.largest(), BoundCause::Unknown);
  excesses.add(BoundCause::Transfer, Duration{3});
  excesses.add(BoundCause::Host, Duration{4});
  EXPECT_EQ(excesses.largest(), BoundCause::Host);
  excesses.add(BoundCause::Transfer, Duration{1});
  EXPECT_EQ(excesses.largest(), BoundCause::Transfer) << "of equal ones the first in the list";
  excesses.raise(BoundCause::Gate, Duration{4});
  EXPECT_EQ(excesses.largest(), BoundCause::Gate);
  EXPECT_EQ(excesses.of(BoundCause::Transfer), Duration{4});
}

TEST(BoundCause, HasTheNamesOfTheContract) {
  std::vector<std::string_view> names;
  for (std::size_t cause = 0; cause < kBoundCauses; ++cause) names.push_back(to_string(static_cast<BoundCause>(cause)));
  EXPECT_EQ(names, (std::vector<std::string_view>{"trigger", "release", "gate", "blocking", "transfer", "kernel",
                                                  "host", "dispatch", "foreign", "unknown"}));
}

/// On the small machine: a copies 1000 bytes to gpu0 and has a kernel of 100, b copies 400 to gpu1, c is host work of
/// 200; d copies 500 to gpu2, and e, merged behind it, 300 with a kernel of 200. All queues end at 1100.
class PromisedBatch : public testing::Test {
 protected:
  PromisedBatch() {
    CommandStream a = copy_stream("a", at("mem0"), at("gpu0"), 1000);
    a.kernel = Kernel{at("gpu0"), Duration{100}, Duration{100}, "spin"};
    const CommandStream c{"c", {}, Kernel{at("cpu0"), Duration{200}, Duration{200}, "spin"}, {}};
    CommandStream e = copy_stream("e", at("mem0"), at("gpu2"), 300);
    e.kernel = Kernel{at("gpu2"), Duration{200}, Duration{200}, "spin"};
    batch = Batch::make(machine, {a, copy_stream("b", at("mem0"), at("gpu1"), 400), c,
                                  copy_stream("d", at("mem0"), at("gpu2"), 500), e})
                .value();
    planned = plan(planners().front(), *batch, Basis::Guaranteed);
    planned->latest = latest_finish(*planned);
  }

  [[nodiscard]] VertexId at(std::string_view name) const { return machine.find_vertex(name).value(); }

  /// The cause of a run that was measured so.
  BoundCause cause(const std::function<void(Timeline&)>& change) {
    Timeline measured = planned->timeline;
    change(measured);
    for (const StreamTimeline& line : measured.streams) measured.latency = std::max(measured.latency, line.end());
    EXPECT_GT(measured.latency, planned->latest->batch) << "nothing was broken";
    return BatchPromise(*planned).cause_of(measured);
  }

  static void move(StreamTimeline& line, std::int64_t ns) {
    if (line.transfer) line.transfer->start += Duration{ns}, line.transfer->end += Duration{ns};
    if (line.kernel) line.kernel->start += Duration{ns}, line.kernel->end += Duration{ns};
  }
  static void lengthen_copy(StreamTimeline& line, std::int64_t ns) {
    line.transfer->end += Duration{ns};
    if (line.kernel) line.kernel->start += Duration{ns}, line.kernel->end += Duration{ns};
  }

  Topology machine = test::small_machine();
  std::optional<Batch> batch;
  std::optional<ExecutionPlan> planned;
};

// The queue of d and e: 500 + 300 bytes, then 200 of kernel: 1000, from 100. All end at 1100, and are promised to.
TEST_F(PromisedBatch, IsThePlanThatTheOthersChange) {
  ASSERT_EQ(planned->timeline.latency, Duration{1100});
  ASSERT_EQ(planned->latest->batch, Duration{1100});
  EXPECT_EQ(planned->timeline.streams[1].transfer->start, Duration{700});
  EXPECT_EQ(planned->timeline.streams[2].kernel->start, Duration{900});
  EXPECT_EQ(planned->timeline.streams[3].transfer->start, Duration{100});
  EXPECT_EQ(planned->timeline.streams[4].transfer->start, Duration{600});
}

TEST_F(PromisedBatch, IsBrokenByALateGate) {
  for (const std::size_t stream : {0U, 1U, 2U})
    EXPECT_EQ(cause([&](Timeline& run) { move(run.streams[stream], 50); }), BoundCause::Gate);
  EXPECT_EQ(cause([&](Timeline& run) { move(run.streams[3], 50), move(run.streams[4], 50); }), BoundCause::Gate)
      << "of the queue's first stream";
}

TEST_F(PromisedBatch, IsBrokenByASlowCopy) {
  EXPECT_EQ(cause([](Timeline& run) { lengthen_copy(run.streams[0], 50); }), BoundCause::Transfer);
  EXPECT_EQ(cause([](Timeline& run) { lengthen_copy(run.streams[1], 50); }), BoundCause::Transfer);
  EXPECT_EQ(cause([](Timeline& run) { lengthen_copy(run.streams[3], 50), move(run.streams[4], 50); }),
            BoundCause::Transfer);
}

// The second copy of an engine queue has no gate that it waits for: whatever comes between is the copy's.
TEST_F(PromisedBatch, IsBrokenByAPauseBetweenCopies) {
  EXPECT_EQ(cause([](Timeline& run) { move(run.streams[4], 50); }), BoundCause::Transfer);
}

// The first copy takes 60 more, the second makes 30 of that good, then the kernel takes 40 more: 70 late.
TEST_F(PromisedBatch, CountsWhatACopyMadeGood) {
  const auto change = [](Timeline& run) {
    run.streams[3].transfer->end += Duration{60};
    run.streams[4].transfer->start += Duration{60};
    run.streams[4].transfer->end += Duration{30};
    run.streams[4].kernel->start += Duration{30};
    run.streams[4].kernel->end += Duration{70};
  };
  EXPECT_EQ(cause(change), BoundCause::Kernel);
}

TEST_F(PromisedBatch, IsBrokenByALongKernelOrLongHostWork) {
  EXPECT_EQ(cause([](Timeline& run) { run.streams[0].kernel->end += Duration{50}; }), BoundCause::Kernel);
  EXPECT_EQ(cause([](Timeline& run) { run.streams[4].kernel->end += Duration{50}; }), BoundCause::Kernel);
  EXPECT_EQ(cause([](Timeline& run) { run.streams[2].kernel->end += Duration{50}; }), BoundCause::Host);
}

TEST_F(PromisedBatch, IsBrokenByAFinishThatIsSeenLate) {
  EXPECT_EQ(cause([](Timeline& run) { run.latency += Duration{50}; }), BoundCause::Dispatch);
}

// b's gate opens 50 late; b then gets in the way of a, whose copy takes 40 more.
TEST_F(PromisedBatch, IsBrokenByTheLateGateThatSlowedAnother) {
  EXPECT_EQ(cause([](Timeline& run) { move(run.streams[1], 50), lengthen_copy(run.streams[0], 40); }),
            BoundCause::Gate);
}

TEST_F(PromisedBatch, IsBrokenByWhatTookMost) {
  const auto both = [](std::int64_t copy, std::int64_t kernel) {
    return [=](Timeline& run) {
      lengthen_copy(run.streams[0], copy);
      run.streams[0].kernel->end += Duration{kernel};
    };
  };
  EXPECT_EQ(cause(both(30, 20)), BoundCause::Transfer);
  EXPECT_EQ(cause(both(20, 30)), BoundCause::Kernel);
}

// ---- random batches

/// A plan, run again with one thing changed.
struct Replay {
  Replay(const Planner& the_planner, const Topology& the_machine, const Batch& the_batch)
      : planner(the_planner), machine(the_machine), batch(the_batch), planned(plan(planner, batch, Basis::Guaranteed)) {
    planned.latest = latest_finish(planned);
  }

  /// @param late  the gate of this queue opens so much later
  Timeline run(const std::vector<CommandStream>& streams, std::size_t queue = 0, double late = 0) const {
    const Batch other = Batch::make(machine, streams, batch.merging()).value();
    BatchSimulation simulation;
    simulation.load(machine, Basis::Guaranteed, other, planner.rates);
    std::vector<double> gates = gates_of(simulation, planned.timeline);
    gates[queue % gates.size()] += late;
    simulation.run_forward(gates);
    return make_timeline(machine, other, simulation);
  }

  /// Nothing where the run kept its promise.
  [[nodiscard]] std::optional<BoundCause> cause_of(const Timeline& run) const {
    if (run.latency <= planned.latest->batch) return std::nullopt;
    return BatchPromise(planned).cause_of(run);
  }

  const Planner& planner;
  const Topology& machine;
  const Batch& batch;
  ExecutionPlan planned;
};

/// (replay, streams of the batch, its random numbers)
using Attack = std::function<void(const Replay&, std::vector<CommandStream>, test::Random&)>;

void attack_random_batches(const test::BatchTraits& traits, const Attack& attack) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    const Topology machine = test::random_machine(seed);
    const Batch batch = test::random_batch(machine, seed, traits);
    test::Random random(seed);
    const auto streams = batch.streams();
    attack(Replay(planners()[seed % 2], machine, batch), {streams.begin(), streams.end()}, random);
    if (testing::Test::HasFailure()) return;
  }
}

// An engine queue that comes later than all else takes is late by its gate.
TEST(BatchPromise, PutsALateQueueDownToItsGate) {
  int seen = 0;
  attack_random_batches({}, [&](const Replay& replay, const std::vector<CommandStream>& streams, test::Random& random) {
    const double late = 3 * static_cast<double>(replay.planned.latest->batch.count()) + 100;
    const auto cause = replay.cause_of(replay.run(streams, random.below(100), late));
    ASSERT_TRUE(cause.has_value());
    ASSERT_EQ(*cause, BoundCause::Gate);
    ++seen;
  });
  EXPECT_EQ(seen, 400);
}

// One kernel takes three times the batch more, on a GPU or on the host, and whatever waits for it is late as well.
TEST(BatchPromise, PutsALongKernelDownToIt) {
  int seen = 0;
  attack_random_batches({}, [&](const Replay& replay, std::vector<CommandStream> streams, test::Random& random) {
    CommandStream& stream = streams[random.below(streams.size())];
    if (!stream.kernel) return;
    stream.kernel->worst += 3 * replay.planned.latest->batch;
    const auto cause = replay.cause_of(replay.run(streams));
    ASSERT_TRUE(cause.has_value());
    const bool host = replay.machine.vertex(stream.kernel->on).kind == VertexKind::Cpu;
    ASSERT_EQ(*cause, host ? BoundCause::Host : BoundCause::Kernel);
    ++seen;
  });
  EXPECT_GT(seen, 100);
}

// All copies move ten times their bytes.
TEST(BatchPromise, PutsSlowCopiesDownToTransfers) {
  int seen = 0;
  attack_random_batches({}, [&](const Replay& replay, std::vector<CommandStream> streams, test::Random&) {
    for (CommandStream& stream : streams)
      if (stream.transfer) stream.transfer = resized(*stream.transfer, Bytes{10 * stream.transfer->size.count});
    const auto cause = replay.cause_of(replay.run(streams));
    if (!cause) return;
    ASSERT_EQ(*cause, BoundCause::Transfer);
    ++seen;
  });
  EXPECT_GT(seen, 200);
}

// Whatever goes wrong, by however little: whoever is late hears why.
TEST(BatchPromise, AlwaysFindsACause) {
  int seen = 0;
  attack_random_batches({}, [&](const Replay& replay, std::vector<CommandStream> streams, test::Random& random) {
    for (CommandStream& stream : streams) {
      if (stream.transfer && random.one_in(3))
        stream.transfer = resized(*stream.transfer,
                                  Bytes{stream.transfer->size.count * static_cast<std::int64_t>(1 + random.below(3))});
      if (stream.kernel && random.one_in(3))
        stream.kernel->worst += Duration{static_cast<std::int64_t>(
            random.below(1 + static_cast<std::uint64_t>(replay.planned.latest->batch.count())))};
    }
    const auto cause = replay.cause_of(replay.run(streams, random.below(100), random.real(0, 1000)));
    if (!cause) return;
    ASSERT_NE(*cause, BoundCause::Unknown);
    ASSERT_NE(*cause, BoundCause::Dispatch) << "all streams were seen as they ended";
    ++seen;
  });
  EXPECT_GT(seen, 200);
}

// And a run that is as planned ends by its latest finish.
TEST(BatchPromise, IsKeptByItsPlan) {
  attack_random_batches({}, [&](const Replay& replay, const std::vector<CommandStream>& streams, test::Random&) {
    ASSERT_FALSE(replay.cause_of(replay.run(streams)).has_value());
  });
}

}  // namespace
}  // namespace tutti::internal
