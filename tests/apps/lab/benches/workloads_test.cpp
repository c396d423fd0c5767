#include "apps/lab/benches/workloads.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "model/planners/planner.hpp"
#include "model/sharing/compile_machine.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

constexpr Bytes kMegabyte{1'000'000};

Topology published_machine() {
  return load_machine(test::source_path("configs/machines/inspection-example.yaml")).value();
}

std::vector<Workload> workloads(const Topology& machine, std::string_view only, WorkloadOptions options = {}) {
  return make_workloads(machine, options, only).value();
}

std::vector<std::int64_t> sizes_of(const Batch& batch) {
  std::vector<std::int64_t> sizes;
  for (const CommandStream& stream : batch.streams())
    if (stream.transfer) sizes.push_back(stream.transfer->size.count);
  return sizes;
}

std::string error_of(const Topology& machine, std::string_view only = "") {
  const auto made = make_workloads(machine, {}, only);
  return made ? "fine" : made.error().message;
}

// 320 MB in parts of 1 : 4 : 4 : 1. Links of the GPUs carry 6 GB/s, so kernels take in 6 x 10/6 = 10 GB/s: 32 MB in
// 3.2 ms, 128 MB in 12.8 ms. That is the published example, whose planners' figures are 44.8, 76.8 and 56.5333 ms,
// here with a few nanoseconds of rounding.
TEST(Workloads, ExampleIsThePublishedOneOnItsMachine) {
  const Topology machine = published_machine();
  const auto made = workloads(machine, "example", {Bytes{320 * kMegabyte.count}, 1});
  ASSERT_EQ(made.size(), 1U);
  const Batch& batch = made[0].batches.at(0);
  EXPECT_EQ(sizes_of(batch), (std::vector<std::int64_t>{32'000'000, 128'000'000, 128'000'000, 32'000'000}));
  EXPECT_EQ(batch.streams()[0].kernel->time, Duration{3'200'000});
  EXPECT_EQ(batch.streams()[1].kernel->time, Duration{12'800'000});
  const auto ms = [&](std::string_view planner) { return to_ms(plan(*find_planner(planner), batch).timeline.latency); };
  EXPECT_NEAR(ms("completion_aligned"), 44.8, 1e-5);
  EXPECT_NEAR(ms("bandwidth_allocation"), 76.8, 1e-5);
  EXPECT_NEAR(ms("time_division"), 56.5333333, 1e-5);
}

// Three GPUs have 1 : 4 : 4 of 1000 B: up to byte 1000/9 = 111, then up to 5000/9 = 555, then the rest.
TEST(Workloads, PartsAddUp) {
  const auto made = workloads(test::star(8, {6, 6, 6}), "example", {Bytes{1000}, 1});
  EXPECT_EQ(sizes_of(made[0].batches[0]), (std::vector<std::int64_t>{111, 444, 445}));
}

// 100 MB in parts of 40, 10, 10, 40 percent, each up with its kernel and down without one.
TEST(Workloads, WaferGoesBothWays) {
  const Topology machine = published_machine();
  const Batch batch = workloads(machine, "wafer", {Bytes{100 * kMegabyte.count}, 1})[0].batches.at(0);
  EXPECT_EQ(sizes_of(batch), (std::vector<std::int64_t>{40'000'000, 40'000'000, 10'000'000, 10'000'000, 10'000'000,
                                                        10'000'000, 40'000'000, 40'000'000}));
  for (std::size_t s = 0; s < batch.streams().size(); ++s) {
    const CommandStream& stream = batch.streams()[s];
    const bool up = s % 2 == 0;
    EXPECT_EQ(machine.vertex(up ? stream.transfer->from : stream.transfer->to).name, "mem0");
    EXPECT_EQ(stream.kernel.has_value(), up);
  }
}

// At the usual size the published figures: 3.69 GB are 922.5 MB for each of four GPUs, and a boundary is 295.2 MB. Four
// slabs have three boundaries, each copied both ways. Moved in all: twice 3.69 GB, and 100 times 6 x 295.2 MB: 184.5
// GB.
TEST(Workloads, DomainHasThePublishedSizes) {
  const Workload domain = workloads(published_machine(), "domain").at(0);
  ASSERT_EQ(domain.batches.size(), 4U);
  EXPECT_EQ(sizes_of(domain.batches[0]), std::vector<std::int64_t>(4, 922'500'000));
  EXPECT_EQ(sizes_of(domain.batches[1]), std::vector<std::int64_t>{});
  EXPECT_EQ(sizes_of(domain.batches[2]), std::vector<std::int64_t>(6, 295'200'000));
  EXPECT_EQ(sizes_of(domain.batches[3]), std::vector<std::int64_t>(4, 922'500'000));
  EXPECT_EQ(domain.moved(), Bytes{184'500'000'000});
  EXPECT_EQ(domain.batches[1].streams()[0].kernel->time, std::chrono::milliseconds{1});
  EXPECT_EQ(domain.batches[2].streams()[0].kernel->time, std::chrono::milliseconds{23});
}

// Scatter, 100 x 2 batches, gather. Each is issued while the one before runs, so it must be another one.
TEST(Workloads, DomainExchangesAHundredTimes) {
  const Workload domain = workloads(published_machine(), "domain").at(0);
  EXPECT_EQ(domain.order.size(), 202U);
  EXPECT_EQ(std::count(domain.order.begin(), domain.order.end(), 2U), 100);
  EXPECT_EQ(std::adjacent_find(domain.order.begin(), domain.order.end()), domain.order.end());
  EXPECT_EQ(domain.order.back(), 3U);
}

using Ends = std::set<std::pair<std::string, std::string>>;

Ends ends_of(const Topology& machine, const Batch& batch) {
  Ends ends;
  for (const CommandStream& stream : batch.streams())
    if (stream.transfer)
      ends.emplace(machine.vertex(stream.transfer->from).name, machine.vertex(stream.transfer->to).name);
  return ends;
}

// Slabs in a row: the first and the last GPU have one neighbour. All compute beside the exchange, and none before it
// but the boundary points.
TEST(Workloads, DomainExchangesBetweenNeighbouringGpusBesideTheInnerPoints) {
  const Topology machine = published_machine();
  const Workload domain = workloads(machine, "domain").at(0);
  EXPECT_EQ(ends_of(machine, domain.batches[1]), Ends{});
  EXPECT_EQ(
      ends_of(machine, domain.batches[2]),
      (Ends{
          {"gpu0", "gpu1"}, {"gpu1", "gpu0"}, {"gpu1", "gpu2"}, {"gpu2", "gpu1"}, {"gpu2", "gpu3"}, {"gpu3", "gpu2"}}));
  std::size_t inner = 0;
  for (const CommandStream& stream : domain.batches[2].streams()) inner += stream.kernel ? 1U : 0U;
  EXPECT_EQ(inner, 4U);
}

// Half the usual image, half of everything: 3.69 GB / 2 over four GPUs.
TEST(Workloads, SizesAreInProportionToTheImage) {
  const Bytes half{WorkloadOptions::kUsualImage.count / 2};
  EXPECT_EQ(sizes_of(workloads(published_machine(), "domain", {half, 1})[0].batches[0])[0], 461'250'000);
}

// Of four GPUs each has three others, one next and two neighbours: 12 and 4 copies of 960 B in all, 8 of the published
// boundaries, 295.2 MB.
TEST(Workloads, GpusExchangeWithAllTheNextOrBothNeighbours) {
  const Topology machine = load_machine(test::source_path("configs/machines/h200x4.yaml")).value();
  const auto exchange = [&](std::string_view kind) { return workloads(machine, kind, {Bytes{960}, 1}).at(0); };
  EXPECT_EQ(sizes_of(exchange("all-to-all").batches[0]), std::vector<std::int64_t>(12, 80));
  EXPECT_EQ(ends_of(machine, exchange("all-to-all").batches[0]).size(), 12U);
  EXPECT_EQ(sizes_of(exchange("ring").batches[0]), std::vector<std::int64_t>(4, 240));
  EXPECT_EQ(ends_of(machine, exchange("ring").batches[0]),
            (Ends{{"gpu0", "gpu1"}, {"gpu1", "gpu2"}, {"gpu2", "gpu3"}, {"gpu3", "gpu0"}}));
  const Workload halo = workloads(machine, "halo").at(0);
  EXPECT_EQ(sizes_of(halo.batches[0]), std::vector<std::int64_t>(8, 36'900'000));
  EXPECT_EQ(ends_of(machine, halo.batches[0]), (Ends{{"gpu0", "gpu1"},
                                                     {"gpu1", "gpu0"},
                                                     {"gpu1", "gpu2"},
                                                     {"gpu2", "gpu1"},
                                                     {"gpu2", "gpu3"},
                                                     {"gpu3", "gpu2"},
                                                     {"gpu3", "gpu0"},
                                                     {"gpu0", "gpu3"}}));
}

TEST(Workloads, RandomBatchesAreWithinTheirBounds) {
  const Topology machine = published_machine();
  int up = 0, kernels = 0, between_gpus = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const auto made = workloads(machine, "random", {WorkloadOptions::kUsualImage, seed});
    ASSERT_EQ(made.size(), 20U);
    for (const Workload& workload : made) {
      const auto streams = workload.batches.at(0).streams();
      EXPECT_GE(streams.size(), 2U);
      EXPECT_LE(streams.size(), 8U);
      std::set<std::pair<VertexId, VertexId>> routes;
      for (const CommandStream& stream : streams) {
        EXPECT_TRUE(routes.emplace(stream.transfer->from, stream.transfer->to).second);  // a copy must not meet another
        EXPECT_GE(stream.transfer->size, Bytes{4LL << 20});
        EXPECT_LE(stream.transfer->size, Bytes{512LL << 20});
        const bool goes_up = machine.vertex(stream.transfer->from).name == "mem0";
        up += goes_up ? 1 : 0;
        between_gpus += !goes_up && machine.vertex(stream.transfer->to).name != "mem0" ? 1 : 0;
        if (!stream.kernel) continue;
        ++kernels;
        EXPECT_TRUE(goes_up);
        EXPECT_GE(stream.kernel->time, std::chrono::microseconds{200});
        EXPECT_LE(stream.kernel->time, std::chrono::milliseconds{5});
      }
      EXPECT_EQ(machine.vertex(streams[0].transfer->from).name, "mem0");
      EXPECT_EQ(machine.vertex(streams[1].transfer->to).name, "mem0");
    }
  }
  EXPECT_GT(between_gpus, 0);
  EXPECT_NEAR(static_cast<double>(kernels) / up, 0.5, 0.1);
}

TEST(Workloads, RandomBatchesFollowTheSeed) {
  const Topology machine = published_machine();
  const auto batches = [&](std::uint64_t seed) {
    return workloads(machine, "random-3", {WorkloadOptions::kUsualImage, seed})[0].batches;
  };
  EXPECT_EQ(batches(1), batches(1));
  EXPECT_NE(batches(1), batches(2));
}

// On four GPUs there are eight ways, so no two of at most 8 copies share one. Sizes are log-uniform: half are below
// 2^-3 of an image.
TEST(Workloads, CopiesGoBothWaysAndHaveKernelsWhereThatIsAsked) {
  const Topology machine = published_machine();
  const Bytes image = WorkloadOptions::kUsualImage;
  int copies = 0, small = 0, up = 0, kernels = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    for (const std::string_view kind : {"copies", "copies-and-kernels"})
      for (const Workload& workload : workloads(machine, kind, {image, seed})) {
        const auto streams = workload.batches[0].streams();
        EXPECT_GE(streams.size(), 4U);
        EXPECT_LE(streams.size(), 8U);
        std::set<std::pair<VertexId, VertexId>> routes;
        for (const CommandStream& stream : streams) {
          ++copies;
          EXPECT_TRUE(routes.insert({stream.transfer->from, stream.transfer->to}).second);
          EXPECT_GE(stream.transfer->size.count, image.count / 64);
          EXPECT_LE(stream.transfer->size.count, image.count);
          small += stream.transfer->size.count < image.count / 8 ? 1 : 0;
          const bool goes_up = machine.vertex(stream.transfer->from).kind == VertexKind::Memory;
          up += goes_up && kind == "copies-and-kernels" ? 1 : 0;
          if (!stream.kernel) continue;
          ++kernels;
          EXPECT_TRUE(goes_up && kind == "copies-and-kernels");
          EXPECT_LE(stream.kernel->time, std::chrono::milliseconds{2});
        }
      }
  EXPECT_NEAR(static_cast<double>(small) / copies, 0.5, 0.05);
  EXPECT_NEAR(static_cast<double>(kernels) / up, 0.5, 0.05);
}

TEST(Workloads, NothingGoesBetweenGpusThatDoNotReachEachOther) {
  const Topology machine = published_machine().without_peer_access();
  for (const Workload& workload : workloads(machine, "random"))
    for (const CommandStream& stream : workload.batches[0].streams())
      EXPECT_TRUE(machine.vertex(stream.transfer->from).name == "mem0" ||
                  machine.vertex(stream.transfer->to).name == "mem0");
}

TEST(Workloads, ExchangesNeedGpusThatReachEachOther) {
  EXPECT_EQ(error_of(published_machine().without_peer_access(), "ring"),
            "--only: 'ring' needs GPUs that reach each other; those of 'inspection-example' do not");
}

// One GPU has two ways, up and down, and nobody to exchange with.
TEST(Workloads, OneGpuIsEnough) { EXPECT_EQ(workloads(test::star(8, {6}), "").size(), 23U); }

TEST(Workloads, NamesChooseAKindOrOneOfIt) {
  const Topology machine = published_machine();
  EXPECT_EQ(workloads(machine, "").size(), 26U);  // 6 and 20; copies are when asked for
  EXPECT_EQ(workloads(machine, "copies").size(), 20U);
  EXPECT_EQ(workloads(machine, "copies-and-kernels-3").size(), 1U);
  ASSERT_EQ(workloads(machine, "random-7").size(), 1U);
  EXPECT_EQ(workloads(machine, "random-7")[0].kind, "random");
  EXPECT_EQ(error_of(machine, "wafers"), "--only: there is no workload 'wafers'; did you mean 'wafer'?");
}

TEST(Workloads, NeedAMemoryAndGpusWithAWayUpAndDown) {
  EXPECT_EQ(error_of(test::make_machine("  vertices: {mem0: {kind: memory}}\n  links: []")),
            "the workloads need a memory and a GPU; 'm' is a machine without");
  EXPECT_EQ(error_of(test::make_machine("  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}\n"
                                        "  links: [{from: mem0, to: gpu0, bandwidth: 8 GB/s}]")),
            "the workloads copy to and from every GPU; 'gpu0' lacks a way to or from 'mem0'");
}

}  // namespace
}  // namespace tutti::internal
