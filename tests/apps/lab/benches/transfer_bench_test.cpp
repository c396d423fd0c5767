#include "apps/lab/benches/transfer_bench.hpp"

#include <atomic>
#include <chrono>
#include <set>

#include <gtest/gtest.h>

#include "apps/lab/measuring/bus_rates.hpp"
#include "model/sharing/compile_machine.hpp"
#include "runtime/sim/sim_backend.hpp"
#include "tests/runtime/small_machine.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

using std::chrono::microseconds;

/// A simulated machine on the virtual clock.
struct Bench {
  explicit Bench(Topology of) : machine(std::move(of)) {}

  Topology machine;
  KernelRegistry kernels = KernelRegistry::with_builtins();
  VirtualClock clock;
  SimBackend backend{machine, kernels, clock};
  Executor executor{machine, backend, clock};
  std::atomic<bool> interrupted{false};
};

Topology shipped(const std::string& name) {
  return load_machine(test::source_path("configs/machines/" + name + ".yaml")).value();
}

TransferBench bench_of(const Bench& bench, std::vector<Bytes> sizes, std::size_t samples) {
  TransferBench asked;
  asked.ends = CopyEnds::of(bench.machine).value();
  asked.lines = copy_lines(asked.ends);
  asked.sizes = std::move(sizes);
  asked.limit = SampleLimit::wanting(samples);
  asked.slices = asked.passes = 1;
  asked.interrupted = &bench.interrupted;
  return asked;
}

TEST(CopyEnds, AreTheFirstOfEachKind) {
  const CopyEnds ends = CopyEnds::of(test::small_machine()).value();
  EXPECT_EQ(ends.gpu, "gpu0");
  EXPECT_EQ(ends.pinned, "mem0");
  EXPECT_EQ(ends.pageable, "heap0");
  EXPECT_EQ(CopyEnds::of(shipped("two-sockets")).value().pageable, "");
}

TEST(CopyEnds, NeedAGpu) {
  const Topology machine = test::make_machine(
      "  vertices: {mem0: {kind: memory}, cpu0: {kind: cpu}}\n  links: [{from: mem0, to: cpu0, bandwidth: 1 GB/s}]\n");
  const auto ends = CopyEnds::of(machine);
  ASSERT_FALSE(ends.has_value());
  EXPECT_EQ(ends.error().code, ErrorCode::InvalidInput);
  EXPECT_NE(ends.error().message.find("has no GPU"), std::string::npos);
}

TEST(CopyMethods, HaveDifferentNames) {
  std::set<std::string_view> names;
  for (const MeasuredMethod& method : measured_methods()) names.insert(method.name);
  EXPECT_EQ(names.size(), measured_methods().size());
}

TEST(CopyLines, AreOnlyThoseOfTheMachine) {
  std::vector<std::string> names;
  for (const CopyLine& line : copy_lines(CopyEnds::of(shipped("two-sockets")).value())) names.push_back(line.name());
  EXPECT_EQ(names, (std::vector<std::string>{"engine up", "batch up", "sm up", "inline up", "mapped up", "automatic up",
                                             "engine down", "batch down", "sm down", "mapped down", "automatic down"}));
}

// 9 us and 55 kB at 55 GB/s, 1 us; 150 us and 49 kB at 49 GB/s. The virtual clock adds nothing.
TEST(TimeCopies, TakesWhatTheMachineSays) {
  Bench bench(shipped("pageable"));
  TransferBench asked = bench_of(bench, {Bytes{55'000}, Bytes{49'000}}, 3);
  std::erase_if(asked.lines,
                [](const CopyLine& line) { return line.method->name != "engine" && line.method->name != "pageable"; });
  const auto timed = time_copies(bench.executor, asked, MeasuringPlace::virtual_time(), {LoadKind::None});
  ASSERT_TRUE(timed.has_value()) << timed.error().text();
  ASSERT_EQ(timed->loads.size(), 1U);
  const auto& times = timed->loads[0].times;  // lines: engine up, pageable up, engine down, pageable down
  EXPECT_EQ(times[0].members[0], std::vector<Duration>(3, microseconds{10}));
  EXPECT_EQ(times[1].members[1], std::vector<Duration>(3, microseconds{151}));
  EXPECT_EQ(times[0].members[2], std::vector<Duration>(3, microseconds{10}));
  EXPECT_TRUE(timed->refusals.empty());
}

// 1000 samples may take 300 ms; a copy of 60 MB at 1 byte/ns takes 60 ms, and the pause before it a quarter of that
// (the first one 0.1 ms). Ten are taken all the same.
TEST(TimeCopies, TakesFewerSamplesOfWhatTakesLong) {
  Bench bench(test::small_machine());
  TransferBench asked = bench_of(bench, {Bytes{1000}, Bytes{60'000'000}}, 1000);
  std::erase_if(asked.lines, [](const CopyLine& line) { return line.method->name != "engine"; });
  const auto timed = time_copies(bench.executor, asked, MeasuringPlace::virtual_time(), {LoadKind::None});
  ASSERT_TRUE(timed.has_value()) << timed.error().text();
  EXPECT_EQ(timed->loads[0].times[0].rounds(), 1000U);
  EXPECT_EQ(timed->loads[0].times[1].rounds(), 10U);
}

// Parts of the samples in each pass and slice add up to all of them.
TEST(TimeCopies, SlicesAddUp) {
  Bench bench(test::small_machine());
  TransferBench asked = bench_of(bench, {Bytes{1000}, Bytes{2000}}, 100);
  asked.slices = 3;
  asked.passes = 7;
  const auto timed =
      time_copies(bench.executor, asked, MeasuringPlace::virtual_time(), {LoadKind::None, LoadKind::None});
  ASSERT_TRUE(timed.has_value());
  for (const LoadedTimes& loaded : timed->loads)
    for (const auto& of_size : loaded.times)
      for (const auto& samples : of_size.members) EXPECT_EQ(samples.size(), 100U);
}

TEST(TimeCopies, EndsWhereItIsInterrupted) {
  Bench bench(test::small_machine());
  bench.interrupted = true;
  const auto timed =
      time_copies(bench.executor, bench_of(bench, {Bytes{1000}}, 3), MeasuringPlace::virtual_time(), {LoadKind::None});
  ASSERT_FALSE(timed.has_value());
  EXPECT_NE(timed.error().message.find("interrupted"), std::string::npos);
}

// A batch that the machine refuses is left out, and the others are timed; where all are refused, that is the error.
TEST(InterleavedRuns, LeaveOutWhatIsRefused) {
  Bench bench(test::small_machine());
  const BatchSpec fine{.streams = {{.name = "a", .from = "mem0", .to = "gpu0", .size = SizeSpec(Bytes{1000})}}};
  const BatchSpec wrong{.streams = {{.name = "a", .from = "mem0", .to = "gpu9", .size = SizeSpec(Bytes{1000})}}};
  auto runs = InterleavedRuns::make(bench.executor, {{wrong, fine}, {wrong}});
  ASSERT_TRUE(runs.has_value()) << runs.error().text();
  ASSERT_EQ(runs->refusals().size(), 2U);
  EXPECT_NE(runs->refusals()[1].error.text().find("gpu9"), std::string::npos);
  auto times = runs->no_times();
  for (const std::size_t group : {0U, 1U})
    ASSERT_TRUE(runs->time(group, SampleLimit::wanting(5), bench.interrupted, times[group]).has_value());
  EXPECT_TRUE(times[0].members[0].empty());
  EXPECT_EQ(times[0].members[1], std::vector<Duration>(5, microseconds{1}));
  EXPECT_EQ(times[1].rounds(), 0U);
  EXPECT_FALSE(InterleavedRuns::make(bench.executor, {{wrong}}).has_value());
}

TEST(LinePairs, AreEachWithItselfAndLaterOnes) {
  EXPECT_EQ(line_pairs(3).size(), 6U);
  EXPECT_EQ(line_pairs(14).size(), 105U);
}

TEST(PairSizes, AreAFewOfTheRange) {
  EXPECT_EQ(pair_sizes(doubled_sizes(Bytes{4}, Bytes{256LL << 20})),
            (std::vector<Bytes>{Bytes{4 << 10}, Bytes{64 << 10}, Bytes{1 << 20}, Bytes{16 << 20}}));
  EXPECT_EQ(pair_sizes({Bytes{4}, Bytes{8}}), std::vector<Bytes>{Bytes{8}});
}

// Two copies up of 1000 B take turns at the engine, 2 us; one up and one down run side by side, 1 us.
TEST(TimePairs, ShowsWhatSharesAnEngine) {
  Bench bench(test::small_machine());
  TransferBench asked = bench_of(bench, {Bytes{1000}}, 2);
  std::erase_if(asked.lines, [](const CopyLine& line) { return line.method->name != "engine"; });
  const auto times = time_pairs(bench.executor, asked, MeasuringPlace::virtual_time(), {Bytes{1000}});
  ASSERT_TRUE(times.has_value()) << times.error().text();
  const auto& pairs = (*times)[0].members;  // up and up, up and down, down and down
  EXPECT_EQ(pairs[0], std::vector<Duration>(2, microseconds{2}));
  EXPECT_EQ(pairs[1], std::vector<Duration>(2, microseconds{1}));
  EXPECT_EQ(pairs[2], std::vector<Duration>(2, microseconds{2}));
}

// Each memory with each GPU, with both, and both GPUs with the near and the far memory.
TEST(BusSets, HaveNearAndFarMemory) {
  const Topology machine = shipped("two-sockets");
  const auto sets = bus_sets(machine);
  ASSERT_EQ(sets.size(), 8U);
  const auto id = [&](std::string_view name) { return machine.find_vertex(name).value(); };
  EXPECT_EQ(sets[6].memory, "nearest");
  EXPECT_EQ(sets[6].flows, (std::vector<BusFlow>{{id("mem0"), id("gpu0")}, {id("mem1"), id("gpu1")}}));
  EXPECT_EQ(sets[7].memory, "farthest");
  EXPECT_EQ(sets[7].flows, (std::vector<BusFlow>{{id("mem1"), id("gpu0")}, {id("mem0"), id("gpu1")}}));
}

// One memory: four GPUs alone, then two, three and four of them.
TEST(BusSets, HaveTheFirstTwoToAllGpus) {
  const auto sets = bus_sets(shipped("h200x4"));
  ASSERT_EQ(sets.size(), 7U);
  EXPECT_EQ(sets[3].flows.size(), 1U);
  EXPECT_EQ(sets[4].flows.size(), 2U);
  EXPECT_EQ(sets[6].flows.size(), 4U);
}

// [VMS14] 2.4: 6 GB/s to each GPU behind one link of 8 GB/s in each direction. One GPU has 6 up, 12 both ways; two have
// 8 of 12, 66.7 %, and 16 of 24.
TEST(MeasureBus, ShowsWhatGpusShare) {
  Bench bench(shipped("inspection-example"));
  const auto sets = bus_sets(bench.machine);
  const auto rates = measure_bus(bench.executor, sets, {Bytes{1 << 20}, 1}, bench.interrupted);
  ASSERT_TRUE(rates.has_value()) << rates.error().text();
  EXPECT_NEAR((*rates)[0].gbps[0], 6, 1e-3);
  EXPECT_NEAR((*rates)[0].gbps[2], 12, 1e-3);
  EXPECT_NEAR((*rates)[4].gbps[0], 8, 1e-3);
  const auto percent = percent_of_flows_alone(sets, *rates, 4);
  EXPECT_NEAR(percent[0], 100 * 8 / 12.0, 0.02);
  EXPECT_NEAR(percent[2], 100 * 16 / 24.0, 0.02);
}

// Threads in every place do their work; what it throws reaches the caller.
TEST(MeasuringPlace, DoesItsWork) {
  for (const MeasuringPlace& place : {MeasuringPlace::best(MeasuringPlace::kPriority), MeasuringPlace::ordinary()}) {
    int done = 0;
    place.run([&] { ++done; });
    place.beside([&] { ++done; });
    EXPECT_EQ(done, 2);
    EXPECT_THROW(place.run([] { throw std::bad_alloc(); }), std::bad_alloc);
  }
}

// Where SCHED_FIFO is refused there is a note, and only there.
TEST(MeasuringPlace, SaysWhatIsRefused) {
  const MeasuringPlace place = MeasuringPlace::best(MeasuringPlace::kPriority);
  EXPECT_EQ(place.note().empty(), place.scheduling() == Scheduling::Fifo);
  EXPECT_TRUE(MeasuringPlace::ordinary().note().empty());
}

}  // namespace
}  // namespace tutti::internal
