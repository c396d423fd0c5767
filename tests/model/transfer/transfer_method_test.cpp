#include "model/transfer/transfer_method.hpp"

#include <gtest/gtest.h>

#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

/// Three memories: mem0 three links from each GPU, mem1 and mem2 two.
Topology machine_with(std::string_view peer_access) {
  return test::make_machine(
      R"(  vertices: {mem0: {kind: memory}, mem1: {kind: memory}, mem2: {kind: memory}, cpu0: {kind: cpu},
    hub0: {kind: hub}, gpu0: {kind: gpu}, gpu1: {kind: gpu, copy_engines: 1}}
  links:
    - {from: mem0, to: cpu0, bandwidth: 9 GB/s, back: 9 GB/s}
    - {from: cpu0, to: hub0, bandwidth: 9 GB/s, back: 9 GB/s}
    - {from: hub0, to: gpu0, bandwidth: 9 GB/s, back: 9 GB/s}
    - {from: hub0, to: gpu1, bandwidth: 9 GB/s, back: 9 GB/s}
    - {from: mem1, to: hub0, bandwidth: 9 GB/s, back: 9 GB/s}
    - {from: mem2, to: hub0, bandwidth: 9 GB/s, back: 9 GB/s}
  weights: {h2d: 2, d2h: 3, peer: 5}
  peer_access: )" +
      std::string(peer_access) + "\n");
}

VertexId vertex_id(const Topology& machine, std::string_view name) { return *machine.find_vertex(name); }

Transfer transfer(const Topology& machine, std::string_view from, std::string_view to) {
  return {vertex_id(machine, from), vertex_id(machine, to), Bytes{1}, {}, {}};
}

TEST(Route, BetweenMemoryAndGpuItIsDirect) {
  const Topology machine = machine_with("all");
  const RouteView in = find_route(machine, transfer(machine, "mem0", "gpu0"));
  EXPECT_EQ(in.method.name, "direct");
  EXPECT_EQ(in.kind, CopyKind::Up);
  EXPECT_EQ(in.first.size(), 3U);
  EXPECT_TRUE(in.second.empty());
  EXPECT_EQ(in.engines,
            (std::array{machine.engine_in(vertex_id(machine, "gpu0")), machine.engine_in(vertex_id(machine, "gpu0"))}));
  EXPECT_EQ(in.end_engines, in.engines);
  EXPECT_FALSE(in.method.chunked || in.method.peer_traffic);
  EXPECT_EQ(in.weight, 2);
  const RouteView out = find_route(machine, transfer(machine, "gpu0", "mem1"));
  EXPECT_EQ(out.engines, (std::array{machine.engine_out(vertex_id(machine, "gpu0")),
                                     machine.engine_out(vertex_id(machine, "gpu0"))}));
  EXPECT_EQ(out.kind, CopyKind::Down);
  EXPECT_EQ(out.weight, 3);
}

TEST(Route, WithPeerAccessItIsAPeerCopyThatHoldsTheEngineOfItsSource) {
  const Topology machine = machine_with("all");
  const RouteView route = find_route(machine, transfer(machine, "gpu0", "gpu1"));
  EXPECT_EQ(route.method.name, "peer");
  EXPECT_TRUE(route.method.peer_traffic);
  EXPECT_FALSE(route.method.chunked);
  EXPECT_EQ(route.kind, CopyKind::Peer);
  EXPECT_EQ(route.first.size(), 2U);
  EXPECT_EQ(route.engines, (std::array{machine.engine_out(vertex_id(machine, "gpu0")),
                                       machine.engine_out(vertex_id(machine, "gpu0"))}));
  EXPECT_EQ(route.end_engines, (std::array{machine.engine_out(vertex_id(machine, "gpu0")),
                                           machine.engine_in(vertex_id(machine, "gpu1"))}));
  EXPECT_EQ(route.weight, 5);
}

// Through mem0 the copy has 3 + 3 links, through mem1 or mem2 2 + 2; mem1 comes first in the file.
TEST(Route, WithoutPeerAccessItIsStagedThroughTheNearestMemory) {
  const Topology machine = machine_with("none");
  const RouteView route = find_route(machine, transfer(machine, "gpu0", "gpu1"));
  EXPECT_EQ(route.method.name, "staged");
  EXPECT_TRUE(route.method.chunked);
  EXPECT_FALSE(route.method.peer_traffic);
  EXPECT_EQ(route.kind, CopyKind::Staged);
  EXPECT_EQ(machine.vertex(route.via).name, "mem1");
  EXPECT_EQ(route.first.size(), 2U);
  EXPECT_EQ(route.second.size(), 2U);
  EXPECT_EQ(route.engines, (std::array{machine.engine_out(vertex_id(machine, "gpu0")),
                                       machine.engine_in(vertex_id(machine, "gpu1"))}));
  EXPECT_EQ(route.end_engines, route.engines);
}

TEST(Route, ViaChoosesTheMemoryAndStagesEvenWithPeerAccess) {
  for (const auto* access : {"none", "all"}) {
    const Topology machine = machine_with(access);
    Transfer copy = transfer(machine, "gpu0", "gpu1");
    copy.via = vertex_id(machine, "mem0");
    const RouteView route = find_route(machine, copy);
    EXPECT_EQ(route.method.name, "staged");
    EXPECT_EQ(machine.vertex(route.via).name, "mem0");
    EXPECT_EQ(route.first.size() + route.second.size(), 6U);
  }
}

TEST(Route, AStreamMayHaveItsOwn) {
  const Topology machine = machine_with("all");
  Transfer copy = transfer(machine, "mem0", "gpu0");
  copy.route = {LinkId(0), LinkId(2), LinkId(4)};
  EXPECT_EQ(find_route(machine, copy).first.data(), copy.route.data());
}

TEST(Route, WhereThereIsNoWayNothingIsFound) {
  const Topology machine = test::make_machine(
      "  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}, gpu1: {kind: gpu}}\n"
      "  links: [{from: mem0, to: gpu0, bandwidth: 6 GB/s},\n"
      "    {from: mem0, to: gpu1, bandwidth: 6 GB/s}]\n");
  EXPECT_TRUE(find_route(machine, transfer(machine, "mem0", "gpu0")).found());
  EXPECT_FALSE(find_route(machine, transfer(machine, "gpu0", "mem0")).found());
  EXPECT_FALSE(find_route(machine, transfer(machine, "gpu0", "gpu1")).found());
}

}  // namespace
}  // namespace tutti::internal
