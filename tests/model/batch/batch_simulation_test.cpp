#include "model/batch/batch_simulation.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/batch/safe_bound.hpp"
#include "model/planners/planner.hpp"
#include "tests/support/random.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

using test::make_batch;

/// Memories mem0 and mem1, a hub with links of `host` to each, GPUs 0 to 3 with 6 GB/s; peer access as given.
Topology star(double host, std::string_view rest = "", std::string_view gpu0 = "{kind: gpu}") {
  const std::string rate = std::to_string(host) + " GB/s, back: " + std::to_string(host) + " GB/s}\n";
  return test::make_machine(
      "  vertices: {mem0: {kind: memory}, mem1: {kind: memory}, cpu0: {kind: cpu}, hub0: {kind: hub}, gpu0: " +
      std::string(gpu0) + R"(,
    gpu1: {kind: gpu}, gpu2: {kind: gpu}, gpu3: {kind: gpu}}
  links:
    - {from: hub0, to: gpu0, bandwidth: 6 GB/s, back: 6 GB/s}
    - {from: hub0, to: gpu1, bandwidth: 6 GB/s, back: 6 GB/s}
    - {from: hub0, to: gpu2, bandwidth: 6 GB/s, back: 6 GB/s}
    - {from: hub0, to: gpu3, bandwidth: 6 GB/s, back: 6 GB/s}
    - {from: cpu0, to: hub0, bandwidth: 50 GB/s, back: 50 GB/s}
    - {from: mem0, to: hub0, bandwidth: )" +
      rate + "    - {from: mem1, to: hub0, bandwidth: " + rate + std::string(rest));
}

/// One stream in ms: transfer start and end, kernel start and end.
struct Times {
  double transfer_start, transfer_end, kernel_start, kernel_end;
};

/// What a planner makes of a batch, in ms.
void expect_times(std::string_view planner, const Batch& batch, double latency, const std::vector<Times>& expected) {
  BatchSimulation simulation;
  EXPECT_NEAR(predict(*find_planner(planner), batch, Basis::Nominal, simulation) / 1e6, latency, 1e-9);
  ASSERT_EQ(simulation.times().size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const StreamTimes& times = simulation.times()[i];
    if (batch.streams()[i].transfer) {
      EXPECT_NEAR(times.transfer_start / 1e6, expected[i].transfer_start, 1e-9) << "stream " << i;
      EXPECT_NEAR(times.transfer_end / 1e6, expected[i].transfer_end, 1e-9) << "stream " << i;
    }
    if (batch.streams()[i].kernel) {
      EXPECT_NEAR(times.kernel_start / 1e6, expected[i].kernel_start, 1e-9) << "stream " << i;
      EXPECT_NEAR(times.kernel_end / 1e6, expected[i].kernel_end, 1e-9) << "stream " << i;
    }
  }
}

// 12 MB / 6 = 2 ms alone. Three at once over 6 GB/s: 2 each until the 4 MB one is done after 2 ms; then 3 each.
//   a  4 MB / 2 = 2 ms;  b  (10 - 4) / 3 = 2 more: 4 ms;  c  (16 - 4 - 6) / 6 = 1 more: 5 ms
TEST(AllAtOnce, RatesChangeWhenATransferEnds) {
  const Topology machine = star(6);
  const auto batch = make_batch(machine, R"(
  - {from: mem0, to: gpu0, size: 4 MB}
  - {from: mem0, to: gpu1, size: 10 MB}
  - {from: mem0, to: gpu2, size: 16 MB}
)");
  expect_times("all_at_once", batch, 5, {{0, 2, 0, 0}, {0, 4, 0, 0}, {0, 5, 0, 0}});
}

// A link that is faster than guaranteed makes the batch longer. Both come through 10 GB/s:
//   a at 2 leaves 8 to b: 80 MB in 10 ms, then 90 ms: 100 ms, and a is done then too
//   a at 6 would leave 4, so both get 5: 16 ms, then 90 ms: 106 ms
TEST(AllAtOnce, AFasterLinkCanMakeABatchLonger) {
  const Topology machine =
      test::make_machine(R"(  vertices: {mem0: {kind: memory}, cpu0: {kind: cpu}, gpu0: {kind: gpu}, gpu1: {kind: gpu}}
  links:
    - {from: mem0, to: cpu0, bandwidth: 10 GB/s}
    - {from: cpu0, to: gpu0, bandwidth: {nominal: 6 GB/s, guaranteed: 2 GB/s}}
    - {from: cpu0, to: gpu1, bandwidth: 8 GB/s}
)");
  const auto batch = make_batch(machine, R"(
  - {from: mem0, to: gpu0, size: 200 MB}
  - {from: mem0, to: gpu1, size: 80 MB, kernel: {time: 90 ms}}
)");
  const Planner& planner = *find_planner("all_at_once");
  EXPECT_EQ(plan(planner, batch, Basis::Guaranteed).timeline.latency, std::chrono::milliseconds(100));
  EXPECT_EQ(plan(planner, batch, Basis::Nominal).timeline.latency, std::chrono::milliseconds(106));
}

// The same batch backward: mirrored, so the short ones start late and all end at 5.
TEST(CompletionAligned, StartsTheShortOnesLate) {
  const Topology machine = star(6);
  const auto batch = make_batch(machine, R"(
  - {from: mem0, to: gpu0, size: 4 MB}
  - {from: mem0, to: gpu1, size: 10 MB}
  - {from: mem0, to: gpu2, size: 16 MB}
)");
  expect_times("completion_aligned", batch, 5, {{3, 5, 0, 0}, {1, 5, 0, 0}, {0, 5, 0, 0}});
}

// h2d has weight 2, d2h weight 1, on a chip of 6 GB/s for both: 4 and 2.
//   in  8 MB / 4 = 2 ms;  out 4 MB in them, then (16 - 4) / 6 = 2 more: 4 ms
TEST(AllAtOnce, WeightsGoByTheDirection) {
  const Topology machine = star(50, R"(  weights: {h2d: 2, d2h: 1}
  shared: [{name: chip, capacity: 6 GB/s, members: [{from: mem0, to: hub0}, {from: hub0, to: mem0}]}]
)");
  const auto batch = make_batch(machine, R"(
  - {from: mem0, to: gpu0, size: 8 MB}
  - {from: gpu1, to: mem0, size: 16 MB}
)");
  expect_times("all_at_once", batch, 4, {{0, 2, 0, 0}, {0, 4, 0, 0}});
}

// ---- merged streams

constexpr std::string_view kTwoOnOneGpu = R"(
  - {from: mem0, to: gpu0, size: 12 MB, kernel: {time: 5 ms}}
  - {from: mem1, to: gpu0, size: 6 MB, kernel: {time: 1 ms}}
)";

// One engine, so back to back: 2 ms, 1 ms; then the kernels in the same order: 5 ms, 1 ms.
TEST(Merging, StreamsOfOneEngineRunBackToBackThenTheirKernels) {
  const Topology machine = star(50);
  expect_times("all_at_once", make_batch(machine, kTwoOnOneGpu), 9, {{0, 2, 3, 8}, {2, 3, 8, 9}});
  expect_times("completion_aligned", make_batch(machine, kTwoOnOneGpu), 9, {{0, 2, 3, 8}, {2, 3, 8, 9}});
}

// Off: the second transfer waits for the engine only, its kernel for the GPU, and the first kernel starts at 2.
TEST(Merging, OffLetsTheFirstKernelOverlapTheSecondTransfer) {
  const Topology machine = star(50);
  expect_times("all_at_once", make_batch(machine, kTwoOnOneGpu, Merging::Off), 8, {{0, 2, 2, 7}, {2, 3, 7, 8}});
}

constexpr std::string_view kInAndOut = R"(
  - {from: mem0, to: gpu0, size: 12 MB}
  - {from: gpu0, to: mem1, size: 6 MB}
)";

// Two engines move both ways at once; one engine does one after the other.
TEST(Merging, OneEngineServesBothDirections) {
  const Topology two = star(50);
  expect_times("all_at_once", make_batch(two, kInAndOut), 2, {{0, 2, 0, 0}, {0, 1, 0, 0}});
  const Topology one = star(50, "", "{kind: gpu, copy_engines: 1}");
  expect_times("all_at_once", make_batch(one, kInAndOut), 3, {{0, 2, 0, 0}, {2, 3, 0, 0}});
  expect_times("all_at_once", make_batch(one, kInAndOut, Merging::Off), 3, {{0, 2, 0, 0}, {2, 3, 0, 0}});
}

constexpr std::string_view kAcross = R"(
  - {name: a, from: mem0, to: gpu1, size: 6 MB}
  - {name: d, from: mem1, to: gpu2, size: 6 MB}
  - {name: b, from: gpu0, to: gpu1, size: 6 MB}
  - {name: c, from: gpu0, to: mem0, size: 6 MB}
)";

// b and c leave gpu0 by its way out: one engine queue. a comes into gpu1 by its own engine, and shares the link there
// with b:
//   at once:  a and b at 3 each, 2 ms; then c, 2..3; d 0..1
//   aligned:  c and a end together, 1..2, with no link in common; b has the link for itself before, 0..1
TEST(Merging, JoinsWhatOneEngineIssues) {
  const Topology machine = star(50);
  const auto batch = make_batch(machine, kAcross);
  expect_times("all_at_once", batch, 3, {{0, 2, 0, 0}, {0, 1, 0, 0}, {0, 2, 0, 0}, {2, 3, 0, 0}});
  expect_times("completion_aligned", batch, 2, {{1, 2, 0, 0}, {1, 2, 0, 0}, {0, 1, 0, 0}, {1, 2, 0, 0}});
}

// Four GPUs, each to each of the others, 6 MB: three rounds of 1 ms, in which nobody meets anybody; three engines or
// two.
TEST(Merging, AllToAllTakesARoundForEachOther) {
  for (const std::string engines : {"{kind: gpu}", "{kind: gpu, copy_engines: 3}"}) {
    const Topology machine = star(50, "", engines);
    std::string streams;
    for (int from = 0; from < 4; ++from)
      for (int to = 0; to < 4; ++to)
        if (from != to) streams += fmt::format("  - {{from: gpu{}, to: gpu{}, size: 6 MB}}\n", from, to);
    for (const char* planner : {"all_at_once", "completion_aligned"}) {
      BatchSimulation simulation;
      EXPECT_NEAR(predict(*find_planner(planner), make_batch(machine, streams), Basis::Nominal, simulation) / 1e6, 3,
                  1e-9);
      EXPECT_EQ(simulation.queue_count(), 4U);
    }
  }
}

// 6 MB into gpu2 from each of two GPUs, over a link that either fills: one after the other, 1 ms each. Where a handover
// takes 60 us that is short: they share the link, and both are over at 2.
TEST(LastHop, TakesOneCopyAfterTheOther) {
  constexpr std::string_view kTwo = "  - {from: gpu0, to: gpu2, size: 6 MB}\n  - {from: gpu1, to: gpu2, size: 6 MB}\n";
  const Topology machine = star(50), slow = star(50, "  setup: {handover: 60 us}\n");
  for (const Merging merging : {Merging::On, Merging::Off}) {
    expect_times("all_at_once", make_batch(machine, kTwo, merging), 2, {{0, 1, 0, 0}, {1, 2, 0, 0}});
    expect_times("all_at_once", make_batch(slow, kTwo, merging), 2, {{0, 2, 0, 0}, {0, 2, 0, 0}});
  }
}

// 30 MB with that handover: 5 ms each, and 60 us before each, since either may find the other there: 2 x 5.06.
TEST(LastHop, IsHandedOver) {
  const Topology machine = star(50, "  setup: {handover: 60 us}\n");
  const auto batch =
      make_batch(machine, "  - {from: gpu0, to: gpu2, size: 30 MB}\n  - {from: gpu1, to: gpu2, size: 30 MB}\n");
  expect_times("all_at_once", batch, 10.12, {{0, 5.06, 0, 0}, {5.06, 10.12, 0, 0}});
}

// From every GPU to every other: in its turn, no copy shares a link with another one, so it is over when predicted,
// whatever the others do; 1 ns is for rounding.
TEST(LastHop, OfAllToAllIsBoundAsPredicted) {
  const Topology machine = star(50);
  std::string streams;
  for (int from = 0; from < 4; ++from)
    for (int to = 0; to < 4; ++to)
      if (from != to) streams += fmt::format("  - {{from: gpu{}, to: gpu{}, size: 6 MB}}\n", from, to);
  for (const Merging merging : {Merging::On, Merging::Off}) {
    const auto batch = make_batch(machine, streams, merging);
    for (const Planner& planner : planners()) {
      const ExecutionPlan planned = plan(planner, batch, Basis::Guaranteed);
      EXPECT_LE(latest_finish(planned).batch, planned.timeline.latency + Duration{1}) << planner.name;
    }
  }
}

// Copies of one GPU take turns anyway; one that fills its last link by half leaves room for another; 0.1 MB take 17 us,
// less than 20 x 4 us; and links of their own are not shared.
TEST(LastHop, IsHeldOnlyWhereTwoWouldFillIt) {
  const auto last_hops = [](const Topology& machine, std::string_view streams) {
    return std::ranges::count_if(make_batch(machine, streams).work(),
                                 [](const StreamWork& work) { return work.last_hop != kNone; });
  };
  constexpr std::string_view kTwo = "  - {from: gpu0, to: gpu2, size: 6 MB}\n  - {from: gpu1, to: gpu2, size: 6 MB}\n";
  EXPECT_EQ(last_hops(star(50), kTwo), 2);
  EXPECT_EQ(last_hops(star(50), "  - {from: gpu0, to: gpu2, size: 6 MB}\n  - {from: gpu0, to: gpu2, size: 7 MB}\n"), 0);
  EXPECT_EQ(last_hops(star(50), "  - {from: gpu0, to: gpu2, size: 6 MB}\n  - {from: gpu1, to: gpu2, size: 0 B}\n"), 0);
  const Topology wide = test::make_machine(
      R"(  vertices: {mem0: {kind: memory}, hub0: {kind: hub}, gpu0: {kind: gpu}, gpu1: {kind: gpu}, gpu2: {kind: gpu}}
  links:
    - {from: mem0, to: hub0, bandwidth: 50 GB/s}
    - {from: hub0, to: gpu0, bandwidth: 6 GB/s, back: 6 GB/s}
    - {from: hub0, to: gpu1, bandwidth: 6 GB/s, back: 6 GB/s}
    - {from: hub0, to: gpu2, bandwidth: 12 GB/s, back: 12 GB/s}
)");
  EXPECT_EQ(last_hops(wide, kTwo), 0);
  EXPECT_EQ(last_hops(star(50), "  - {from: gpu0, to: gpu2, size: 0.1 MB}\n  - {from: gpu1, to: gpu2, size: 6 MB}\n"),
            0);
  const Topology direct =
      test::make_machine(R"(  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}, gpu1: {kind: gpu}, gpu2: {kind: gpu}}
  links:
    - {from: mem0, to: gpu0, bandwidth: 6 GB/s, back: 6 GB/s}
    - {from: gpu0, to: gpu2, bandwidth: 6 GB/s, back: 6 GB/s}
    - {from: gpu1, to: gpu2, bandwidth: 6 GB/s, back: 6 GB/s}
)");
  EXPECT_EQ(last_hops(direct, kTwo), 0);
}

// The rule of before: a: into gpu1; b: gpu0 to gpu1, shares gpu1's way in; c: gpu0 to mem0, shares gpu0's way out with
// b. So a, b, c are one, 1 ms each; d is alone.
TEST(Merging, TransitiveJoinsOverEitherEnd) {
  const Topology machine = star(50);
  const auto batch = make_batch(machine, kAcross, Merging::Transitive);
  expect_times("all_at_once", batch, 3, {{0, 1, 0, 0}, {0, 1, 0, 0}, {1, 2, 0, 0}, {2, 3, 0, 0}});
  expect_times("completion_aligned", batch, 3, {{0, 1, 0, 0}, {2, 3, 0, 0}, {1, 2, 0, 0}, {2, 3, 0, 0}});
}

// Two queues that a third stream joins: c shares an engine with both, and all run in the order of the file.
TEST(Merging, TransitiveALaterStreamJoinsTwoQueues) {
  const Topology machine = star(50);
  const auto batch = make_batch(machine, R"(
  - {name: a, from: gpu0, to: mem0, size: 6 MB}
  - {name: b, from: mem1, to: gpu1, size: 12 MB}
  - {name: c, from: gpu0, to: gpu1, size: 6 MB}
  - {name: d, from: mem1, to: gpu1, size: 6 MB}
)",
                                Merging::Transitive);
  expect_times("all_at_once", batch, 5, {{0, 1, 0, 0}, {1, 3, 0, 0}, {3, 4, 0, 0}, {4, 5, 0, 0}});
}

// 4,096 copies of nothing on one engine: no time, and no stack either.
TEST(Merging, ManyEmptyTransfersTakeNoTime) {
  const Topology machine = star(50);
  CommandStream stream;
  stream.transfer = Transfer{*machine.find_vertex("mem0"), *machine.find_vertex("gpu0"), Bytes{0}, {}, {}};
  std::vector<CommandStream> streams(test::rounds<std::size_t>(4096), stream);
  for (std::size_t i = 0; i < streams.size(); ++i) streams[i].name = std::to_string(i);
  for (const Merging merging : {Merging::On, Merging::Off}) {
    const auto batch = Batch::make(machine, streams, merging);
    for (const Planner& planner : planners()) EXPECT_EQ(plan(planner, *batch).timeline.latency, Duration{0});
  }
}

// ---- kernels

// gpu0 is wanted at 1 ms by a and at 2 ms by b (6 and 12 MB over links of their own, via two memories, to gpu0 and
// gpu1): b waits until 4.
TEST(Kernels, ThoseOfOneGpuExcludeEachOther) {
  const Topology machine = star(50);
  const auto batch = make_batch(machine, R"(
  - {from: mem0, to: gpu0, size: 6 MB, kernel: {time: 3 ms}}
  - {from: mem1, to: gpu1, size: 12 MB, kernel: {on: gpu0, time: 2 ms}}
)");
  expect_times("all_at_once", batch, 6, {{0, 1, 1, 4}, {0, 2, 4, 6}});
}

// Who comes first is served first, not who stands first in the file.
TEST(Kernels, AreServedInTheOrderOfArrival) {
  const Topology machine = star(50);
  const auto batch = make_batch(machine, R"(
  - {from: mem1, to: gpu1, size: 12 MB, kernel: {on: gpu0, time: 2 ms}}
  - {from: mem0, to: gpu0, size: 6 MB, kernel: {time: 3 ms}}
)");
  expect_times("all_at_once", batch, 6, {{0, 2, 4, 6}, {0, 1, 1, 4}});
}

// On a cpu they are host work and overlap: 1 + 3 and 2 + 2.
TEST(Kernels, ThoseOfACpuOverlap) {
  const Topology machine = star(50);
  const auto batch = make_batch(machine, R"(
  - {from: mem0, to: gpu0, size: 6 MB, kernel: {on: cpu0, time: 3 ms}}
  - {from: gpu1, to: mem1, size: 12 MB, kernel: {on: cpu0, time: 2 ms}}
)");
  expect_times("all_at_once", batch, 4, {{0, 1, 1, 4}, {0, 2, 2, 4}});
}

// A kernel without a transfer and one without time; the batch is as long as the first.
TEST(Kernels, MayStandAloneAndTakeNoTime) {
  const Topology machine = star(50);
  const auto batch = make_batch(machine, R"(
  - {kernel: {on: gpu3, time: 3 ms}}
  - {from: mem0, to: gpu0, size: 6 MB, kernel: {time: 0}}
)");
  expect_times("all_at_once", batch, 3, {{0, 0, 0, 3}, {0, 1, 1, 1}});
  expect_times("completion_aligned", batch, 3, {{0, 0, 0, 3}, {2, 3, 3, 3}});
  expect_times("time_division", batch, 3, {{0, 0, 0, 3}, {0, 1, 1, 1}});
}

// Backward, the kernel before which more work is left goes last: a (12 MB, 2 ms) before b (6 MB, 1 ms), so b's kernel
// comes first. a needs the GPU in 3..6 and starts at 1 or before; run forward from there, nothing waits for long.
TEST(CompletionAligned, OnASharedGpuTheLongestTransferComesLast) {
  const Topology machine = star(50);
  const auto batch = make_batch(machine, R"(
  - {from: mem0, to: gpu0, size: 12 MB, kernel: {time: 3 ms}}
  - {from: mem1, to: gpu1, size: 6 MB, kernel: {on: gpu0, time: 3 ms}}
)");
  // back from the end: a's kernel 0..3, its transfer 3..5; b's kernel 3..6, its transfer 6..7. Mirrored at 7.
  expect_times("completion_aligned", batch, 7, {{2, 4, 4, 7}, {0, 1, 1, 4}});
}

// Two that are alike keep the order of the file.
TEST(CompletionAligned, OnASharedGpuEqualsKeepTheirOrder) {
  const Topology machine = star(50);
  const auto batch =
      make_batch(machine, "  - {kernel: {on: gpu0, time: 1 ms}}\n  - {kernel: {on: gpu0, time: 1 ms}}\n");
  expect_times("completion_aligned", batch, 2, {{0, 0, 0, 1}, {0, 0, 1, 2}});
}

// The worst case of a kernel counts where guarantees count: 1 ms + 5 ms.
TEST(Kernels, TakeTheirWorstTimeWhereItIsGuaranteedTimeThatCounts) {
  const Topology machine = star(50);
  const auto batch = make_batch(machine, "  - {from: mem0, to: gpu0, size: 6 MB, kernel: {time: 3 ms, worst: 5 ms}}");
  for (const Planner& planner : planners()) {
    EXPECT_EQ(plan(planner, batch, Basis::Nominal).timeline.latency, Duration{4'000'000});
    EXPECT_EQ(plan(planner, batch, Basis::Guaranteed).timeline.latency, Duration{6'000'000});
  }
}

// ---- copies between GPUs

// Between peers through the hub: 12 MB / 6 = 2 ms.
TEST(PeerCopy, GoesStraightFromGpuToGpu) {
  const Topology machine = star(50);
  expect_times("all_at_once", make_batch(machine, "  - {from: gpu0, to: gpu1, size: 12 MB}"), 2, {{0, 2, 0, 0}});
}

constexpr std::string_view kStaged = "  peer_access: none\n  staging: {chunk: 3 MB}\n";

// Through mem0 over links of 4 GB/s: the first chunk takes 3 / 4 = 0.75 ms, then all 12 MB come at 4: 3 ms.
TEST(StagedCopy, LeadsWithOneChunkAndThenRunsAtTheSlowerLeg) {
  const Topology machine = star(4, kStaged);
  expect_times("all_at_once", make_batch(machine, "  - {from: gpu0, to: gpu1, size: 12 MB}"), 3.75, {{0, 3.75, 0, 0}});
  expect_times("completion_aligned", make_batch(machine, "  - {from: gpu0, to: gpu1, size: 12 MB}"), 3.75,
               {{0, 3.75, 0, 0}});
}

// With a chunk of 0 nothing is cut: all 12 MB cross the first leg, 3 ms, and then the second.
TEST(StagedCopy, IsNotCutByAChunkOfZero) {
  const Topology machine = star(4, "  peer_access: none\n  staging: {chunk: 0}\n");
  expect_times("all_at_once", make_batch(machine, "  - {from: gpu0, to: gpu1, size: 12 MB}"), 6, {{0, 6, 0, 0}});
}

// A copy smaller than a chunk leads with all of it: 2 / 4 twice.
TEST(StagedCopy, ASmallOneIsOneChunk) {
  const Topology machine = star(4, kStaged);
  expect_times("all_at_once", make_batch(machine, "  - {from: gpu0, to: gpu1, size: 2 MB}"), 1, {{0, 1, 0, 0}});
}

// 12 MB are 4 chunks of 3 MB, 13 MB are 5. The first one's copy into the memory pays 0.1 ms, and so does every copy out
// of it: 5 and 6 times. Uncut, the two copies pay one each.
TEST(StagedCopy, EveryChunkPaysTheSetUp) {
  const Topology machine = star(4, std::string(kStaged) + "  setup: {transfer: 100 us}\n");
  expect_times("all_at_once", make_batch(machine, "  - {from: gpu0, to: gpu1, size: 12 MB}"), 4.25, {{0, 4.25, 0, 0}});
  expect_times("all_at_once", make_batch(machine, "  - {from: gpu0, to: gpu1, size: 13 MB}"), 4.6, {{0, 4.6, 0, 0}});
  const Topology uncut = star(4, "  peer_access: none\n  staging: {chunk: 0}\n  setup: {transfer: 100 us}\n");
  expect_times("all_at_once", make_batch(uncut, "  - {from: gpu0, to: gpu1, size: 12 MB}"), 6.2, {{0, 6.2, 0, 0}});
}

// It holds gpu0's way out and gpu1's way in: the d2h from gpu0 comes behind it in its queue, the h2d to gpu1 waits for
// it in another. 4 MB / 4 = 1 ms each, over different links.
TEST(StagedCopy, HoldsTheEnginesOfBothLegs) {
  const Topology machine = star(4, kStaged);
  const auto batch = make_batch(machine, R"(
  - {from: gpu0, to: gpu1, size: 12 MB}
  - {from: gpu0, to: mem1, size: 4 MB}
  - {from: mem1, to: gpu1, size: 4 MB}
)");
  expect_times("all_at_once", batch, 4.75, {{0, 3.75, 0, 0}, {3.75, 4.75, 0, 0}, {3.75, 4.75, 0, 0}});
}

// Beside it an h2d from the same memory: the way out of mem0 (4 GB/s) is shared evenly, at 2, once its pipeline is
// full.
//   pipeline fill 0.75 ms, in which the h2d moves 3 MB at 4; then 2 each: its 6 MB left take 3 ms, 3.75;
//   of the copy 6 MB have come, the other 6 take 1.5 ms at 4: 5.25
TEST(StagedCopy, SharesTheMemoryWithOthers) {
  const Topology machine = star(4, kStaged);
  const auto batch = make_batch(machine, R"(
  - {from: gpu0, to: gpu1, size: 12 MB, via: mem0}
  - {from: mem0, to: gpu2, size: 9 MB}
)");
  expect_times("all_at_once", batch, 5.25, {{0, 5.25, 0, 0}, {0, 3.75, 0, 0}});
}

// With a memory of its own (via mem1) neither slows the other.
TEST(StagedCopy, ViaAnotherMemoryItIsAlone) {
  const Topology machine = star(4, kStaged);
  const auto batch = make_batch(machine, R"(
  - {from: gpu0, to: gpu1, size: 12 MB, via: mem1}
  - {from: mem0, to: gpu2, size: 9 MB}
)");
  expect_times("all_at_once", batch, 3.75, {{0, 3.75, 0, 0}, {0, 2.25, 0, 0}});
}

// ---- set-up, routes, nothing

// 0.5 ms before everything, 0.2 ms on the engine before each copy: a 0.5..0.7..1.7, then its neighbour ..1.9..2.9.
TEST(SetUp, OfTheBatchComesFirstOfTheTransferBeforeEachCopy) {
  const Topology machine = star(50, "  setup: {batch: 500 us, transfer: 200 us}\n");
  const auto batch = make_batch(machine, R"(
  - {from: mem0, to: gpu0, size: 6 MB}
  - {from: mem0, to: gpu0, size: 6 MB, kernel: {time: 1 ms}}
  - {kernel: {on: gpu1, time: 1 ms}}
)");
  expect_times("all_at_once", batch, 3.9, {{0.5, 1.7, 0, 0}, {1.7, 2.9, 2.9, 3.9}, {0, 0, 0.5, 1.5}});
  expect_times("completion_aligned", batch, 3.9, {{0.5, 1.7, 0, 0}, {1.7, 2.9, 2.9, 3.9}, {0, 0, 2.9, 3.9}});
  expect_times("time_division", batch, 3.9, {{0.5, 1.7, 0, 0}, {1.7, 2.9, 2.9, 3.9}, {0, 0, 0.5, 1.5}});
}

// a: gate 0.1, copy 0.2, 6 MB / 6 = 1 ms: 1.3; b behind it: copy 0.2 and 1 ms: 2.5; its kernel's launch 0.05 and 1 ms.
// A kernel alone has its gate before its launch: 0.1 + 0.05 + 1. Guaranteed, every cost is twice that.
TEST(SetUp, GatesPrecedeQueuesAndLaunchesKernels) {
  const Topology machine = star(50,
                                "  setup: {transfer: {nominal: 200 us, guaranteed: 400 us}, kernel: {nominal: 50 us, "
                                "guaranteed: 100 us}, gate: {nominal: 100 us, guaranteed: 200 us}}\n");
  const auto batch = make_batch(machine, R"(
  - {from: mem0, to: gpu0, size: 6 MB}
  - {from: mem0, to: gpu0, size: 6 MB, kernel: {time: 1 ms}}
  - {kernel: {on: gpu1, time: 1 ms}}
)");
  expect_times("all_at_once", batch, 3.55, {{0, 1.3, 0, 0}, {1.3, 2.5, 2.5, 3.55}, {0, 0, 0, 1.15}});
  expect_times("completion_aligned", batch, 3.55, {{0, 1.3, 0, 0}, {1.3, 2.5, 2.5, 3.55}, {0, 0, 2.4, 3.55}});
  EXPECT_EQ(plan(planners()[0], batch, Basis::Guaranteed).timeline.latency, Duration{4'100'000});
}

// From copies to kernels 0.1 ms once an engine queue: a and b copy until 2, then b's kernel 0.1 + 1, a's 1 more: 4.1.
// On gpu1 a kernel alone costs nothing; two have their gates in one queue, for half of it each: 2 x 1.05. Guaranteed
// (0.2) a queue's 2 + 2.2, and all of it before a kernel that is not alone: 1.2.
TEST(SetUp, HandoversPrecedeKernelsBehindCopiesAndThoseOfOtherStreams) {
  const Topology machine = star(50, "  setup: {handover: {nominal: 100 us, guaranteed: 200 us}}\n");
  const std::string queue = R"(
  - {from: mem0, to: gpu0, size: 6 MB, kernel: {time: 1 ms}}
  - {from: mem0, to: gpu0, size: 6 MB, kernel: {time: 1 ms}}
)";
  const Planner& planner = planners()[0];
  EXPECT_EQ(plan(planner, make_batch(machine, queue)).timeline.latency, Duration{4'100'000});
  const std::string lone = "  - {kernel: {on: gpu1, time: 1 ms}}\n";
  EXPECT_EQ(plan(planner, make_batch(machine, lone)).timeline.latency, Duration{1'000'000});
  EXPECT_EQ(plan(planner, make_batch(machine, lone + lone)).timeline.latency, Duration{2'100'000});
  const auto mixed = make_batch(machine, queue + "  - {kernel: {on: gpu0, time: 1 ms}}\n");
  // Nominal: the kernel without copies runs while the queue copies, its 1.05 beside the 2.
  EXPECT_EQ(plan(planner, mixed).timeline.latency, Duration{4'100'000});
  const Timeline guaranteed = plan(planner, mixed, Basis::Guaranteed).timeline;
  EXPECT_EQ(guaranteed.latency, Duration{4'200'000});
  EXPECT_EQ(guaranteed.streams[2].kernel->end - guaranteed.streams[2].kernel->start, Duration{1'200'000});
}

// gpu0 issues two copies of 1 ms each. To one GPU they go on from each other; to two, 0.1 ms lie between.
TEST(SetUp, ATurnPrecedesACopyWithOtherEnds) {
  const Topology machine = star(50, "  peer_access: all\n  setup: {turn: 100 us}\n");
  const Planner& planner = planners()[0];
  const std::string to_1 = "  - {from: gpu0, to: gpu1, size: 6 MB}\n",
                    to_2 = "  - {from: gpu0, to: gpu2, size: 6 MB}\n";
  EXPECT_EQ(plan(planner, make_batch(machine, to_1 + to_1)).timeline.latency, Duration{2'000'000});
  EXPECT_EQ(plan(planner, make_batch(machine, to_1 + to_2)).timeline.latency, Duration{2'100'000});
  const std::string up = "  - {from: mem0, to: gpu0, size: 6 MB}\n";
  EXPECT_EQ(plan(planner, make_batch(machine, up + up)).timeline.latency, Duration{2'000'000});
}

// Two queues, from memory and from gpu1, have two kernels each on gpu0, 10 ms long, behind copies of 1 ms. All four are
// in one queue: 0.1 ms before each queue's first.
TEST(SetUp, QueuesThatShareAGpuTakeItOverOnceEach) {
  const std::string up = "  - {from: mem0, to: gpu0, size: 6 MB, kernel: {time: 10 ms}}\n",
                    peer = "  - {from: gpu1, to: gpu0, size: 6 MB, kernel: {time: 10 ms}}\n";
  const auto latency = [](const std::string& setup, const std::string& batch, Basis basis) {
    const Topology machine = star(50, "  peer_access: all\n" + setup, "{kind: gpu, copy_engines: 3}");
    return plan(planners()[0], make_batch(machine, batch), basis).timeline.latency;
  };
  const std::string cost = "  setup: {handover: 100 us}\n", both = up + up + peer + peer;
  EXPECT_EQ(latency(cost, both, Basis::Nominal), latency("", both, Basis::Nominal) + Duration{200'000});
  EXPECT_EQ(latency(cost, both, Basis::Guaranteed), latency("", both, Basis::Guaranteed) + Duration{200'000});
  EXPECT_EQ(latency(cost, up + up, Basis::Guaranteed), latency("", up + up, Basis::Guaranteed) + Duration{100'000});
}

// A staged copy to gpu1 alone, and beside a copy to gpu1, which uses its second engine: that passes to it, 0.3 ms, and
// is guaranteed to come back for as much. Of two staged copies one is predicted to find it with the other queue.
TEST(SetUp, AnEnginePassesToAStagedCopy) {
  const std::string staged = "  - {from: gpu0, to: gpu1, size: 6 MB, via: mem0}\n",
                    up = "  - {from: mem0, to: gpu1, size: 6 MB}\n";
  const auto latency = [](const std::string& setup, const std::string& batch, Basis basis = Basis::Nominal) {
    const Topology machine = star(50, setup);
    return plan(planners()[0], make_batch(machine, batch), basis).timeline.latency;
  };
  const std::string cost = "  setup: {handover: 300 us}\n";
  EXPECT_EQ(latency(cost, staged), latency("", staged));
  EXPECT_EQ(latency(cost, staged + up), latency("", staged + up) + Duration{300'000});
  EXPECT_EQ(latency(cost, staged + up, Basis::Guaranteed),
            latency("", staged + up, Basis::Guaranteed) + Duration{600'000});
  EXPECT_EQ(latency(cost, staged + staged + up), latency("", staged + staged + up) + Duration{300'000});
}

// A staged copy ends in the queue of the GPU that it goes to: 0.3 ms until its queue goes on with copies of another
// kind, and as much from those to it. Two staged ones in a row have that in their own set-up.
TEST(SetUp, AHandoverLiesBetweenAStagedCopyAndOthersOfItsQueue) {
  const std::string staged = "  - {from: gpu0, to: gpu1, size: 6 MB, via: mem0}\n",
                    down = "  - {from: gpu0, to: mem0, size: 6 MB}\n";
  const auto handovers = [](const std::string& batch) {
    const auto latency = [&](const std::string& setup) {
      const Topology machine = star(50, setup);
      return plan(planners()[0], make_batch(machine, batch)).timeline.latency;
    };
    return (latency("  setup: {handover: 300 us}\n") - latency("")) / Duration{300'000};
  };
  EXPECT_EQ(handovers(staged + staged + down + down), 1);
  EXPECT_EQ(handovers(staged + down + staged + down), 3);
}

// Two copies of 1 ms on one engine: the first of them pays 0.1 ms, once; both ways, each queue does.
TEST(SetUp, TheFirstCopyOfAClassPaysForItsQueue) {
  const Topology machine = star(50, "  setup: {transfer: {up: {nominal: 0, first: 100 us}}}\n");
  const Planner& planner = planners()[0];
  const std::string up = "  - {from: mem0, to: gpu0, size: 6 MB}\n";
  EXPECT_EQ(plan(planner, make_batch(machine, up + up)).timeline.latency, Duration{2'100'000});
  const std::string down = "  - {from: gpu0, to: mem0, size: 6 MB}\n";
  EXPECT_EQ(plan(planner, make_batch(machine, down + down)).timeline.latency, Duration{2'000'000});
}

// Copies below 4 MB run at 2 GB/s at most: 3 MB take 1.5 ms in place of 0.5; 6 MB are not small.
TEST(SetUp, SmallCopiesHaveARateOfTheirOwn) {
  const Topology machine = star(50, "  setup: {transfer: {down: {nominal: 0, below: 4 MB, bandwidth: 2 GB/s}}}\n");
  for (const auto& [size, ms] : {std::pair("3 MB", 1.5), {"6 MB", 1.0}})
    expect_times("all_at_once", make_batch(machine, fmt::format("  - {{from: gpu0, to: mem0, size: {}}}", size)), ms,
                 {{0, ms, 0, 0}});
  expect_times("all_at_once", make_batch(machine, "  - {from: mem0, to: gpu0, size: 3 MB}"), 0.5, {{0, 0.5, 0, 0}});
}

// Beside a large copy over the memory's 3 GB/s, 1.5 GB/s each: below the small ones' rate, which then costs nothing. So
// 3 MB take 2 ms; the large one has moved 3 MB by then, and its other 6 MB take 2 ms at 3 GB/s.
TEST(SetUp, TheRateOfSmallCopiesCountsOnlyWhereTheyWouldBeFaster) {
  const Topology machine = star(3, "  setup: {transfer: {up: {nominal: 0, below: 4 MB, bandwidth: 2 GB/s}}}\n");
  const auto batch = make_batch(machine, R"(
  - {from: mem0, to: gpu0, size: 3 MB}
  - {from: mem0, to: gpu1, size: 9 MB}
)");
  expect_times("all_at_once", batch, 4, {{0, 2, 0, 0}, {0, 4, 0, 0}});
}

// While one sets up, the other has the link to itself: 0.2 ms set-up for both, so nothing changes but the start.
// With 6 GB/s for two: 6 MB at 3 each, 2 ms.
TEST(SetUp, TakesNoBandwidth) {
  const Topology machine = star(6, "  setup: {transfer: 200 us}\n");
  const auto batch = make_batch(machine, R"(
  - {from: mem0, to: gpu0, size: 6 MB}
  - {from: mem0, to: gpu1, size: 6 MB}
)");
  expect_times("all_at_once", batch, 2.2, {{0, 2.2, 0, 0}, {0, 2.2, 0, 0}});
}

// A transfer of nothing ends when it starts: no set-up, no share of any bandwidth; its kernel follows at once.
TEST(ZeroBytes, TakeNoTimeAndNoBandwidth) {
  const Topology machine = star(6, "  setup: {transfer: 1 ms}\n");
  const auto batch = make_batch(machine, R"(
  - {from: mem0, to: gpu0, size: 0, kernel: {time: 2 ms}}
  - {from: mem0, to: gpu1, size: 6 MB}
)");
  expect_times("all_at_once", batch, 2, {{0, 0, 0, 2}, {0, 2, 0, 0}});
  expect_times("bandwidth_allocation", batch, 2, {{0, 0, 0, 2}, {0, 2, 0, 0}});
  expect_times("completion_aligned", batch, 2, {{0, 0, 0, 2}, {0, 2, 0, 0}});
}

// The own route goes through the other way round: 2 GB/s where the machine's route has 6.
TEST(OwnRoute, IsTheOneThatIsTaken) {
  const Topology machine =
      test::make_machine(R"(  vertices: {mem0: {kind: memory}, hub0: {kind: hub}, hub1: {kind: hub}, gpu0: {kind: gpu}}
  links:
    - {from: mem0, to: hub0, bandwidth: 6 GB/s}
    - {from: hub0, to: gpu0, bandwidth: 6 GB/s}
    - {from: mem0, to: hub1, bandwidth: 2 GB/s}
    - {from: hub1, to: gpu0, bandwidth: 6 GB/s}
)");
  expect_times("all_at_once", make_batch(machine, "  - {from: mem0, to: gpu0, size: 12 MB}"), 2, {{0, 2, 0, 0}});
  const auto batch = make_batch(machine, "  - {from: mem0, to: gpu0, size: 12 MB, route: [mem0, hub1, gpu0]}");
  expect_times("all_at_once", batch, 6, {{0, 6, 0, 0}});
}

// 12 MB and 6 MB at the fixed half of 6 GB/s: 4 ms and 2 ms; the second's half stays unused after 2 ms.
TEST(BandwidthAllocation, ASharesLengthDoesNotDependOnTheOthers) {
  const Topology machine = star(6);
  const auto batch = make_batch(machine, R"(
  - {from: mem0, to: gpu0, size: 12 MB}
  - {from: mem0, to: gpu1, size: 6 MB}
)");
  expect_times("bandwidth_allocation", batch, 4, {{0, 4, 0, 0}, {0, 2, 0, 0}});
}

// Two streams to one GPU take turns on its engine, and each counts on the 6 GB/s: 3 for either. 12 / 3 = 4 ms, then
// 6 / 3 = 2 ms more.
TEST(BandwidthAllocation, SplitsOverAllStreamsAlsoThoseThatTakeTurns) {
  const Topology machine = star(50);
  const auto batch = make_batch(machine, R"(
  - {from: mem0, to: gpu0, size: 12 MB}
  - {from: mem0, to: gpu0, size: 6 MB}
)");
  expect_times("bandwidth_allocation", batch, 6, {{0, 4, 0, 0}, {4, 6, 0, 0}});
}

// Longest kernel first: c (4 ms), a (2 ms), b (none); 1 ms of transfer each. Kernels end at 5, 4 and -; all done at 5.
TEST(TimeDivision, TakesTurnsLongestKernelFirst) {
  const Topology machine = star(50);
  const auto batch = make_batch(machine, R"(
  - {name: a, from: mem0, to: gpu0, size: 6 MB, kernel: {time: 2 ms}}
  - {name: b, from: mem0, to: gpu1, size: 6 MB}
  - {name: c, from: mem0, to: gpu2, size: 6 MB, kernel: {time: 4 ms}}
)");
  expect_times("time_division", batch, 5, {{1, 2, 2, 4}, {2, 3, 0, 0}, {0, 1, 1, 5}});
}

// 2^53 bytes at 0.001 MB/s last longer than 2^63 ns: the answer is the longest time there is, not nonsense.
TEST(BatchSimulation, AbsurdLengthsEndAtTheLongestTime) {
  const Topology machine = test::make_machine(
      "  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}\n"
      "  links: [{from: mem0, to: gpu0, bandwidth: 0.001 MB/s}]\n");
  const auto batch = make_batch(machine, "  - {from: mem0, to: gpu0, size: 9007199254740992 B, kernel: {time: 1 s}}");
  for (const Planner& planner : planners()) EXPECT_EQ(plan(planner, batch).timeline.latency, Duration::max());
}

}  // namespace
}  // namespace tutti::internal
