// What the simulated machine promises beyond the conformance suite: it keeps to the plan, byte by byte and instant by
// instant.
#include "runtime/sim/sim_backend.hpp"

#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/runtime/small_machine.hpp"

namespace tutti::internal {
namespace {

using test::bound;
using test::copy_stream;
using test::Random;
using test::Station;
using Byteses = std::vector<std::byte>;

/// The plan, with each kernel no earlier than its data: plans round starts down and ends up.
Timeline as_executed(Timeline plan) {
  for (StreamTimeline& line : plan.streams) {
    if (!line.kernel || !line.transfer) continue;
    line.kernel->start = std::max(line.kernel->start, line.transfer->end);
    line.kernel->end = std::max(line.kernel->start, line.kernel->end);
  }
  return plan;
}

CommandStream random_stream(const Station& station, Random& random, std::string name) {
  const VertexId places[] = {station.at("mem0"), station.at("gpu0"), station.at("gpu1"), station.at("gpu2")};
  const std::size_t from = random.below(4);
  const std::size_t to = (from + 1 + random.below(3)) % 4;
  CommandStream stream =
      copy_stream(std::move(name), places[from], places[to], random.one_in(8) ? 0 : random.between(1, 5000));
  if (to != 0 && random.one_in(2)) {
    const Duration time{random.between(0, 3000)};
    stream.kernel = Kernel{places[to], time, time, "spin"};
  }
  return stream;
}

// 1000 bytes from the camera at 1 byte/ns, beside 1000 bytes from memory over the rest of the GPU's link, 3 byte/ns.
TEST(SimBackend, MovesWhatADeviceSends) {
  Station station(std::make_unique<VirtualClock>(), Station::make_sim, test::make_machine(R"(  vertices:
    mem0: {kind: memory}
    hub0: {kind: hub}
    gpu0: {kind: gpu}
    camera0: {kind: device}
  links:
    - {from: mem0, to: hub0, bandwidth: 3 GB/s, back: 3 GB/s}
    - {from: hub0, to: gpu0, bandwidth: 3 GB/s, back: 3 GB/s}
    - {from: camera0, to: hub0, bandwidth: 1 GB/s}
)"));
  const Buffer frame = station.allocate(station.at("camera0"), 1000),
               image = station.allocate(station.at("mem0"), 2000);
  const Buffer from_camera = station.allocate(station.at("gpu0"), 1000),
               from_memory = station.allocate(station.at("gpu0"), 2000);
  const auto seen = test::pattern(1000, 1), known = test::pattern(2000, 2);
  std::ranges::copy(seen, frame.view().data);
  station.write(image.view(), known);
  PreparedBatch batch =
      station.prepare({copy_stream("frame", station.at("camera0"), station.at("gpu0"), 1000),
                       copy_stream("image", station.at("mem0"), station.at("gpu0"), 2000)},
                      {bound(frame.view(), from_camera.view()), bound(image.view(), from_memory.view())});
  station.run(batch);
  EXPECT_EQ(batch.measured().latency, Duration{1000});
  EXPECT_EQ(station.read(from_camera.view()), seen);
  EXPECT_EQ(station.read(from_memory.view()), known);
}

// Seeded batches of all planners on a machine that is crowded half of the time: every byte arrives, and what is
// measured is what was planned.
TEST(SimBackend, DoesWhatWasPlanned) {
  for (const Planner& planner : planners()) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      SCOPED_TRACE(std::string(planner.name) + ", seed " + std::to_string(seed));
      Station station(std::make_unique<VirtualClock>(), Station::make_sim,
                      test::small_machine(seed % 2 == 0 ? "8 GB/s" : "1.3 GB/s"));
      Executor executor(station.machine, *station.backend, *station.clock);
      Random random(seed);
      std::vector<CommandStream> streams;
      std::vector<StreamBinding> bindings;
      std::vector<Buffer> buffers;
      std::vector<Byteses> sent;
      for (int s = random.between(1, 6); s > 0; --s) {
        const CommandStream stream = random_stream(station, random, "s" + std::to_string(s));
        const auto size = static_cast<std::size_t>(stream.transfer->size.count);
        buffers.push_back(station.allocate(stream.transfer->from, size));
        sent.push_back(test::pattern(size, random.next()));
        if (size > 0) station.write(buffers.back().view(), sent.back());
        buffers.push_back(station.allocate(stream.transfer->to, size));
        bindings.push_back(bound(buffers[buffers.size() - 2].view(), buffers.back().view()));
        streams.push_back(stream);
      }
      auto batch = executor.prepare(plan(planner, station.batch(streams)), bindings);
      ASSERT_TRUE(batch.has_value());
      for (int run = 0; run < 2; ++run) {
        const auto result = executor.run(*batch);
        ASSERT_TRUE(result.has_value()) << result.error().text();
        EXPECT_EQ(result->finish - result->start, batch->plan().timeline.latency);
        EXPECT_EQ(batch->measured(), as_executed(batch->plan().timeline));
      }
      for (std::size_t s = 0; s < sent.size(); ++s) EXPECT_EQ(station.read(buffers[2 * s + 1].view()), sent[s]) << s;
    }
  }
}

// 100 bytes at 3 byte/ns end at 33.3 ns. The plan says 34 to be safe, and 33 for the kernel's start; its data comes
// first.
TEST(SimBackend, StartsNoKernelBeforeItsData) {
  const Topology machine = test::make_machine(R"(  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}
  links: [{from: mem0, to: gpu0, bandwidth: 3 GB/s, back: 3 GB/s}]
)");
  KernelRegistry kernels;
  std::byte seen{0};
  ASSERT_TRUE(kernels.add("look", [&](const KernelLaunch& launch) { seen = launch.input.back(); }).has_value());
  VirtualClock clock;
  SimBackend backend(machine, kernels, clock);
  Executor executor(machine, backend, clock);
  const VertexId mem0 = *machine.find_vertex("mem0"), gpu0 = *machine.find_vertex("gpu0");
  const Buffer source = backend.allocate(mem0, Bytes{100}).value();
  const Buffer destination = backend.allocate(gpu0, Bytes{100}).value();
  std::memset(source.view().data, 1, 100);
  CommandStream stream = copy_stream("s", mem0, gpu0, 100);
  stream.kernel = Kernel{gpu0, Duration{10}, Duration{10}, "look"};
  auto batch = executor.prepare(plan(planners().front(), Batch::make(machine, {stream}).value()),
                                {bound(source.view(), destination.view())});
  ASSERT_TRUE(executor.run(batch.value()).has_value());
  EXPECT_EQ(batch->plan().timeline.streams[0].kernel->start, Duration{33});
  EXPECT_EQ(batch->measured().streams[0].kernel->start, Duration{34});
  EXPECT_EQ(seen, std::byte{1});
}

// 1000 bytes from 0 to 1000, then a kernel of 50 ns: a poll is an event, and the bytes are there with the segment's
// end.
TEST(SimBackend, AdvancesByOneEventAPoll) {
  Station station;
  const Buffer source = station.allocate(station.at("mem0"), 1000);
  const Buffer destination = station.allocate(station.at("gpu0"), 1000);
  std::memset(source.view().data, 1, 1000);
  auto stream = copy_stream("s", station.at("mem0"), station.at("gpu0"), 1000);
  stream.kernel = Kernel{station.at("gpu0"), Duration{50}, Duration{50}, "spin"};
  auto batch = station.prepare({stream}, {bound(source.view(), destination.view())});
  ASSERT_TRUE(station.executor.issue(batch).has_value());
  std::vector<std::int64_t> instants;
  bool finished = false;
  while (!finished) {
    finished = station.executor.query(batch);
    instants.push_back(station.clock->now().count());
    EXPECT_EQ(destination.view().data[999], instants.back() < 1000 ? std::byte{0} : std::byte{1});
  }
  // Transfer starts, ends; kernel starts, ends; the batch ends.
  EXPECT_EQ(instants, (std::vector<std::int64_t>{0, 1000, 1000, 1050, 1050}));
}

// The simulated GPU has less than the host, and that is what counts; what nobody touches costs nothing.
// The kernel fails in the first run of a batch, and in no later one.
TEST(SimBackend, FailsInTheRunThatFailed) {
  Station station;
  int runs = 0;
  ASSERT_TRUE(station.kernels.add("fails once", [&](const KernelLaunch&) {
    if (++runs == 1) throw std::runtime_error("not yet warm");
  }));
  PreparedBatch batch = station.prepare({test::kernel_stream("k", station.at("gpu0"), "fails once")}, {{}});
  EXPECT_FALSE(station.executor.run(batch).has_value());
  for (int again = 0; again < 2; ++again) station.expect_fine(station.executor.run(batch));
  EXPECT_EQ(runs, 3);
}

// 10 us are planned; a kernel that sleeps for more than the tolerated 5 ms makes the batch late in real time.
TEST(SimBackend, SaysWhereTheHostIsTooSlow) {
  EXPECT_EQ(SimBackend::kHostLag, std::chrono::milliseconds{5});
  Station station(std::make_unique<RealClock>());
  const auto sleeps = [](const KernelLaunch&) { std::this_thread::sleep_for(std::chrono::milliseconds{8}); };
  ASSERT_TRUE(station.kernels.add("sleeps", sleeps));
  PreparedBatch batch = station.prepare({test::kernel_stream("k", station.at("gpu0"), "sleeps", 10'000)}, {{}});
  const auto result = station.executor.run(batch);
  ASSERT_FALSE(result.has_value());
  EXPECT_TRUE(result.error().message.starts_with("the host is too slow to play this machine in real time"));
}

TEST(SimBackend, HoldsMachinesLargerThanTheHost) {
  const Topology machine = test::make_machine(R"(  vertices:
    mem0: {kind: memory}
    gpu0: {kind: gpu, memory: 100 GB}
  links:
    - {from: mem0, to: gpu0, bandwidth: 1 GB/s, back: 1 GB/s}
)");
  const KernelRegistry kernels = KernelRegistry::with_builtins();
  VirtualClock clock;
  SimBackend backend(machine, kernels, clock);
  const auto some = backend.allocate(*machine.find_vertex("gpu0"), Bytes{1LL << 30});
  ASSERT_TRUE(some.has_value());
  EXPECT_EQ(some->view().data[1 << 29], std::byte{0});
  const auto more = backend.allocate(*machine.find_vertex("gpu0"), Bytes{100'000'000'000});
  ASSERT_FALSE(more.has_value());
  EXPECT_EQ(more.error().code, ErrorCode::Machine);
}

// Sanitizers end a program that asks for so much.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(SimBackend, RefusesWhatTheHostDoesNotHave) {
  Station station;
  const auto buffer = station.backend->allocate(station.at("mem0"), Bytes{1LL << 60});
  ASSERT_FALSE(buffer.has_value());
  EXPECT_EQ(buffer.error().code, ErrorCode::Machine);
  EXPECT_TRUE(buffer.error().message.ends_with("left for a buffer")) << buffer.error().message;
}
#endif

TEST(SimBackendDeath, BatchesThatOutliveItAreABug) {
  Station station;
  EXPECT_DEATH(
      {
        auto backend = Station::make_sim(station.machine, station.kernels, *station.clock);
        const Batch operation = station.batch({test::kernel_stream("s", station.at("gpu0"), "spin")});
        auto batch = backend->prepare({plan(planners().front(), operation), "a batch", {{}}});
        backend.reset();
      },
      "batches are gone before their backend");
}

}  // namespace
}  // namespace tutti::internal
