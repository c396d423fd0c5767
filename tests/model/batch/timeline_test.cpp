#include "model/batch/timeline.hpp"

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "model/planners/planner.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

using test::make_batch;

/// mem0 and mem1 on a wide hub with three GPUs of 6 GB/s; gpu2 has one engine.
Topology star() {
  return test::make_machine(
      R"(  vertices: {mem0: {kind: memory}, mem1: {kind: memory}, hub0: {kind: hub}, gpu0: {kind: gpu},
    gpu1: {kind: gpu}, gpu2: {kind: gpu, copy_engines: 1}}
  links:
    - {from: mem0, to: hub0, bandwidth: 6 GB/s, back: 6 GB/s}
    - {from: mem1, to: hub0, bandwidth: 6 GB/s, back: 6 GB/s}
    - {from: hub0, to: gpu0, bandwidth: 6 GB/s, back: 6 GB/s}
    - {from: hub0, to: gpu1, bandwidth: 6 GB/s, back: 6 GB/s}
    - {from: hub0, to: gpu2, bandwidth: 6 GB/s, back: 6 GB/s}
)");
}

Timeline plan_at_once(const Batch& batch) { return plan(*find_planner("all_at_once"), batch).timeline; }

// a alone would take 1 ms; with b it moves 3 bytes a ns until b is done:
//   b  6,000 B / 3 = 2,000 ns;  a  6,000 B in them, then 6,000 B / 6 = 1,000 ns more
TEST(Timeline, ASegmentIsAStretchOfConstantRate) {
  const Topology machine = star();
  const auto batch =
      make_batch(machine, "  - {from: mem0, to: gpu0, size: 12 kB}\n  - {from: mem0, to: gpu1, size: 6 kB}");
  const Timeline timeline = plan_at_once(batch);
  EXPECT_EQ(timeline.latency, Duration{3'000});
  EXPECT_EQ(timeline.streams[0].transfer->segments,
            (std::vector<Segment>{{Duration{0}, Duration{2'000}, Bytes{6'000}},
                                  {Duration{2'000}, Duration{3'000}, Bytes{6'000}}}));
  EXPECT_EQ(timeline.streams[1].transfer->segments,
            (std::vector<Segment>{{Duration{0}, Duration{2'000}, Bytes{6'000}}}));
}

// 10 B at 6 B/ns are 1.67 ns: the end goes up to 2, and both bytes and time end up in the one segment.
TEST(Timeline, EndsGoUpToAWholeNanosecond) {
  const Topology machine = star();
  const Timeline timeline = plan_at_once(make_batch(machine, "  - {from: mem0, to: gpu0, size: 10 B}"));
  EXPECT_EQ(timeline.latency, Duration{2});
  EXPECT_EQ(timeline.streams[0].transfer->segments, (std::vector<Segment>{{Duration{0}, Duration{2}, Bytes{10}}}));
}

TEST(Timeline, ATransferOfNothingHasNoSegments) {
  const Topology machine = star();
  const auto batch = make_batch(machine, "  - {from: mem0, to: gpu0, size: 0}\n  - {kernel: {on: gpu0, time: 7 ns}}");
  const Timeline timeline = plan_at_once(batch);
  EXPECT_TRUE(timeline.streams[0].transfer->segments.empty());
  EXPECT_EQ(timeline.streams[0].transfer->start, timeline.streams[0].transfer->end);
  EXPECT_EQ(timeline.streams[1].transfer, std::nullopt);
  EXPECT_EQ(timeline.streams[1].end(), Duration{7});
}

// 2^53 bytes at 6 B/ns last 1.5e15 ns, where two neighbouring doubles lie 0.25 ns apart: one byte more shows as
// nothing, but it is there.
TEST(Timeline, AByteAfterALongTimeStillCounts) {
  const Topology machine = star();
  const auto batch = make_batch(machine,
                                "  - {from: mem0, to: gpu0, size: 9007199254740992 B}\n"
                                "  - {from: mem0, to: gpu0, size: 1 B}\n");
  EXPECT_EQ(find_violation(machine, batch, plan_at_once(batch)), std::nullopt);
}

// The kernel-only stream waits for gpu0 from 0 and runs at 1,000; the gate stays where it was opened.
TEST(Timeline, TheGateIsWhereAStreamMightStart) {
  const Topology machine = star();
  const auto batch = make_batch(machine, R"(
  - {kernel: {on: gpu0, time: 1 us}}
  - {kernel: {on: gpu0, time: 1 us}}
  - {from: mem0, to: gpu0, size: 4800 B, kernel: {time: 1 us}}
)");
  const Timeline timeline = plan_at_once(batch);
  EXPECT_EQ(timeline.streams[1].gate, Duration{0});
  EXPECT_EQ(timeline.streams[1].start(), Duration{1'000});
  // the third stream's data is there at 800: it comes after the second, which has waited from 0
  EXPECT_EQ(timeline.streams[2].kernel->start, Duration{2'000});
  EXPECT_EQ(replay(plan(*find_planner("all_at_once"), batch)), timeline);
}

// ---- faults that are planted and must be found

class PlantedFault : public testing::Test {
 protected:
  /// What is found after `spoil` was done to a sound timeline.
  std::string after(const std::function<void(Timeline&)>& spoil) {
    Timeline timeline = plan_at_once(batch_);
    EXPECT_EQ(find_violation(machine_, batch_, timeline), std::nullopt);
    spoil(timeline);
    return find_violation(machine_, batch_, timeline).value_or("none");
  }

  Topology machine_ = star();
  // into gpu2 and out of it over one engine: merged, 0..1000 and 1000..2000; then their kernels
  Batch batch_ = make_batch(machine_, R"(
  - {name: a, from: mem0, to: gpu2, size: 6 kB, kernel: {time: 500 ns}}
  - {name: b, from: gpu2, to: mem1, size: 6 kB, kernel: {on: gpu0, time: 500 ns}}
  - {name: c, from: mem1, to: gpu0, size: 12 kB}
  - {name: d, kernel: {on: gpu2, time: 100 ns}}
)");
};

TEST_F(PlantedFault, InTheSegments) {
  EXPECT_EQ(after([](Timeline& t) { t.streams[0].transfer->segments[0].start += Duration{2}; }),
            "'a' has a gap in its segments");
  EXPECT_EQ(after([](Timeline& t) { t.streams[0].transfer->segments[0].end -= Duration{2}; }),
            "the segments of 'a' do not reach its end");
  EXPECT_EQ(after([](Timeline& t) { t.streams[2].transfer->segments.pop_back(); }),
            "the segments of 'c' do not reach its end");
  EXPECT_EQ(after([](Timeline& t) { t.streams[2].transfer->segments[0].bytes += Bytes{1}; }),
            "the bytes of 'c' do not add up");
  EXPECT_EQ(after([](Timeline& t) {
              auto& segments = t.streams[0].transfer->segments;
              segments = {{Duration{0}, Duration{500}, Bytes{7'000}}, {Duration{500}, Duration{1'000}, Bytes{-1'000}}};
            }),
            "'a' has a segment of less than 0 bytes");
}

TEST_F(PlantedFault, InTheRows) {
  EXPECT_EQ(after([](Timeline& t) { t.streams.pop_back(); }), "the timeline has not one row a stream");
  EXPECT_EQ(after([](Timeline& t) { t.streams[0].kernel.reset(); }), "'a' does not have the parts of its stream");
  EXPECT_EQ(after([](Timeline& t) { t.streams[3].transfer = TransferInterval{}; }),
            "'d' does not have the parts of its stream");
  EXPECT_EQ(after([](Timeline& t) { std::swap(t.streams[0], t.streams[1]); }),
            "'b' does not have the parts of its stream");
  EXPECT_EQ(after([](Timeline& t) { t.latency -= Duration{1}; }), "'b' lies outside its batch");
}

TEST_F(PlantedFault, InTheKernels) {
  EXPECT_EQ(after([](Timeline& t) { t.streams[0].kernel->start = Duration{998}; }),
            "the kernel of 'a' starts before its data is there");
  EXPECT_EQ(after([](Timeline& t) { std::swap(t.streams[0].kernel->start, t.streams[0].kernel->end); }),
            "the kernel of 'a' ends before it starts");
  EXPECT_EQ(after([](Timeline& t) { t.streams[0].kernel->on = VertexId(3); }), "the kernel of 'a' runs elsewhere");
  EXPECT_EQ(after([](Timeline& t) { t.streams[3].kernel->end += Duration{2'100}; }), "'d' and 'a' overlap on gpu2");
}

TEST_F(PlantedFault, OnAnEngine) {
  // b's copy moved into a's: one engine of gpu2
  EXPECT_EQ(after([](Timeline& t) {
              for (Duration* time : {&t.streams[1].transfer->start, &t.streams[1].transfer->segments[0].start})
                *time = Duration{900};
            }),
            "'a' and 'b' overlap on copy engine 4");
}

// a's kernel covers two others; the first of them takes no time, the second does.
TEST(Timeline, AnOverlapBehindAnEmptyKernelIsFound) {
  const Topology machine = star();
  const auto batch = make_batch(machine, R"(
  - {name: a, kernel: {on: gpu0, time: 100 ns}}
  - {name: b, kernel: {on: gpu0, time: 0}}
  - {name: c, kernel: {on: gpu0, time: 10 ns}}
)");
  Timeline timeline = plan_at_once(batch);
  timeline.streams[1].kernel = KernelInterval{*machine.find_vertex("gpu0"), Duration{50}, Duration{50}};
  timeline.streams[2].kernel = KernelInterval{*machine.find_vertex("gpu0"), Duration{60}, Duration{70}};
  EXPECT_EQ(find_violation(machine, batch, timeline), "'a' and 'c' overlap on gpu0");
}

// Rounding may let neighbours touch in one nanosecond, not in two.
TEST(Timeline, OneNanosecondOfRoundingIsNoOverlap) {
  const Topology machine = star();
  const auto batch = make_batch(
      machine, "  - {name: a, kernel: {on: gpu0, time: 10 ns}}\n  - {name: b, kernel: {on: gpu0, time: 10 ns}}");
  Timeline timeline = plan_at_once(batch);
  timeline.streams[1].kernel->start = Duration{9};
  EXPECT_EQ(find_violation(machine, batch, timeline), std::nullopt);
  timeline.streams[1].kernel->start = Duration{8};
  EXPECT_EQ(find_violation(machine, batch, timeline), "'a' and 'b' overlap on gpu0");
}

}  // namespace
}  // namespace tutti::internal
