// The methods that users ask for, rows that lie apart, and the machine's choice.
#include <gtest/gtest.h>

#include "model/batch/choose_methods.hpp"
#include "model/batch/compile_batch.hpp"
#include "model/planners/planner.hpp"
#include "model/transfer/transfer_method.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

/// Links of 10 GB/s. A copy takes 7 us before its bytes; by a kernel 2 us, at 5 GB/s; as an argument 1 us.
Topology machine_of_methods(const std::string& more = "") {
  return test::make_machine(
      R"(  vertices: {mem0: {kind: memory}, heap0: {kind: memory, pageable: true}, cpu0: {kind: cpu},
    gpu0: {kind: gpu}, gpu1: {kind: gpu}}
  links:
    - {from: mem0, to: cpu0, bandwidth: 100 GB/s, back: 100 GB/s}
    - {from: heap0, to: cpu0, bandwidth: 100 GB/s, back: 100 GB/s}
    - {from: cpu0, to: gpu0, bandwidth: 10 GB/s, back: 10 GB/s}
    - {from: cpu0, to: gpu1, bandwidth: 10 GB/s, back: 10 GB/s}
  peer_access: none
  setup:
    transfer:
      up: 7 us
      down: 7 us
      sm_up: {nominal: 2 us, bandwidth: 5 GB/s}
      sm_down: {nominal: 2 us, bandwidth: 5 GB/s}
      inline_up: 1 us
      mapped_up: {nominal: 500 ns, bandwidth: 1 GB/s}
      rows_up: {nominal: 8 us, gap: 50 B}
)" + more);
}

double length_of(const Topology& machine, const std::string& streams, Basis basis = Basis::Nominal) {
  BatchSimulation simulation;
  return predict(*find_planner("all_at_once"), test::make_batch(machine, streams), basis, simulation);
}

/// The methods that a batch's copies have in the end.
std::vector<std::string> methods_of(const Batch& batch) {
  std::vector<std::string> names;
  for (const CommandStream& stream : batch.streams())
    if (stream.transfer) names.emplace_back(find_route(batch.machine(), *stream.transfer).method.name);
  return names;
}

using Names = std::vector<std::string>;

// 10'000 bytes: 7 us + 1 us by an engine, 2 us + 2 us by a kernel, 0.5 us + 10 us by the host. 1000 bytes as an
// argument: 1 us + 0.1 us. The driver's call for many copies costs what the engine costs.
TEST(CopyMethods, HaveCostsAndRatesOfTheirOwn) {
  const Topology machine = machine_of_methods();
  const std::string copy = "  - {from: mem0, to: gpu0, size: 10 kB, method: ";
  EXPECT_DOUBLE_EQ(length_of(machine, copy + "engine}\n"), 8'000);
  EXPECT_DOUBLE_EQ(length_of(machine, copy + "batch}\n"), 8'000);
  EXPECT_DOUBLE_EQ(length_of(machine, copy + "sm}\n"), 4'000);
  EXPECT_DOUBLE_EQ(length_of(machine, copy + "mapped}\n"), 10'500);
  EXPECT_DOUBLE_EQ(length_of(machine, "  - {from: mem0, to: gpu0, size: 1 kB, method: inline}\n"), 1'100);
}

// A class without costs of its own has those of the engine's copies: mapped_down is not in the file.
TEST(CopyMethods, CostWhatAnEngineCostsWhereTheMachineDoesNotSay) {
  EXPECT_DOUBLE_EQ(length_of(machine_of_methods(), "  - {from: gpu0, to: mem0, size: 10 kB, method: mapped}\n"), 8'000);
}

// An engine and a kernel copy at once: 8 us and 4 us. They share the link: 10'000 bytes of the engine's copy begin at
// 7 us, when the kernel is done.
TEST(CopyMethods, MoveDataBesideTheEngines) {
  EXPECT_DOUBLE_EQ(length_of(machine_of_methods(),
                             "  - {from: mem0, to: gpu0, size: 10 kB}\n"
                             "  - {from: mem0, to: gpu0, size: 10 kB, method: sm}\n"),
                   8'000);
}

// On one link of 10 GB/s: both flow from 7 us on, the kernel's at 5 GB/s, so each has 5 GB/s. 100'000 bytes of the
// kernel's began at 2 us: at 7 us 75'000 are left, and both take 15 us; the engine's 25'000 left take 2.5 us alone.
TEST(CopyMethods, ShareALinkThatOtherwiseOneEngineHas) {
  EXPECT_DOUBLE_EQ(length_of(machine_of_methods(),
                             "  - {from: mem0, to: gpu0, size: 100 kB}\n"
                             "  - {from: mem0, to: gpu0, size: 100 kB, method: sm}\n"),
                   7'000 + 15'000 + 2'500);
}

// A kernel of 30 us holds the GPU, so the copy by a kernel, 4 us, comes before or after it; by an engine it runs
// beside.
TEST(CopyMethods, ByKernelsHoldTheGpu) {
  const Topology machine = machine_of_methods();
  const std::string kernel = "  - {kernel: {on: gpu0, time: 30 us}}\n";
  EXPECT_DOUBLE_EQ(length_of(machine, kernel + "  - {from: gpu0, to: mem0, size: 10 kB, method: sm}\n"), 34'000);
  EXPECT_DOUBLE_EQ(length_of(machine, kernel + "  - {from: gpu0, to: mem0, size: 10 kB, method: engine}\n"), 30'000);
  EXPECT_DOUBLE_EQ(length_of(machine, kernel + "  - {from: gpu1, to: mem0, size: 10 kB, method: sm}\n"), 30'000);
  EXPECT_DOUBLE_EQ(length_of(machine, kernel + "  - {from: mem0, to: gpu0, size: 1 kB, method: inline}\n"), 31'100);
}

// The kernel copies until 22 us; that of the other stream waits for it from 8 us on, whichever queues both are in: 42.
TEST(CopyMethods, ByKernelsHoldTheGpuHoweverStreamsAreMerged) {
  const Topology machine = machine_of_methods();
  const Batch drawn = test::make_batch(machine,
                                       "  - {from: mem0, to: gpu1, size: 10 kB}\n"
                                       "  - {from: mem0, to: gpu1, size: 10 kB}\n"
                                       "  - {from: mem0, to: gpu0, size: 100 kB, method: sm}\n"
                                       "  - {from: gpu1, to: mem0, size: 10 kB, kernel: {on: gpu0, time: 20 us}}\n");
  BatchSimulation simulation;
  for (const Merging merging : {Merging::On, Merging::Off, Merging::Transitive}) {
    const Batch batch = Batch::make(machine, {drawn.streams().begin(), drawn.streams().end()}, merging).value();
    EXPECT_DOUBLE_EQ(predict(*find_planner("all_at_once"), batch, Basis::Nominal, simulation), 42'000)
        << to_string(merging);
  }
}

// 1 MB costs 100 us more and 10 MB 190: 5.5 MB costs 145 us more, 20 MB 190 and nothing 0; all beside 7 us and its
// bytes at 10 GB/s.
TEST(CopyMethods, MayCostMoreBySize) {
  const Topology machine = test::make_machine(R"(  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}
  links: [{from: mem0, to: gpu0, bandwidth: 10 GB/s}]
  setup:
    transfer:
      up:
        nominal: 7 us
        sizes: [{size: 1 MB, more: 100 us}, {size: 10 MB, more: {nominal: 190 us, guaranteed: 290 us}}]
)");
  const auto copy = [&](const std::string& size, Basis basis = Basis::Nominal) {
    return length_of(machine, "  - {from: mem0, to: gpu0, size: " + size + "}\n", basis);
  };
  EXPECT_DOUBLE_EQ(copy("500 kB"), 7'000 + 50'000 + 50'000);
  EXPECT_DOUBLE_EQ(copy("5.5 MB"), 7'000 + 145'000 + 550'000);
  EXPECT_DOUBLE_EQ(copy("20 MB"), 7'000 + 190'000 + 2'000'000);
  EXPECT_DOUBLE_EQ(copy("5.5 MB", Basis::Guaranteed), 7'000 + 195'000 + 550'000);
}

// One thread of the host makes the mapped copies of a memory: two of 10.5 us, to different GPUs, take 21 us.
TEST(CopyMethods, MappedCopiesOfAMemoryFollowEachOther) {
  EXPECT_DOUBLE_EQ(length_of(machine_of_methods(),
                             "  - {from: mem0, to: gpu0, size: 10 kB, method: mapped}\n"
                             "  - {from: mem0, to: gpu1, size: 10 kB, method: mapped}\n"),
                   21'000);
}

/// Both directions of a GPU's link, of 10 GB/s each, have 20 GB/s together.
Topology machine_of_both_ways(const std::string& transfer) {
  return test::make_machine(R"(  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}
  links: [{from: mem0, to: gpu0, bandwidth: 10 GB/s, back: 10 GB/s}]
  shared: [{name: both, capacity: 20 GB/s, members: [{from: mem0, to: gpu0}, {from: gpu0, to: mem0}]}]
  setup:
    transfer:
      up: 7 us
      down: 7 us
)" + transfer);
}

// Both flow from 7 us on. With three times the weight the kernel's copy has 7.5 GB/s and the engine's 2.5: 75'000 and
// 25'000 bytes take 10 us each.
TEST(CopyMethods, ShareTheirLinkByWeight) {
  EXPECT_DOUBLE_EQ(length_of(machine_of_both_ways("      sm_up: {nominal: 7 us, weight: 3}\n"),
                             "  - {from: mem0, to: gpu0, size: 25 kB}\n"
                             "  - {from: mem0, to: gpu0, size: 75 kB, method: sm}\n"),
                   17'000);
}

// A byte of the kernel's copy counts as two of the other direction: each has 20 / 3 GB/s, and 200'000 bytes take 30 us.
// Alone, and beside an engine in its own direction, the load shows nowhere.
TEST(CopyMethods, TakeMoreOfWhatBothDirectionsShare) {
  const Topology machine = machine_of_both_ways("      sm_down: {nominal: 7 us, load: 2}\n");
  const std::string down = "  - {from: gpu0, to: mem0, size: 200 kB, method: sm}\n";
  EXPECT_NEAR(length_of(machine, down + "  - {from: mem0, to: gpu0, size: 200 kB}\n"), 37'000, 1e-6);
  EXPECT_NEAR(length_of(machine, down), 27'000, 1e-6);
  EXPECT_NEAR(length_of(machine, down + "  - {from: gpu0, to: mem0, size: 200 kB, method: engine}\n"), 47'000, 1e-6);
}

// Rows of 50 bytes have gaps of 50: 5 GB/s, half the weight, and with load 1 each of their bytes takes two of what both
// directions share: 2 x 0.5 x level + level = 20 GB/s, so beside 5 GB/s the other direction has its 10. With load 3 a
// byte takes four: 2 x level + level = 20, and rows have 3.33 GB/s, the other direction 6.67.
TEST(CopyMethods, ShortRowsTakeMoreOfWhatBothDirectionsShare) {
  const auto length = [](const std::string& load) {
    const Topology machine = machine_of_both_ways("      rows_up: {nominal: 7 us, gap: 50 B, load: " + load + "}\n");
    return length_of(machine,
                     "  - {from: mem0, to: gpu0, size: 50 kB, rows: 1000, pitch: 64 B}\n"
                     "  - {from: gpu0, to: mem0, size: 100 kB}\n");
  };
  EXPECT_NEAR(length("1"), 17'000, 1e-6);
  EXPECT_NEAR(length("3"), 22'000, 1e-6);
}

// At most, gaps of 150 bytes: rows of 50 bytes have 2.5 GB/s. Beside a copy of the other direction, of 20 GB/s
// together, their bytes take four each, and the other has its 10.
TEST(CopyMethods, RowsHaveTheirLongestGapsInBounds) {
  const Topology machine =
      machine_of_both_ways("      rows_up: {nominal: 7 us, gap: {nominal: 50 B, guaranteed: 150 B}}\n");
  const std::string rows = "  - {from: mem0, to: gpu0, size: 50 kB, rows: 1000, pitch: 64 B}\n";
  EXPECT_NEAR(length_of(machine, rows), 17'000, 1e-6);
  EXPECT_NEAR(length_of(machine, rows, Basis::Guaranteed), 27'000, 1);
  EXPECT_NEAR(length_of(machine, rows + "  - {from: gpu0, to: mem0, size: 200 kB}\n", Basis::Guaranteed), 27'000, 1);
}

// Every 64 B all rows of 50 may lie across lines, with gaps of 350 bytes: 40 us. Every 65 B they do not.
TEST(CopyMethods, RowsInStepWithTheMemoryHaveGapsOfTheirOwnInBounds) {
  const Topology machine =
      machine_of_both_ways("      rows_up: {nominal: 7 us, gap: {nominal: 50 B, guaranteed: 150 B, in_step: 350 B}}\n");
  const auto length = [&](const std::string& pitch) {
    return length_of(machine, "  - {from: mem0, to: gpu0, size: 50 kB, rows: 1000, pitch: " + pitch + "}\n",
                     Basis::Guaranteed);
  };
  EXPECT_NEAR(length("64 B"), 47'000, 1);
  EXPECT_NEAR(length("96 B"), 47'000, 1);
  EXPECT_NEAR(length("65 B"), 27'000, 1);
}

// 1,000 rows of 2 bytes, gaps of 8 bytes: 10 kB at 10 GB/s. Every 4 bytes an engine that reads them takes four times as
// long for each gap, one that writes does not.
TEST(CopyMethods, RowsThatAreReadCloseTogetherHaveLongerGaps) {
  const Topology machine =
      machine_of_both_ways("      rows_up: {nominal: 7 us, gap: 8 B}\n      rows_down: {nominal: 7 us, gap: 8 B}\n");
  const auto length = [&](const std::string& ends, const std::string& pitch) {
    return length_of(machine, "  - {" + ends + ", size: 2 kB, rows: 1000, pitch: " + pitch + "}\n");
  };
  EXPECT_NEAR(length("from: mem0, to: gpu0", "16 B"), 8'000, 1e-6);
  EXPECT_NEAR(length("from: mem0, to: gpu0", "4 B"), 10'400, 1e-6);
  EXPECT_NEAR(length("from: gpu0, to: mem0", "4 B"), 8'000, 1e-6);
}

/// @param all  GB/s
Topology machine_of_two_gpus(const std::string& all, const std::string& load) {
  return test::make_machine(R"(  vertices:
    mem0: {kind: memory}
    cpu0: {kind: cpu}
    gpu0: {kind: gpu}
    gpu1: {kind: gpu}
  links:
    - {from: mem0, to: cpu0, bandwidth: 100 GB/s, back: 100 GB/s}
    - {from: cpu0, to: gpu0, bandwidth: 10 GB/s, back: 10 GB/s}
    - {from: cpu0, to: gpu1, bandwidth: 10 GB/s, back: 10 GB/s}
  shared:
    - {name: all, capacity: )" +
                            all + R"( GB/s, members: [{from: mem0, to: cpu0}, {from: cpu0, to: mem0}]}
    - {name: own, capacity: 20 GB/s, members: [{from: cpu0, to: gpu0}, {from: cpu0, to: mem0}]}
  setup: {transfer: {up: 7 us, down: 7 us, rows_up: {nominal: 7 us, gap: 50 B, load: )" +
                            load + "}}}\n");
}

const std::string kShortRows = "  - {from: mem0, to: gpu0, size: 50 kB, rows: 1000, pitch: 64 B}\n";
const std::string kBesideAnotherGpu = kShortRows + "  - {from: mem0, to: gpu1, size: 100 kB}\n";

// The same rows beside a copy to another GPU, where all GPUs have 22 GB/s together, both ways: 5 GB/s of rows count as
// 10 there, for their gaps, and leave the other its 10. A bound counts the load, four for a byte: 2 x level + level =
// 22, and both take 100 / 7.33 us.
TEST(CopyMethods, ShortRowsLoadTheLinkOfTheirGpuAndOthersInBoundsAlone) {
  const Topology machine = machine_of_two_gpus("22", "3");
  EXPECT_NEAR(length_of(machine, kBesideAnotherGpu), 17'000, 1e-6);
  EXPECT_NEAR(length_of(machine, kBesideAnotherGpu, Basis::Guaranteed), 7000 + 300'000.0 / 22, 1);
  // On its own link: 4 x 0.5 x level + level = 20.
  EXPECT_NEAR(length_of(machine, kShortRows + "  - {from: gpu0, to: mem0, size: 100 kB}\n"), 22'000, 1e-6);
}

// A load of 0.2 is 1.2 for a byte on the link of the rows' GPU. Elsewhere each counts as two, in bounds as well: 2 x
// 0.5 x level + level = 12.
TEST(CopyMethods, ASmallLoadOfShortRowsShortensNoBoundOfOtherLinks) {
  const Topology machine = machine_of_two_gpus("12", "0.2");
  EXPECT_NEAR(length_of(machine, kBesideAnotherGpu), 7000 + 100'000.0 / 6, 1e-6);
  EXPECT_NEAR(length_of(machine, kBesideAnotherGpu, Basis::Guaranteed), 7000 + 100'000.0 / 6, 1);
}

TEST(CopyMethods, CostsOfRowsAndOfOthersAreNotMixedUp) {
  const auto error = [](const std::string& transfer) {
    return test::machine_error(
        "version: 1\nmachine:\n  name: m\n  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}\n"
        "  links: [{from: mem0, to: gpu0, bandwidth: 10 GB/s}]\n  setup: {transfer: {" +
        transfer + "}}\n");
  };
  EXPECT_EQ(error("rows_up: {nominal: 8 us, below: 100 B, bandwidth: 10 GB/s}"),
            "m.yaml:6:31: 'rows_up' has no 'bandwidth': rows have the rate of their route, and each one costs a 'gap' "
            "more; write that");
  EXPECT_EQ(error("sm_up: {nominal: 8 us, gap: 10 B}"),
            "m.yaml:6:50: 'gap' is a cost of rows; write it in 'rows_up' or 'rows_down'");
  EXPECT_EQ(error("nominal: 8 us, gap: 10 B"),
            "m.yaml:6:42: 'gap' is a cost of rows; write it in 'rows_up' or 'rows_down'");
  EXPECT_EQ(error("rows_up: {nominal: 8 us, gap: 2 MiB}"), "m.yaml:6:52: this gap is absurd; write 0 B to 1 MiB");
  EXPECT_EQ(error("rows_up: {nominal: 8 us, gap: {nominal: 8 B, guaranteed: 7 B}}"),
            "m.yaml:6:79: guaranteed 7 B is below nominal 8 B; guaranteed is what no row exceeds, so raise it");
  EXPECT_EQ(error("rows_up: {nominal: 8 us, gap: {nominal: 8 B, guaranteed: 9 B, in_step: 8 B}}"),
            "m.yaml:6:93: in_step 8 B is below guaranteed 9 B; rows that are in step with the memory are slowest, so "
            "raise it");
  EXPECT_EQ(error("sm_up: {nominal: 8 us, weight: 0}"),
            "m.yaml:6:53: '0' is not possible here; write a number from 0.001 to 1000");
}

// 100 rows of 50 bytes with gaps of 50: half the rate, 8 us + 5000 B / 5 GB/s. Rows of 200 bytes have four fifths of
// it. Without a pitch the rows are one piece.
TEST(CopyMethods, ShortRowsHaveALowerRate) {
  const Topology machine = machine_of_methods();
  EXPECT_DOUBLE_EQ(length_of(machine, "  - {from: mem0, to: gpu0, size: 5 kB, rows: 100, pitch: 64 B}\n"), 9'000);
  EXPECT_DOUBLE_EQ(length_of(machine, "  - {from: mem0, to: gpu0, size: 20 kB, rows: 100, pitch: 256 B}\n"), 10'500);
  EXPECT_DOUBLE_EQ(length_of(machine, "  - {from: mem0, to: gpu0, size: 5 kB, rows: 100, method: engine}\n"), 7'500);
}

TEST(CopyMethods, RowsReachOverTheirGaps) {
  const Topology machine = machine_of_methods();
  const Batch batch = test::make_batch(machine, "  - {from: mem0, to: gpu0, size: 5 kB, rows: 100, pitch: 64 B}\n");
  const Transfer& transfer = *batch.streams()[0].transfer;
  EXPECT_EQ(bytes_at(machine, transfer, transfer.from), Bytes{99 * 64 + 50});
  EXPECT_EQ(bytes_at(machine, transfer, transfer.to), Bytes{5000});
}

TEST(CopyMethods, AreRefusedWithWhatTheyMove) {
  const Topology machine = machine_of_methods();
  const auto error = [&](const std::string& stream) { return test::batch_error(machine, "  - {" + stream + "}\n"); };
  EXPECT_EQ(error("from: heap0, to: gpu0, size: 1 kB, method: sm"),
            "b.yaml:3:5: method 'sm' moves data between a memory that is not pageable and a GPU, without rows; leave "
            "'method' out here");
  EXPECT_EQ(error("from: mem0, to: gpu0, size: 1 kB, method: pageable"),
            "b.yaml:3:5: method 'pageable' moves data between pageable memory and a GPU, without rows; leave 'method' "
            "out here");
  EXPECT_EQ(error("from: mem0, to: gpu0, size: 4097 B, method: inline"),
            "b.yaml:3:5: method 'inline' moves up to 4 KiB from a memory to a GPU, without rows; leave 'method' out "
            "here");
  EXPECT_EQ(error("from: gpu0, to: mem0, size: 4 B, method: inline"),
            "b.yaml:3:5: method 'inline' moves up to 4 KiB from a memory to a GPU, without rows; leave 'method' out "
            "here");
  EXPECT_EQ(error("from: mem0, to: gpu0, size: 1001 B, rows: 10, pitch: 1 kB"),
            "b.yaml:3:5: 1.001 kB are not 10 equal rows; make 'size' a multiple of 'rows'");
  EXPECT_EQ(error("from: mem0, to: gpu0, size: 1000 B, rows: 10, pitch: 99 B"),
            "b.yaml:3:5: a row of 100 B does not fit into a pitch of 99 B; make 'pitch' at least the size of a row");
  EXPECT_EQ(error("from: gpu0, to: gpu1, size: 1000 B, rows: 10, pitch: 200 B"),
            "b.yaml:3:5: rows that lie apart are copied between a memory that is not pageable and a GPU; leave 'pitch' "
            "out here");
  EXPECT_NE(error("from: mem0, to: gpu0, size: 1 kB, method: dma").find("transfer method"), std::string::npos);
}

// ---- the machine's choice

/// The chosen methods of a batch as a file says it.
Names chosen(const Topology& machine, const std::string& streams) {
  return methods_of(choose_methods(test::make_batch(machine, streams), Basis::Nominal));
}

// Down: by an engine 7 us + n / 10, by a kernel 2 us + n / 5 ns: equal at 50'000 bytes. Up by stores of the host 0.5 us
// + n, as an argument, of up to 4 KiB, 1 us + n / 10 ns: equal at 555.6 bytes.
TEST(ChooseMethods, TakesTheFastestBySize) {
  const Topology machine = machine_of_methods();
  EXPECT_EQ(chosen(machine, "  - {from: gpu0, to: mem0, size: 4 B}\n"), (Names{"sm"}));
  EXPECT_EQ(chosen(machine, "  - {from: gpu0, to: mem0, size: 49 kB}\n"), (Names{"sm"}));
  EXPECT_EQ(chosen(machine, "  - {from: gpu0, to: mem0, size: 50 kB}\n"), (Names{"direct"}));  // a tie
  EXPECT_EQ(chosen(machine, "  - {from: gpu0, to: mem0, size: 51 kB}\n"), (Names{"direct"}));
  EXPECT_EQ(chosen(machine, "  - {from: mem0, to: gpu0, size: 8 B}\n"), (Names{"mapped"}));
  EXPECT_EQ(chosen(machine, "  - {from: mem0, to: gpu0, size: 555 B}\n"), (Names{"mapped"}));
  EXPECT_EQ(chosen(machine, "  - {from: mem0, to: gpu0, size: 556 B}\n"), (Names{"inline"}));
  EXPECT_EQ(chosen(machine, "  - {from: mem0, to: gpu0, size: 4 KiB}\n"), (Names{"inline"}));
  EXPECT_EQ(chosen(machine, "  - {from: mem0, to: gpu0, size: 4097 B}\n"), (Names{"sm"}));
}

// The first copy costs an engine 8 us, a lone one of up to 1 KiB goes with its command for 400 ns; two do not.
TEST(ChooseMethods, KnowsWhatCommandsCarry) {
  const Topology machine = test::changed(machine_of_methods(), [](MachineSpec& spec) {
    CopyCost& up = spec.setup.transfer.of(CopyKind::Up);
    up.each = {};
    up.first = Duration{8000};
    up.carried = {Bytes{1 << 10}, Duration{400}};
  });
  const std::string small = "  - {from: mem0, to: gpu0, size: 1 KiB}\n";
  EXPECT_EQ(chosen(machine, small), (Names{"direct"}));
  EXPECT_EQ(chosen(machine, "  - {from: mem0, to: gpu0, size: 1025 B}\n"), (Names{"inline"}));
  EXPECT_EQ(chosen(machine, small + small), (Names{"inline", "inline"}));
}

TEST(ChooseMethods, LeavesWhatWasAskedForAndWhatHasNoChoice) {
  const Topology machine = machine_of_methods();
  EXPECT_EQ(chosen(machine,
                   "  - {from: gpu0, to: mem0, size: 4 B, method: engine}\n"
                   "  - {from: gpu0, to: heap0, size: 4 B}\n"
                   "  - {from: gpu0, to: gpu1, size: 4 B}\n"
                   "  - {from: mem0, to: gpu1, size: 8 B, rows: 2, pitch: 8 B}\n"),
            (Names{"direct", "pageable", "staged", "direct"}));
}

// Beside a kernel of 30 us the engine's copy is over before it ends; a copy by a kernel would make the batch longer.
TEST(ChooseMethods, LooksAtTheWholeBatch) {
  const Topology machine = machine_of_methods();
  const std::string kernel = "  - {kernel: {on: gpu0, time: 30 us}}\n",
                    copy = "  - {from: gpu0, to: mem0, size: 4 B}\n";
  EXPECT_EQ(chosen(machine, kernel + copy), (Names{"direct"}));
  EXPECT_EQ(chosen(machine, "  - {kernel: {on: gpu1, time: 1 us}}\n" + copy), (Names{"sm"}));
}

// Kernels of others on the GPU: a copy by a kernel would wait behind them.
TEST(ChooseMethods, KeepsOffGpusOfOthers) {
  const Topology machine = machine_of_methods();
  const Batch batch = test::make_batch(machine, "  - {from: gpu0, to: mem0, size: 4 B}\n");
  EXPECT_EQ(methods_of(choose_methods(batch, Basis::Guaranteed, {{*machine.find_vertex("gpu1")}})), (Names{"sm"}));
  EXPECT_EQ(methods_of(choose_methods(batch, Basis::Guaranteed, {{*machine.find_vertex("gpu0")}})), (Names{"direct"}));
}

// Without a core for a thread that copies, and without a thread where a GPU leads jobs.
TEST(ChooseMethods, KeepsOffCoresOfOthers) {
  const Batch batch = test::make_batch(machine_of_methods(), "  - {from: mem0, to: gpu0, size: 8 B}\n");
  EXPECT_EQ(methods_of(choose_methods(batch, Basis::Guaranteed, {})), (Names{"mapped"}));
  EXPECT_EQ(methods_of(choose_methods(batch, Basis::Guaranteed, {.host = true})), (Names{"inline"}));
}

// On average the kernel is faster, at worst the engine.
TEST(ChooseMethods, DecidesByTheBasis) {
  const Topology machine = test::changed(machine_of_methods(), [](MachineSpec& spec) {
    spec.setup.transfer.of(CopyKind::SmDown).each.guaranteed = std::chrono::microseconds{20};
  });
  const Batch batch = test::make_batch(machine, "  - {from: gpu0, to: mem0, size: 4 B}\n");
  EXPECT_EQ(methods_of(choose_methods(batch, Basis::Nominal)), (Names{"sm"}));
  EXPECT_EQ(methods_of(choose_methods(batch, Basis::Guaranteed)), (Names{"direct"}));
}

// Results of two GPUs: both must be faster for the batch to be.
TEST(ChooseMethods, ChangesWhatIsFasterOnlyTogether) {
  EXPECT_EQ(chosen(machine_of_methods(),
                   "  - {from: gpu0, to: mem0, size: 4 B}\n"
                   "  - {from: gpu1, to: mem0, size: 8 B}\n"),
            (Names{"sm", "sm"}));
}

// A machine that was not calibrated for further methods has no choice; what is chosen is not written into files.
TEST(ChooseMethods, IsNotWritten) {
  const Topology plain = test::star(10, {10});
  EXPECT_EQ(chosen(plain, "  - {from: gpu0, to: mem0, size: 4 B}\n"), (Names{"direct"}));
  const Topology machine = machine_of_methods();
  const Batch batch =
      choose_methods(test::make_batch(machine, "  - {from: gpu0, to: mem0, size: 4 B}\n"), Basis::Nominal);
  EXPECT_EQ(spec_of(batch).streams[0].method, CopyMethod::Automatic);
  const Batch forced = test::make_batch(machine, "  - {from: gpu0, to: mem0, size: 4 B, method: sm}\n");
  EXPECT_EQ(spec_of(forced).streams[0].method, CopyMethod::Sm);
  EXPECT_EQ(spec_of(compile(spec_of(forced), machine).value()), spec_of(forced));
}

}  // namespace
}  // namespace tutti::internal
