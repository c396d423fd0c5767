// Devices (a camera, a disk): ends of transfers by engines of their own.
#include "model/transfer/device.hpp"

#include <string>

#include <gtest/gtest.h>

#include "model/planners/planner.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

using std::chrono::milliseconds;

/// A camera and a disk that reach gpu0 past the memory.
Topology camera_and_disk() {
  return test::make_machine(
      R"(  vertices: {mem0: {kind: memory}, hub0: {kind: hub}, gpu0: {kind: gpu}, camera0: {kind: device}, disk0: {kind: device}}
  links:
    - {from: mem0, to: hub0, bandwidth: 40 GB/s, back: 40 GB/s}
    - {from: hub0, to: gpu0, bandwidth: 10 GB/s, back: 10 GB/s}
    - {from: camera0, to: hub0, bandwidth: 4 GB/s}
    - {from: hub0, to: disk0, bandwidth: 5 GB/s, back: 8 GB/s}
  weights: {h2d: 2, d2h: 3}
)");
}

RouteView route_of(const Topology& machine, const char* from, const char* to) {
  return find_route(machine, {*machine.find_vertex(from), *machine.find_vertex(to), Bytes{1}, {}, {}});
}

TEST(Device, MovesDataByItsOwnEngines) {
  const Topology machine = camera_and_disk();
  const VertexId disk = *machine.find_vertex("disk0");
  const RouteView sent = route_of(machine, "disk0", "gpu0");
  EXPECT_EQ(sent.method.name, "device");
  EXPECT_EQ(sent.engines, (std::array{machine.engine_out(disk), machine.engine_out(disk)}));
  EXPECT_EQ(sent.kind, CopyKind::Up);
  EXPECT_EQ(sent.weight, 2);
  EXPECT_EQ(sent.first.size(), 2U);
  const RouteView received = route_of(machine, "mem0", "disk0");
  EXPECT_EQ(received.engines, (std::array{machine.engine_in(disk), machine.engine_in(disk)}));
  EXPECT_EQ(received.kind, CopyKind::Down);
  EXPECT_EQ(received.weight, 3);
  EXPECT_EQ(route_of(machine, "mem0", "gpu0").method.name, "direct");
  EXPECT_EQ(machine.engine_count(), 6U);
}

std::vector<Duration> ends_of_streams(const Topology& machine, std::string_view streams) {
  const ExecutionPlan planned = plan(*find_planner("all_at_once"), test::make_batch(machine, streams));
  std::vector<Duration> ends;
  for (const StreamTimeline& line : planned.timeline.streams) ends.push_back(line.end());
  return ends;
}

// The camera has 4 of the 10 GB/s of gpu0's link, which its link holds it to; the copy from memory the other 6, though
// with weights of 2 each it could have 5: 8 MB take 2 ms, 12 MB 2 ms. The copy engine of gpu0 is free for it meanwhile.
TEST(Device, SharesTheLinkOfAGpuWithItsCopyEngine) {
  EXPECT_EQ(ends_of_streams(camera_and_disk(),
                            "  - {from: camera0, to: gpu0, size: 8 MB}\n  - {from: mem0, to: gpu0, size: 12 MB}\n"),
            (std::vector<Duration>{milliseconds(2), milliseconds(2)}));
}

// The same on the way out: the disk takes 5, the memory the other 5 of the 10.
TEST(Device, SharesTheLinkOutOfAGpu) {
  EXPECT_EQ(ends_of_streams(camera_and_disk(),
                            "  - {from: gpu0, to: disk0, size: 10 MB}\n  - {from: gpu0, to: mem0, size: 10 MB}\n"),
            (std::vector<Duration>{milliseconds(2), milliseconds(2)}));
}

// Two files from one disk come one after the other at 8 GB/s, 1 ms each; what is written goes beside them at 5 GB/s, 3
// ms.
TEST(Device, ReadsAndWritesOneTransferEachAtATime) {
  EXPECT_EQ(ends_of_streams(camera_and_disk(),
                            "  - {from: disk0, to: mem0, size: 8 MB}\n  - {from: disk0, to: gpu0, size: 8 MB}\n"
                            "  - {from: mem0, to: disk0, size: 15 MB}\n"),
            (std::vector<Duration>{milliseconds(1), milliseconds(2), milliseconds(3)}));
}

// Two ways lead from mem0 to gpu0: the one of two links passes the disk, which is an end, so the route is the one of
// three.
TEST(Device, IsNeverPassedThrough) {
  const Topology machine = test::make_machine(
      R"(  vertices: {mem0: {kind: memory}, hub0: {kind: hub}, hub1: {kind: hub}, gpu0: {kind: gpu}, disk0: {kind: device}}
  links:
    - {from: mem0, to: disk0, bandwidth: 5 GB/s}
    - {from: disk0, to: gpu0, bandwidth: 5 GB/s}
    - {from: mem0, to: hub0, bandwidth: 5 GB/s}
    - {from: hub0, to: hub1, bandwidth: 5 GB/s}
    - {from: hub1, to: gpu0, bandwidth: 5 GB/s}
)");
  EXPECT_EQ(machine.route(*machine.find_vertex("mem0"), machine.gpus()[0]).size(), 3U);
  EXPECT_EQ(test::batch_error(machine, "  - {from: mem0, to: gpu0, size: 1 MB, route: [mem0, disk0, gpu0]}\n"),
            "b.yaml:3:5: the route passes through 'disk0'; memories, GPUs and devices are never passed through");
}

TEST(Device, IsRefusedWhereItCannotBe) {
  const Topology machine = camera_and_disk();
  EXPECT_EQ(test::batch_error(machine, "  - {from: camera0, to: disk0, size: 1 MB}\n"),
            "b.yaml:3:5: 'camera0' and 'disk0' are both devices; one end of a transfer is a memory or a gpu");
  EXPECT_EQ(test::batch_error(machine, "  - {from: mem0, to: camera0, size: 1 MB}\n"),
            "b.yaml:3:5: no way leads from 'mem0' to 'camera0'; add the missing links or peer access");
  EXPECT_EQ(test::batch_error(machine, "  - {from: camera0, to: gpu0, size: 1 MB, via: mem0}\n"),
            "b.yaml:3:5: 'via' is for copies from gpu to gpu; leave it out here");
  EXPECT_EQ(test::batch_error(machine, "  - {kernel: {on: camera0, time: 1 ms}}\n"),
            "b.yaml:3:5: a kernel cannot run on 'camera0', a device; say 'on' with a gpu or a cpu");
  EXPECT_EQ(test::machine_error(
                test::machine_file("  vertices: {mem0: {kind: memory}, nic0: {kind: device, copy_engines: 2}}\n"
                                   "  links: [{from: mem0, to: nic0, bandwidth: 1 GB/s}]\n")),
            "m.yaml:4:71: 'copy_engines' stands at a device; only a gpu has it");
}

TEST(Device, IsPartOfThePcieDomainOfItsSwitch) {
  const Topology machine = camera_and_disk();
  EXPECT_EQ(machine.domain(*machine.find_vertex("camera0")), machine.domain(machine.gpus()[0]));
}

}  // namespace
}  // namespace tutti::internal
