#include <array>
#include <fstream>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

#include "model/base/document.hpp"
#include "model/sharing/compile_machine.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

using test::machine_error;

/// A machine file and what it is refused with.
struct Refusal {
  std::string file;
  std::string error;
};

/// Files between lines of "====", each with its faults on last lines that start with "# ".
std::vector<Refusal> read_refusals(const std::string& path) {
  std::ifstream stream(path);
  std::vector<Refusal> refusals(1);
  for (std::string line; std::getline(stream, line);) {
    if (line == "====") {
      refusals.emplace_back();
    } else if (line.starts_with("# ")) {
      refusals.back().error += (refusals.back().error.empty() ? "" : "\n") + line.substr(2);
    } else {
      refusals.back().file += line + "\n";
    }
  }
  return refusals;
}

TEST(TopologyYaml, RefusesEveryMistakeAtItsPlace) {
  const auto refusals = read_refusals(test::source_path("tests/golden/bad_machines.txt"));
  ASSERT_GT(refusals.size(), 50U);
  for (const Refusal& refusal : refusals) EXPECT_EQ(machine_error(refusal.file), refusal.error) << refusal.file;
}

TEST(TopologyYaml, ReadsAllThatAFileCanSay) {
  const Topology machine = test::make_machine(R"(  vertices:
    mem0: {kind: memory}
    cpu0: {kind: cpu, cores: 6}
    ioh0: {kind: hub, domain: left}
    gpu0: {kind: gpu, copy_engines: 1, memory: 141 GB, bus_id: "0000:06:00.0", uuid: GPU-1}
  links:
    - {from: mem0, to: cpu0, bandwidth: 32 GB/s, back: 30 GB/s}
    - {from: cpu0, to: ioh0, bandwidth: {nominal: 8 GB/s, guaranteed: 7.8 GB/s}, back: {nominal: 8 GB/s}}
    - {from: ioh0, to: gpu0, bandwidth: 6 GB/s}
  shared:
    - {name: host, capacity: {nominal: 200 GB/s, guaranteed: 190 GB/s},
       members: [{from: mem0, to: cpu0}, {from: cpu0, to: mem0, cost: 1.3}]}
  weights: {h2d: 2, peer: 0.5}
  peer_access: none
  setup: {batch: 5 us, transfer: 1.5 us}
  margin: {relative: 0.05, absolute: 10 us}
  spread: 0.04
  staging: {chunk: 4 MiB}
  table: []
)");
  EXPECT_EQ(machine.name(), "m");
  const Vertex& gpu = machine.vertex(*machine.find_vertex("gpu0"));
  EXPECT_EQ(gpu.copy_engines, 1);
  EXPECT_EQ(machine.vertex(*machine.find_vertex("cpu0")).cores, 6);
  EXPECT_EQ(gpu.memory, Bytes{141'000'000'000});
  EXPECT_EQ(gpu.bus_id, "0000:06:00.0");
  EXPECT_EQ(gpu.uuid, "GPU-1");
  EXPECT_EQ(machine.vertices()[2].domain, "left");
  ASSERT_EQ(machine.links().size(), 5U);  // the last entry has no way back
  EXPECT_EQ(machine.links()[2].bandwidth, (Bandwidth{GBps{8}, GBps{7.8}}));
  EXPECT_EQ(machine.links()[3].bandwidth, (Bandwidth{GBps{8}, GBps{8}}));
  ASSERT_EQ(machine.shared().size(), 1U);
  EXPECT_EQ(machine.shared()[0].capacity, (Bandwidth{GBps{200}, GBps{190}}));
  EXPECT_EQ(machine.shared()[0].members, (std::vector<CapacityMember>{{LinkId(0), 1}, {LinkId(1), 1.3}}));
  EXPECT_EQ(machine.weights(), (SharingWeights{2, 1, 0.5}));
  EXPECT_EQ(machine.peer_access().mode, PeerMode::None);
  EXPECT_EQ(machine.setup(), (SetupTimes{Duration{5'000}, Duration{1'500}}));
  EXPECT_EQ(machine.margin(), (Margin{0.05, Duration{10'000}}));
  EXPECT_EQ(machine.spread(), 0.04);
  EXPECT_EQ(machine.staging_chunk(), Bytes{4 << 20});
}

/// A machine of one GPU with this set-up.
Topology with_setup(const std::string& setup) {
  return test::make_machine(
      "  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}\n"
      "  links: [{from: mem0, to: gpu0, bandwidth: 6 GB/s}]\n"
      "  setup: " +
      setup + "\n");
}

TEST(TopologyYaml, SetUpIsATimeOrBothItsSides) {
  const SetupTimes setup =
      with_setup(
          "{batch: {nominal: 9 us, guaranteed: 14 us}, transfer: {nominal: 1 us, guaranteed: 2 us},"
          " kernel: 3 us, gate: {nominal: 5 us, guaranteed: 22 us}, host: 12 us,"
          " handover: 7 us, dispatch: {nominal: 8 us, guaranteed: 9 us}, job: {nominal: 0, guaranteed: 300 us}}")
          .setup();
  EXPECT_EQ(setup.batch, (Cost{Duration{9'000}, Duration{14'000}}));
  EXPECT_EQ(setup.kernel, (Cost{Duration{3'000}, Duration{3'000}}));
  EXPECT_EQ(setup.gate, (Cost{Duration{5'000}, Duration{22'000}}));
  EXPECT_EQ(setup.host, Cost{Duration{12'000}});
  EXPECT_EQ(setup.handover, Cost{Duration{7'000}});
  EXPECT_EQ(setup.dispatch, (Cost{Duration{8'000}, Duration{9'000}}));
  EXPECT_EQ(setup.job, (Cost{Duration{0}, Duration{300'000}}));
  for (const CopyKind route : kCopyKinds)
    EXPECT_EQ(setup.transfer.of(route).each, (Cost{Duration{1'000}, Duration{2'000}}));
}

// A cost of 0 is a cost; one that is left out was not measured.
TEST(TopologyYaml, AMachineMayHaveCostsOfAConductor) {
  const Topology machine =
      with_setup("{dispatch: 8 us, job: 4 ms, conductor: {nominal: 5 us, guaranteed: 9 us}, conductor_job: 0}");
  const SetupTimes& setup = machine.setup();
  EXPECT_EQ(setup.conductor, (Cost{Duration{5'000}, Duration{9'000}}));
  EXPECT_EQ(setup.conductor_job, Cost{});
  const auto again = parse_document(machine_yaml(machine), "again.yaml").and_then(machine_from);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->setup(), setup);
  EXPECT_EQ(with_setup("{dispatch: 8 us}").setup().conductor, std::nullopt);

  // What a GPU leads has its costs around jobs; the description is that of the machine all the same.
  const auto led = machine.led_by_gpu();
  ASSERT_TRUE(led);
  EXPECT_TRUE(led->is_led_by_gpu());
  EXPECT_EQ(led->setup().dispatch, (Cost{Duration{5'000}, Duration{9'000}}));
  EXPECT_EQ(led->setup().job, Cost{});
  EXPECT_EQ(led->spec(), machine.spec());
  EXPECT_NE(*led, machine);
  EXPECT_EQ(led->led_by_gpu(), led);
  EXPECT_EQ(led->led_by_host(), machine);
  EXPECT_EQ(led->led_by_host().setup(), setup);
  EXPECT_EQ(with_setup("{dispatch: 8 us, job: 4 ms}").led_by_gpu(), std::nullopt);
}

TEST(TopologyYaml, EachLaneThatWaitsTakesTheConductorLonger) {
  const Topology machine = with_setup(
      "{conductor: {nominal: 5 us, guaranteed: 9 us}, conductor_job: 0, conductor_visit: 1 us, conductor_lane: "
      "{nominal: "
      "1 us, guaranteed: 2 us}}");
  EXPECT_EQ(machine.led_by_gpu()->setup().dispatch, (Cost{Duration{5'000}, Duration{9'000}}));
  EXPECT_EQ(machine.led_by_gpu(3)->setup().dispatch, (Cost{Duration{8'000}, Duration{15'000}}));
  EXPECT_NE(machine.led_by_gpu(3), machine.led_by_gpu(2));
}

TEST(TopologyYaml, CopiesHaveCostsByRouteClass) {
  const Topology machine = with_setup(
      "{transfer: {up: {nominal: 100 ns, guaranteed: 300 ns, below: 256 KiB, bandwidth: {nominal: 40 GB/s, "
      "guaranteed: 30 GB/s}}, down: {nominal: 0, first: {nominal: 1 us, guaranteed: 170 us}}, peer: 2.5 us, sm_down: "
      "{nominal: 1 us, weight: 3.2, load: 1.4}, rows_up: {nominal: 0, "
      "gap: {nominal: 50 B, guaranteed: 75 B, in_step: 99 B}}}, handover: "
      "7 us, job: {nominal: 0, guaranteed: 300 us}}");
  const CopyCosts& copies = machine.setup().transfer;
  EXPECT_EQ(copies.of(CopyKind::Up),
            (CopyCost{{Duration{100}, Duration{300}}, Bytes{256 << 10}, Bandwidth{GBps{40}, GBps{30}}}));
  EXPECT_EQ(copies.of(CopyKind::Peer).each, Cost{Duration{2'500}});
  EXPECT_EQ(copies.of(CopyKind::Down).first, (Cost{Duration{1'000}, Duration{170'000}}));
  EXPECT_EQ(copies.of(CopyKind::SmDown).weight, 3.2);
  EXPECT_EQ(copies.of(CopyKind::SmDown).load, 1.4);
  Gap gap(Bytes{50}, Bytes{75});
  gap.in_step = Bytes{99};
  EXPECT_EQ(copies.of(CopyKind::RowsUp).gap, gap);
  EXPECT_EQ(copies.of(CopyKind::Staged), CopyCost{});
  // What is written is read again.
  const auto again = parse_document(machine_yaml(machine), "again.yaml").and_then(machine_from);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->setup(), machine.setup());
}

TEST(TopologyYaml, ContradictionsInSetUpAreTold) {
  const auto error = [](const std::string& setup) {
    return test::machine_error(
        "version: 1\nmachine:\n  name: m\n  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}\n"
        "  links: [{from: mem0, to: gpu0, bandwidth: 6 GB/s}]\n  setup: " +
        setup + "\n");
  };
  EXPECT_EQ(
      error("{batch: {nominal: 9 us, guaranteed: 8 us}}"),
      "m.yaml:6:46: guaranteed 8 us is below nominal 9 us; guaranteed is what the machine never exceeds, so raise "
      "it");
  EXPECT_EQ(error("{conductor: {nominal: 9 us, guaranteed: 8 us}, conductor_job: 0}"),
            "m.yaml:6:50: guaranteed 8 us is below nominal 9 us; guaranteed is what the machine never exceeds, so "
            "raise it");
  EXPECT_EQ(error("{conductor: 9 us}"),
            "m.yaml:6:22: a GPU leads jobs with both of its costs; add 'conductor_job', or leave 'conductor' out");
  EXPECT_EQ(error("{conductor_job: 9 us}"),
            "m.yaml:6:26: a GPU leads jobs with both of its costs; add 'conductor', or leave 'conductor_job' out");
  EXPECT_EQ(
      error("{conductor_visit: 9 us}"),
      "m.yaml:6:28: it is part of what a GPU takes that leads jobs; add 'conductor' and 'conductor_job', or leave it "
      "out");
  EXPECT_EQ(error("{conductor_jobs: 9 us}"),
            "m.yaml:6:27: it is how long jobs in a row are held up that a GPU leads; add 'conductor_job', or leave it "
            "out");
  EXPECT_EQ(error("{conductor: 9 us, conductor_job: 0, conductor_lane: 1 us}"),
            "m.yaml:6:62: a 'conductor' that has no lanes in it says nothing of what it does beside them; add "
            "'conductor_visit', or leave 'conductor_lane' out");
  EXPECT_TRUE(error("{transfer: {up: {nominal: 1 us, below: 1 MiB}}}")
                  .ends_with("'below' needs 'bandwidth': copies smaller than the one run at the other"));
  EXPECT_NE(error("{transfer: {up: 1 us, nominal: 2 us}}").find("'nominal'"), std::string::npos);
  EXPECT_NE(error("{kernel: {guaranteed: 2 us}}").find("'nominal'"), std::string::npos);
}

TEST(TopologyYaml, WhatIsLeftOutHasItsDefault) {
  const Topology machine = test::make_machine(
      "  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}\n"
      "  links: [{from: mem0, to: gpu0, bandwidth: 6 GB/s}]\n");
  EXPECT_EQ(machine.vertices()[1].copy_engines, 2);
  EXPECT_EQ(machine.vertices()[1].memory, std::nullopt);
  EXPECT_EQ(machine.weights(), SharingWeights{});
  EXPECT_EQ(machine.peer_access().mode, PeerMode::SameDomain);
  EXPECT_EQ(machine.setup(), SetupTimes{});
  EXPECT_EQ(machine.margin(), Margin{});
  EXPECT_EQ(machine.spread(), 0);
  EXPECT_EQ(machine.staging_chunk(), Bytes{8 << 20});
}

// Faults of fields and of what they mean are reported together. What rests on a field that was not read is not: whether
// gpu0 is a GPU (line 7), whether a link to gpu2 is there (13), whether line 13's ends are one vertex.
TEST(TopologyYaml, AFaultOfAFieldHidesNoOtherFault) {
  EXPECT_EQ(
      machine_error(R"(version: 1
machine:
  name: m
  colour: red
  vertices:
    mem0: {kind: memory}
    gpu0: {kind: gpuu, copy_engines: 1}
    gpu1: {kind: gpu}
    gpu2: {kind: gpu}
  links:
    - {from: mem0, to: gpu0, bandwidth: 6 GB/s}
    - {from: mem0, to: gpu9, bandwidth: fast}
    - {form: mem0, to: gpu2, bandwidth: {nominal: 5 GB/s, guaranteed: 6 GB/s}}
  shared:
    - {name: s, capacity: 5 GB/s, members: [{from: mem0, to: gpu2}, {from: mem0, to: gpu7}]}
  peer_access: [[gpu0, gpu1], [gpu1], [gpu1, mem0]]
)"),
      "m.yaml:4:3: unknown key 'colour' in the machine; the keys here are name, provenance, vertices, links, "
      "shared, background, weights, peer_access, setup, margin, spread, staging, gate, conductor_sms, symmetric, "
      "table\n"
      "m.yaml:7:18: 'gpuu' is no kind of vertex; did you mean 'gpu'? write one of memory, cpu, hub, switch, gpu, "
      "device\n"
      "m.yaml:12:24: there is no vertex 'gpu9'; did you mean 'gpu0'?\n"
      "m.yaml:12:41: 'fast' is not a number; write it like 12.3 GB/s\n"
      "m.yaml:13:8: unknown key 'form' in a link; did you mean 'from'?\n"
      "m.yaml:13:41: guaranteed 6 GB/s is above nominal 5 GB/s; guaranteed is what the machine never falls below\n"
      "m.yaml:15:86: there is no vertex 'gpu7'; did you mean 'gpu0'?\n"
      "m.yaml:16:31: a pair has two GPUs; write [gpu0, gpu1]\n"
      "m.yaml:16:39: 'mem0' is a memory; peer access is between GPUs");
}

// No name of a vertex is known where 'vertices' was not read, so none is missing.
TEST(TopologyYaml, AFaultBringsNoSecondOne) {
  EXPECT_EQ(machine_error("version: 1\nmachine:\n  name: m\n  vertexes: {mem0: {kind: memory}}\n"
                          "  links: [{from: mem0, to: gpu0, bandwidth: {nominal: 1 GB/s, guaranteed: 2 GB/s}}]\n"),
            "m.yaml:4:3: unknown key 'vertexes' in the machine; did you mean 'vertices'?\n"
            "m.yaml:5:45: guaranteed 2 GB/s is above nominal 1 GB/s; guaranteed is what the machine never falls below");
  EXPECT_EQ(machine_error("version: 1\nmachines: {}\n"),
            "m.yaml:2:1: unknown key 'machines' in a machine file; did you mean 'machine'?");
}

// The model keeps the word and gives it no meaning; it knows which words there are.
TEST(TopologyYaml, AGateIsOneOfItsWords) {
  const std::string body =
      "  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}\n"
      "  links: [{from: mem0, to: gpu0, bandwidth: 6 GB/s}]\n";
  EXPECT_EQ(test::make_machine(body).spec().gate, "polling_kernel");
  const Topology machine = test::make_machine(body + "  gate: device_timer\n");
  EXPECT_EQ(machine.spec().gate, "device_timer");
  EXPECT_NE(machine_yaml(machine).find("gate: device_timer"), std::string::npos);
  EXPECT_EQ(machine_error(test::machine_file(body + "  gate: device_timr\n")),
            "m.yaml:6:9: 'device_timr' is no gate; did you mean 'device_timer'? write one of polling_kernel, "
            "memory_wait, host_timed, device_timer");
  MachineSpec spec = machine.spec();
  spec.gate = "door";
  EXPECT_EQ(compile(spec).error().text(),
            "gate: 'door' is no gate; write one of polling_kernel, memory_wait, host_timed, device_timer");
}

TEST(TopologyYaml, TheSameFileTwiceIsTheSameMachine) {
  const std::string path = test::source_path("configs/machines/inspection-example.yaml");
  EXPECT_EQ(*load_machine(path), *load_machine(path));
  EXPECT_FALSE(*load_machine(path) == *load_machine(test::source_path("configs/machines/nehalem-c2050.yaml")));
}

TEST(TopologyYaml, AMissingFileIsNamed) {
  const auto machine = load_machine("no/machine.yaml");
  ASSERT_FALSE(machine);
  EXPECT_TRUE(machine.error().text().starts_with("no/machine.yaml: there is no folder 'no' in /"))
      << machine.error().text();
}

}  // namespace
}  // namespace tutti::internal
