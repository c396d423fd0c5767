#include "apps/tutti/formats/detected_machine.hpp"

#include <gtest/gtest.h>

#include "model/base/document.hpp"
#include "model/sharing/compile_machine.hpp"
#include "model/transfer/transfer_method.hpp"
#include "tests/apps/made_up_hosts.hpp"

namespace tutti::internal {
namespace {

Topology machine_of(const HostFacts& host) {
  const auto machine = detected_machine(host, "host");
  EXPECT_TRUE(machine) << machine.error().text();
  return machine.value();
}

/// Every vertex that a copy from one end to the other comes by, the method's name first: "peer gpu0 hub0 gpu1".
std::string way(const Topology& machine, std::string_view from, std::string_view to) {
  Transfer transfer;
  transfer.from = machine.find_vertex(from).value();
  transfer.to = machine.find_vertex(to).value();
  const RouteView route = find_route(machine, transfer);
  std::string text = std::string(route.method.name) + " " + std::string(from);
  for (const auto& leg : {route.first, route.second})
    for (const LinkId link : leg) text += " " + machine.vertex(machine.link(link).to).name;
  return text;
}

const Link& link_between(const Topology& machine, std::string_view from, std::string_view to) {
  const auto link = machine.find_link(machine.find_vertex(from).value(), machine.find_vertex(to).value());
  EXPECT_TRUE(link) << from << " - " << to;
  return machine.link(link.value());
}

double nominal(const Topology& machine, std::string_view from, std::string_view to) {
  const double rate = link_between(machine, from, to).bandwidth.nominal.value;
  EXPECT_EQ(link_between(machine, to, from).bandwidth.nominal.value, rate);
  return rate;
}

TEST(DetectedMachine, ReadsBackAsItself) {
  for (const HostFacts& host : {test::four_h200s(), test::two_sockets(), test::one_old_gpu()}) {
    const Topology machine = machine_of(host);
    const auto again = parse_document(detected_yaml(host, machine), "m.yaml").and_then([](const Node& document) {
      return machine_from(document);
    });
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(*again, machine);
  }
}

// 32 cores for each of the two nodes: 8 producers, the most that are proposed; the pinned memories come first.
TEST(DetectedMachine, HasPageableMemoryOnEachNodeWhereThatIsAsked) {
  const auto machine = detected_machine(test::two_sockets(), "host", 32);
  ASSERT_TRUE(machine) << machine.error().text();
  EXPECT_EQ(machine->vertex(machine->memories().front()).name, "mem0");
  for (const auto& [heap, cpu] : {std::pair("heap0", "cpu0"), {"heap1", "cpu1"}}) {
    const Vertex& vertex = machine->vertex(machine->find_vertex(heap).value());
    EXPECT_TRUE(vertex.pageable);
    EXPECT_EQ(vertex.producers, 8);
    EXPECT_EQ(machine->vertex(machine->find_vertex(cpu).value()).cores, 32);
  }
  EXPECT_EQ(way(*machine, "heap0", "gpu0").substr(0, 20), "pageable heap0 cpu0 ");
}

TEST(DetectedMachine, GpusKeepTheirIdsAndWhatTheyCanDo) {
  const HostFacts host = test::four_h200s();
  const Topology machine = machine_of(host);
  ASSERT_EQ(machine.gpus().size(), 4U);
  const Vertex& gpu = machine.vertex(machine.gpus()[2]);
  EXPECT_EQ(gpu.name, "gpu2");
  EXPECT_EQ(gpu.bus_id, "0000:00:08.0");
  EXPECT_EQ(gpu.uuid, host.devices[2].uuid);
  EXPECT_EQ(gpu.copy_engines, 3);
  // Whole megabytes, never more than there are: 150109880320 B are 150109.88 of them.
  EXPECT_EQ(gpu.memory, Bytes{150'109'000'000});
  EXPECT_EQ(machine.spec().gate, "polling_kernel");
}

TEST(DetectedMachine, GatesHaveWhatEachGpuCanSetApart) {
  HostFacts host = test::four_h200s();
  EXPECT_EQ(machine_of(host).spec().conductor_sms, 0);
  for (DeviceFacts& device : host.devices) device.gate_sms = 8;
  EXPECT_EQ(machine_of(host).spec().conductor_sms, 8);
  host.devices[1].gate_sms = 16;
  EXPECT_EQ(machine_of(host).spec().conductor_sms, 16);
  host.devices[3].gate_sms = 0;
  EXPECT_EQ(machine_of(host).spec().conductor_sms, 0);
}

// PCIe 5.0 x16: 32 GT/s x 128/130 x 16 lanes / 8 bits = 63.015 GB/s, of which 85 % are 53.56. All GPUs of the cpu lie
// below one host bridge, which therefore is no vertex.
TEST(DetectedMachine, FourH200sHangOnTheirCpuAndAnNvlinkSwitch) {
  const Topology machine = machine_of(test::four_h200s());
  EXPECT_EQ(way(machine, "mem0", "gpu3"), "direct mem0 cpu0 gpu3");
  EXPECT_EQ(way(machine, "gpu3", "mem0"), "direct gpu3 cpu0 mem0");
  EXPECT_EQ(way(machine, "gpu0", "gpu3"), "peer gpu0 nvlink0 gpu3");
  EXPECT_EQ(way(machine, "gpu3", "gpu0"), "peer gpu3 nvlink0 gpu0");
  EXPECT_EQ(machine.peer_access().mode, PeerMode::All);
  EXPECT_DOUBLE_EQ(nominal(machine, "cpu0", "gpu0"), 53.56);
  EXPECT_DOUBLE_EQ(link_between(machine, "cpu0", "gpu0").bandwidth.theoretical.value().value, 63.02);
  EXPECT_DOUBLE_EQ(nominal(machine, "gpu0", "nvlink0"), 100);
  EXPECT_EQ(machine.vertices().size(), 2U + 1 + 4);
}

// Two of four GPUs lie below a host bridge of their own. It has no link, so what is below it is the guess: 2 x 53.56.
TEST(DetectedMachine, AHostBridgeOfSomeIsAHub) {
  HostFacts host = test::four_h200s();
  for (const std::size_t gpu : {2U, 3U}) host.devices[gpu].pci_path = {{"pci0000:80", {}}};
  const Topology machine = machine_of(host);
  EXPECT_EQ(way(machine, "mem0", "gpu1"), "direct mem0 cpu0 hub0 gpu1");
  EXPECT_EQ(way(machine, "mem0", "gpu3"), "direct mem0 cpu0 hub1 gpu3");
  EXPECT_DOUBLE_EQ(nominal(machine, "cpu0", "hub1"), 107.12);
  EXPECT_EQ(link_between(machine, "cpu0", "hub1").bandwidth.theoretical, std::nullopt);
}

// A switch with four GPUs, of which two hang on a switch below it: one hub above the other.
TEST(DetectedMachine, HubsHangBelowHubs) {
  HostFacts host = test::four_h200s();
  for (std::size_t gpu = 0; gpu < 4; ++gpu) {
    host.devices[gpu].pci_path.push_back({"0000:01:00.0", test::kGen5x16});
    if (gpu >= 2) host.devices[gpu].pci_path.push_back({"0000:02:00.0", test::kGen4x16});
  }
  const Topology machine = machine_of(host);
  EXPECT_EQ(way(machine, "mem0", "gpu0"), "direct mem0 cpu0 hub0 gpu0");
  EXPECT_EQ(way(machine, "mem0", "gpu3"), "direct mem0 cpu0 hub0 hub1 gpu3");
  EXPECT_DOUBLE_EQ(nominal(machine, "cpu0", "hub0"), 53.56);
  EXPECT_DOUBLE_EQ(nominal(machine, "hub0", "hub1"), 26.78);
}

// Host bridge, root port and switch have the same two GPUs below them: one hub, whose link is the narrowest of theirs,
// PCIe 4.0 x16: 31.51 GB/s, of which 85 % are 26.78. The ports of one GPU alone are no hubs.
TEST(DetectedMachine, SwitchesOfTwoSocketsAreHubsOnTheirCpus) {
  const Topology machine = machine_of(test::two_sockets());
  EXPECT_EQ(way(machine, "mem0", "gpu1"), "direct mem0 cpu0 hub0 gpu1");
  EXPECT_EQ(way(machine, "mem1", "gpu1"), "direct mem1 cpu1 cpu0 hub0 gpu1");
  EXPECT_EQ(way(machine, "mem1", "gpu2"), "direct mem1 cpu1 hub1 gpu2");
  EXPECT_DOUBLE_EQ(nominal(machine, "cpu1", "hub1"), 26.78);
  EXPECT_DOUBLE_EQ(link_between(machine, "cpu1", "hub1").bandwidth.theoretical.value().value, 31.51);
  EXPECT_EQ(machine.vertices().size(), 4U + 2 + 4);
}

TEST(DetectedMachine, CopiesWithoutPeerAccessAreStaged) {
  const Topology machine = machine_of(test::two_sockets());
  EXPECT_EQ(machine.peer_access().mode, PeerMode::Pairs);
  EXPECT_EQ(way(machine, "gpu0", "gpu1"), "peer gpu0 hub0 gpu1");
  EXPECT_EQ(way(machine, "gpu3", "gpu2"), "peer gpu3 hub1 gpu2");
  for (const char* const to : {"gpu2", "gpu3"}) {
    EXPECT_EQ(way(machine, "gpu1", to).substr(0, 7), "staged ");
    EXPECT_EQ(way(machine, to, "gpu1").substr(0, 7), "staged ");
  }
}

TEST(DetectedMachine, AccessInOneDirectionCountsAsNone) {
  HostFacts host = test::two_sockets();
  host.devices[1].peer_access[0] = false;
  const Topology machine = machine_of(host);
  EXPECT_EQ(way(machine, "gpu0", "gpu1").substr(0, 7), "staged ");
  EXPECT_EQ(way(machine, "gpu2", "gpu3").substr(0, 5), "peer ");
  EXPECT_NE(detected_yaml(host, machine).find("# gpu0 has access to gpu1, not the other way: taken as none.\n"),
            std::string::npos);
}

// Two pairs with NVLink, access from each GPU to each: the pairs have a switch of their own, the rest goes over PCIe.
TEST(DetectedMachine, NvlinkJoinsThoseThatHaveIt) {
  HostFacts host = test::four_h200s();
  for (const std::size_t a : {0U, 1U})
    for (const std::size_t b : {2U, 3U}) test::join(host, a, b, false);
  const Topology machine = machine_of(host);
  EXPECT_EQ(way(machine, "gpu0", "gpu1"), "peer gpu0 nvlink0 gpu1");
  EXPECT_EQ(way(machine, "gpu3", "gpu2"), "peer gpu3 nvlink1 gpu2");
  EXPECT_EQ(way(machine, "gpu1", "gpu2"), "peer gpu1 cpu0 gpu2");
}

// A ring 0 - 1 - 2 - 3 - 0: a switch would join 0 and 2, which are not.
TEST(DetectedMachine, NvlinkFromSomeToSomeIsNoSwitch) {
  HostFacts host = test::four_h200s();
  test::join(host, 0, 2, false);
  test::join(host, 1, 3, false);
  const Topology machine = machine_of(host);
  EXPECT_FALSE(machine.find_vertex("nvlink0"));
  EXPECT_EQ(way(machine, "gpu0", "gpu1"), "peer gpu0 gpu1");
  EXPECT_EQ(way(machine, "gpu3", "gpu0"), "peer gpu3 gpu0");
  EXPECT_EQ(way(machine, "gpu0", "gpu2"), "peer gpu0 cpu0 gpu2");
}

// Four GPUs with four NVLinks to each other, as the host says: 4 x 20 GB/s between two, and no switch.
TEST(DetectedMachine, NvlinksBetweenPairsHaveTheirNumber) {
  HostFacts host = test::four_h200s();
  for (std::size_t gpu = 0; gpu < 4; ++gpu) {
    host.devices[gpu].nvlinks.assign(4, 4);
    host.devices[gpu].nvlinks[gpu] = 0;
  }
  const Topology machine = machine_of(host);
  EXPECT_FALSE(machine.find_vertex("nvlink0"));
  EXPECT_DOUBLE_EQ(nominal(machine, "gpu1", "gpu3"), 80);
}

TEST(DetectedMachine, WhatIsNotToldIsGuessedAndSaid) {
  const HostFacts host = test::one_old_gpu();
  const Topology machine = machine_of(host);
  EXPECT_EQ(way(machine, "mem0", "gpu0"), "direct mem0 cpu0 gpu0");
  EXPECT_DOUBLE_EQ(nominal(machine, "cpu0", "gpu0"), 12);
  EXPECT_EQ(link_between(machine, "cpu0", "gpu0").bandwidth.theoretical, std::nullopt);
  EXPECT_EQ(machine.engine_in(machine.gpus()[0]), machine.engine_out(machine.gpus()[0]));
  EXPECT_EQ(machine.spec().gate, "polling_kernel");
  EXPECT_EQ(machine.peer_access().mode, PeerMode::None);
  EXPECT_NE(detected_yaml(host, machine).find("# The host does not tell the PCIe link of gpu0.\n"), std::string::npos);
}

// Nodes without processors (high-bandwidth memory, a GPU's own) are left out of the facts, so numbers may have gaps.
TEST(DetectedMachine, NodesKeepTheirNumbers) {
  HostFacts host = test::two_sockets();
  host.numa_nodes = {0, 8};
  for (const std::size_t gpu : {2U, 3U}) host.devices[gpu].numa_node = 8;
  EXPECT_EQ(way(machine_of(host), "mem8", "gpu2"), "direct mem8 cpu8 hub1 gpu2");
  host.devices[3].numa_node = host.devices[2].numa_node = -1;
  const Topology machine = machine_of(host);
  EXPECT_EQ(way(machine, "mem0", "gpu2"), "direct mem0 cpu0 hub1 gpu2");
  EXPECT_NE(detected_yaml(host, machine).find("# The host does not tell the NUMA node of gpu2, gpu3: taken to be 0.\n"),
            std::string::npos);
}

TEST(DetectedMachine, AnIdleLinkIsTakenAtItsBest) {
  HostFacts host = test::four_h200s();
  host.devices[0].link = PcieLink{1, 16};
  host.devices[1].link_at_best = std::nullopt;
  const Topology machine = machine_of(host);
  EXPECT_DOUBLE_EQ(nominal(machine, "cpu0", "gpu0"), 53.56);
  EXPECT_DOUBLE_EQ(nominal(machine, "cpu0", "gpu1"), 53.56);
}

}  // namespace
}  // namespace tutti::internal
