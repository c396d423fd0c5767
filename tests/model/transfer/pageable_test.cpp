#include "model/transfer/pageable.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/batch/batch_simulation.hpp"
#include "model/planners/planner.hpp"
#include "model/transfer/double_queuing.hpp"
#include "tests/support/random.hpp"
#include "tests/support/slow_simulation.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

/// A link of 12 GB/s; four threads that copy 4 GB/s each; memory of 30 GB/s, of which a byte of pageable memory takes
/// three, and one of pinned memory one.
/// @param memory  of the host
/// @param up      costs of a copy up
Topology station(const std::string& memory = "30 GB/s", const std::string& up = "100 us") {
  return test::make_machine(R"(  vertices:
    mem0: {kind: memory}
    cpu0: {kind: cpu, cores: 8}
    gpu0: {kind: gpu}
    gpu1: {kind: gpu}
    heap0: {kind: memory, pageable: true, producers: 4, buffer: 1 MiB}
  links:
    - {from: mem0, to: cpu0, bandwidth: 64 GB/s, back: 64 GB/s}
    - {from: heap0, to: cpu0, bandwidth: 16 GB/s, back: 14 GB/s}
    - {from: cpu0, to: gpu0, bandwidth: 12 GB/s, back: 12 GB/s}
    - {from: cpu0, to: gpu1, bandwidth: 12 GB/s, back: 12 GB/s}
  shared:
    - name: host-memory
      capacity: )" + memory +
                            R"(
      members:
        - {from: mem0, to: cpu0}
        - {from: cpu0, to: mem0}
        - {from: heap0, to: cpu0, cost: 3}
        - {from: cpu0, to: heap0, cost: 3}
  peer_access: none
  setup: {transfer: {up: 10 us, down: 12 us, pageable_up: )" +
                            up +
                            R"(, pageable_down: 80 us}}
)");
}

Duration latency(const Topology& machine, std::vector<std::pair<std::string_view, std::string_view>> copies) {
  std::vector<CommandStream> streams;
  for (const auto& [from, to] : copies)
    streams.push_back({fmt::format("s{}", streams.size()),
                       Transfer{*machine.find_vertex(from), *machine.find_vertex(to), Bytes{12'000'000}, {}, {}},
                       {},
                       {}});
  return plan(planners().front(), Batch::make(machine, streams).value()).timeline.latency;
}

TEST(Pageable, IsAMethodOfItsOwnOnTheEngineOfTheGpu) {
  const Topology machine = station();
  const Transfer up{*machine.find_vertex("heap0"), *machine.find_vertex("gpu0"), Bytes{1}, {}, {}};
  const RouteView route = find_route(machine, up);
  EXPECT_EQ(route.method.name, "pageable");
  EXPECT_TRUE(route.method.pageable);
  EXPECT_EQ(route.kind, CopyKind::PageableUp);
  EXPECT_EQ(route.engines[0], machine.engine_in(*machine.find_vertex("gpu0")));
  const Transfer pinned{*machine.find_vertex("mem0"), *machine.find_vertex("gpu0"), Bytes{1}, {}, {}};
  EXPECT_EQ(find_route(machine, pinned).method.name, "direct");
}

// min(12, 4 x 4, 30 / 3) = 10 GB/s: 12 MB take 1.2 ms, and 0.1 ms of set-up. With memory of 60 GB/s the link's 12 GB/s
// are left: 1.1 ms. Down the threads do 14 GB/s, so the same link limits it: 1 ms and 0.08.
TEST(Pageable, TakesAsLongAsThePublishedConditionsSay) {
  EXPECT_EQ(double_queuing_rate({GBps{12}, GBps{4}, GBps{30}}, 4), GBps{10});
  EXPECT_EQ(latency(station(), {{"heap0", "gpu0"}}), Duration{1'300'000});
  EXPECT_EQ(latency(station("60 GB/s"), {{"heap0", "gpu0"}}), Duration{1'100'000});
  EXPECT_EQ(latency(station("60 GB/s"), {{"gpu0", "heap0"}}), Duration{1'080'000});
}

// Two GPUs at once need 2 x 3 x r of 30 GB/s: 5 GB/s each, 2.4 ms and 0.1. Beside a pinned copy, 3 r + r = 30: 7.5 GB/s
// each, so both take 1.6 ms but for their set-up: the pinned one starts 90 us sooner and has 12 GB/s until then (1.08
// MB); both then have 7.5 until it is done, 1.456 ms later, and the rest of the other, 1.08 MB, goes at 10 GB/s in
// 0.108 ms. 0.1 + 1.456 + 0.108 = 1.664 ms.
TEST(Pageable, SharesTheHostsMemory) {
  EXPECT_EQ(latency(station(), {{"heap0", "gpu0"}, {"heap0", "gpu1"}}), Duration{2'500'000});
  const Topology machine = station();
  const auto& all_at_once = *find_planner("all_at_once");
  const auto stream = [&](std::string name, std::string_view from, std::string_view to) {
    return CommandStream{std::move(name),
                         Transfer{*machine.find_vertex(from), *machine.find_vertex(to), Bytes{12'000'000}, {}, {}},
                         {},
                         {}};
  };
  const Batch both = Batch::make(machine, {stream("a", "heap0", "gpu0"), stream("b", "mem0", "gpu1")}).value();
  EXPECT_EQ(plan(all_at_once, both).timeline.latency, Duration{1'664'000});
}

// A copy of 12 MB costs 60 us more than a small one: buffers fill. Six tenths of that are work like that on bytes, the
// rest makes a lone copy slower: 12 MB in 1.2 + 0.024 ms are 9.804 GB/s. Alone: 0.1 + 0.036 + 1.224 ms. Beside another
// one, at 5 GB/s: 0.1 ms, 0.036 ms x 9.804 GB/s in 0.0706 ms, and 2.4 ms.
TEST(Pageable, FillsItsBuffersAsSlowlyAsItGoesOn) {
  const Topology machine = station("30 GB/s", "{nominal: 100 us, sizes: [{size: 1 MB, more: 60 us}]}");
  EXPECT_EQ(latency(machine, {{"heap0", "gpu0"}}), Duration{1'360'000});
  EXPECT_EQ(latency(machine, {{"heap0", "gpu0"}, {"heap0", "gpu1"}}), Duration{2'570'589});
}

TEST(Pageable, IsLikeTheSlowSimulation) {
  const Topology machine = station("30 GB/s",
                                   "{nominal: 100 us, guaranteed: 140 us, sizes: [{size: 64 kB, "
                                   "more: 20 us}, {size: 4 MB, more: {nominal: 90 us, guaranteed: 200 us}}]}");
  const std::vector<std::pair<std::string_view, std::string_view>> ends{
      {"heap0", "gpu0"}, {"heap0", "gpu1"}, {"gpu0", "heap0"}, {"gpu1", "heap0"}, {"mem0", "gpu0"}, {"gpu1", "mem0"}};
  test::Random random(29);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    std::vector<CommandStream> streams;
    for (auto count = random.between(1, 9); count > 0; --count) {
      const auto& [from, to] = ends[static_cast<std::size_t>(random.below(ends.size()))];
      const Bytes size{static_cast<std::int64_t>(random.below(std::uint64_t{1} << random.between(1, 25)))};
      streams.push_back({fmt::format("s{}", count),
                         Transfer{*machine.find_vertex(from), *machine.find_vertex(to), size, {}, {}},
                         {},
                         {}});
    }
    const Batch batch = Batch::make(machine, streams).value();
    for (const Basis basis : {Basis::Nominal, Basis::Guaranteed}) {
      for (const RateRule rule : {RateRule::MaxMin, RateRule::Allocated}) {
        BatchSimulation fast;
        fast.load(machine, basis, batch, rule);
        fast.run_forward({});
        const test::SlowRun slow = test::slow_forward(machine, basis, batch, rule, {});
        for (std::size_t s = 0; s < streams.size(); ++s) {
          EXPECT_NEAR(fast.times()[s].transfer_start, slow.times[s].transfer_start, 1e-9 * slow.latency);
          EXPECT_NEAR(fast.times()[s].transfer_end, slow.times[s].transfer_end, 1e-9 * slow.latency);
        }
      }
    }
  }
}

TEST(Pageable, IsNoWayForCopiesBetweenGpusAndDevices) {
  const Topology machine = station();
  const VertexId gpu0 = *machine.find_vertex("gpu0"), gpu1 = *machine.find_vertex("gpu1"),
                 heap = *machine.find_vertex("heap0");
  EXPECT_EQ(find_route(machine, {gpu0, gpu1, Bytes{1}, {}, {}}).via, *machine.find_vertex("mem0"));
  const auto refused = Batch::make(machine, {{"s", Transfer{gpu0, gpu1, Bytes{1}, {}, heap}, {}, {}}});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message,
            "'heap0' is pageable, and no GPU reaches it; a staged copy goes via another memory");
}

}  // namespace
}  // namespace tutti::internal
