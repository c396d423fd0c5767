// What real GPUs owe beyond the conformance suite.
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <sched.h>

#include "runtime/core/baselines.hpp"
#include "runtime/cuda/memory/memory_pool.hpp"
#include "runtime/dispatch/partitioned_run.hpp"
#include "tests/runtime/cuda/device_kernels.hpp"
#include "tests/runtime/small_machine.hpp"
#include "tests/support/two_sides.hpp"

namespace tutti::internal {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using test::bound;
using test::copy_stream;
using test::kernel_stream;
using test::pattern;
using test::Station;
using test::uncaptured;

/// GPUs behind links as fast as real ones, peers by pairs.
Topology real_machine() {
  return test::make_machine(R"(  vertices:
    mem0: {kind: memory}
    cpu0: {kind: cpu}
    hub0: {kind: hub}
    gpu0: {kind: gpu}
    gpu1: {kind: gpu}
  links:
    - {from: mem0, to: cpu0, bandwidth: 200 GB/s, back: 150 GB/s}
    - {from: cpu0, to: hub0, bandwidth: 200 GB/s, back: 150 GB/s}
    - {from: hub0, to: gpu0, bandwidth: 50 GB/s, back: 50 GB/s}
    - {from: hub0, to: gpu1, bandwidth: 50 GB/s, back: 50 GB/s}
  peer_access: none
  setup: {batch: 10 us}
  staging: {chunk: 1 MiB}
)");
}

/// Kernels that took too long are all counted; where GPUs are late, others may be as well.
void expect_overruns(int counted, int expected, const char* what = "") {
  if (test::kDevicesAreInTime) {
    EXPECT_EQ(counted, expected) << what;
  } else {
    EXPECT_GE(counted, expected) << what;
  }
}

class Cuda : public testing::Test {
 protected:
  explicit Cuda(Station::MakeBackend make_backend = test::make_cuda<GateKind::MemoryWait>)
      : station(std::make_unique<test::DeviceClock>(), make_backend, real_machine()) {}

  void add(std::string name, DeviceKernel kernel) {
    ASSERT_TRUE(station.kernels
                    .add(
                        std::move(name), [](const KernelLaunch&) {}, std::move(kernel))
                    .has_value());
  }

  std::string refusal_of(DeviceKernel kernel) {
    add("users", std::move(kernel));
    const auto refused =
        station.executor.prepare(station.planned({kernel_stream("s", station.at("gpu0"), "users")}), {{}});
    if (refused) return "";
    EXPECT_EQ(refused.error().code, ErrorCode::Kernel);
    return refused.error().message;
  }

  Station station;
};

// ---- gates and queues

// 40 batches of two streams each would need 80 queues, of which there are 32: some of them stay unarmed, and all run,
// also where the one that was armed last is issued first.
TEST_F(Cuda, MoreBatchesThanQueuesRunInTheOrderOfIssue) {
  std::vector<PreparedBatch> batches;
  const Buffer source = station.allocate(station.at("gpu0"), 4096),
               destination = station.allocate(station.at("mem0"), 4096);
  for (int i = 0; i < 40; ++i)
    batches.push_back(station.prepare({kernel_stream("a", station.at("gpu0"), "spin", 1000),
                                       copy_stream("b", station.at("gpu0"), station.at("mem0"), 4096)},
                                      {{}, bound(source.view(), destination.view())}));
  for (PreparedBatch& batch : batches) station.executor.arm(batch);
  for (std::size_t i = batches.size(); i-- > 0;) ASSERT_TRUE(station.executor.issue(batches[i]).has_value());
  Duration last = Duration::max();
  for (PreparedBatch& batch : batches) {
    const auto result = station.executor.synchronize(batch);
    ASSERT_TRUE(result.has_value()) << result.error().text();
    EXPECT_LE(result->finish, last);
    last = result->start;
  }
}

// Host work in a GPU's queue, behind a gate that opens first though it was closed last.
TEST_F(Cuda, HostWorkDoesNotWaitForOtherGates) {
  std::vector<PreparedBatch> batches;
  for (int i = 0; i < 4; ++i)
    batches.push_back(station.prepare({kernel_stream("a", station.at("cpu0"), "checksum", 1000)}, {{}}));
  for (PreparedBatch& batch : batches) station.executor.arm(batch);
  for (std::size_t i = batches.size(); i-- > 0;) station.expect_fine(station.executor.run(batches[i]));
}

/// Bytes that go up to gpu0 as streams of their own, one behind the other in both buffers.
struct Chunks {
  Chunks(Station& station, std::int64_t count, std::int64_t size)
      : sent(pattern(static_cast<std::size_t>(count * size), 5)),
        source(station.allocate(station.at("mem0"), sent.size())),
        destination(station.allocate(station.at("gpu0"), sent.size())) {
    station.write(source.view(), sent);
    for (std::int64_t i = 0; i < count; ++i) {
      streams.push_back(copy_stream("s" + std::to_string(i), station.at("mem0"), station.at("gpu0"), size));
      bindings.push_back(
          bound(test::part_of(source.view(), i * size, size), test::part_of(destination.view(), i * size, size)));
    }
  }

  std::vector<std::byte> sent;
  Buffer source, destination;
  std::vector<CommandStream> streams;
  std::vector<StreamBinding> bindings;
};

// 64 streams of one direction, kept apart: more than any device has queues.
TEST_F(Cuda, MoreStreamsThanQueues) {
  const Chunks chunks(station, 64, 4096);
  const auto apart = Batch::make(station.machine, chunks.streams, Merging::Off);
  ASSERT_TRUE(apart.has_value());
  auto batch = station.executor.prepare(plan(planners().front(), *apart), chunks.bindings);
  ASSERT_TRUE(batch.has_value()) << batch.error().text();
  for (int run = 0; run < 3; ++run) station.run(*batch);
  EXPECT_EQ(station.read(chunks.destination.view()), chunks.sent);
}

// 400 transfers of one chain are more operations than a queue takes ahead: the rest follows while the batch runs.
TEST_F(Cuda, LongChainsAreEnqueuedWhileTheyRun) {
  const Chunks chunks(station, 400, 512);
  auto batch = station.prepare(chunks.streams, chunks.bindings);
  for (int run = 0; run < 3; ++run) {
    station.executor.arm(batch);
    station.run(batch);
  }
  EXPECT_EQ(station.read(chunks.destination.view()), chunks.sent);
}

TEST_F(Cuda, ArmedBatchesMoveNothingUntilTheyAreIssued) {
  const Buffer source = station.allocate(station.at("mem0"), 4096);
  const Buffer destination = station.allocate(station.at("mem0"), 4096);
  const Buffer device = station.allocate(station.at("gpu0"), 4096);
  auto batch = station.copying(device.view(), destination.view());
  station.write(device.view(), pattern(4096, 1));
  station.executor.arm(batch);
  std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(station.read(destination.view()), std::vector<std::byte>(4096));
  station.run(batch);
  EXPECT_EQ(station.read(destination.view()), pattern(4096, 1));
}

TEST_F(Cuda, AnArmedBatchThatGoesHasRunThrough) {
  const Buffer destination = station.allocate(station.at("mem0"), 4096);
  const Buffer device = station.allocate(station.at("gpu0"), 4096);
  station.write(device.view(), pattern(4096, 2));
  {
    auto batch = station.copying(device.view(), destination.view());
    station.executor.arm(batch);
  }
  EXPECT_EQ(station.read(destination.view()), pattern(4096, 2));
}

// Memory of the one could not be given back while the other's gates are closed.
TEST_F(Cuda, DisarmedBatchesHaveRunThroughAndCanBeRun) {
  const Buffer destination = station.allocate(station.at("mem0"), 8192);
  const Buffer device = station.allocate(station.at("gpu0"), 8192);
  station.write(device.view(), pattern(8192, 3));
  {
    auto one =
        station.copying(device.view().part(Bytes{0}, Bytes{4096}), destination.view().part(Bytes{0}, Bytes{4096}));
    auto two = station.copying(device.view().part(Bytes{4096}, Bytes{4096}),
                               destination.view().part(Bytes{4096}, Bytes{4096}));
    station.executor.arm(one);
    station.executor.arm(two);
    station.executor.disarm(one);
    station.executor.disarm(two);
    station.run(one);
  }
  EXPECT_EQ(station.read(destination.view()), pattern(8192, 3));
}

// A block that is returned while a gate is closed is not freed, which would wait, but given out again; when the gate is
// open and the run over, it is freed.
TEST_F(Cuda, MemoryGivenBackWhileABatchIsArmedIsUsedAgain) {
  constexpr std::size_t kSize = std::size_t{64} << 20;
  cuda::MemoryPool& pool = cuda::MemoryPool::instance();
  const Buffer destination = station.allocate(station.at("mem0"), 4096);
  const Buffer device = station.allocate(station.at("gpu0"), 4096);
  auto batch = station.copying(device.view(), destination.view());
  pool.trim();
  station.executor.arm(batch);
  for (const char* where : {"mem0", "gpu0"}) {
    Buffer first = station.allocate(station.at(where), kSize);
    const std::byte* const data = first.view().data;
    first = Buffer();
    const Buffer second = station.allocate(station.at(where), kSize - 5000);
    EXPECT_EQ(second.view().data, data) << where;
    pool.trim();
    Buffer third = station.allocate(station.at(where), kSize);
    EXPECT_NE(third.view().data, data) << where;
  }
  const auto kept = [&] {
    std::size_t all = pool.kept({0});
    for (int node = -1; node < 16; ++node) all += pool.kept({-1, node});
    return all;
  };
  EXPECT_GE(kept(), 3 * kSize);
  pool.trim();
  EXPECT_GE(kept(), 3 * kSize) << "freed behind a closed gate";
  station.run(batch);
  pool.trim();
  EXPECT_EQ(kept(), 0U);
}

TEST_F(Cuda, AnAllocationThatDoesNotFitSaysWhatWasGivenBack) {
  constexpr std::size_t kSize = std::size_t{64} << 20;
  const Buffer destination = station.allocate(station.at("mem0"), 4096);
  const Buffer device = station.allocate(station.at("gpu0"), 4096);
  auto batch = station.copying(device.view(), destination.view());
  station.executor.arm(batch);
  station.allocate(station.at("gpu0"), kSize);
  const auto refused = station.backend->allocate(station.at("gpu0"), Bytes{std::int64_t{1} << 40});
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("were given back, and are free once no batch is armed"), std::string::npos)
      << refused.error().message;
  station.run(batch);
}

// b, of 1 MB at 50 GB/s, needs 20 us; a 10 times as long. So that they end together, b is to start 180 us after a, and
// never starts before that instant of the run.
TEST_F(Cuda, StreamsStartWhenPlanned) {
  const Buffer source = station.allocate(station.at("mem0"), 10'000'000);
  const Buffer a = station.allocate(station.at("gpu0"), 10'000'000),
               b = station.allocate(station.at("gpu1"), 1'000'000);
  auto batch = station.prepare({copy_stream("a", station.at("mem0"), station.at("gpu0"), 10'000'000),
                                copy_stream("b", station.at("mem0"), station.at("gpu1"), 1'000'000)},
                               {bound(source.view(), a.view()), bound(source.view(), b.view())});
  station.run(batch);
  station.run(batch);
  const Timeline measured = batch.measured();
  EXPECT_FALSE(find_violation(station.machine,
                              station.batch({copy_stream("a", station.at("mem0"), station.at("gpu0"), 10'000'000),
                                             copy_stream("b", station.at("mem0"), station.at("gpu1"), 1'000'000)}),
                              measured));
  const Timeline& planned = batch.plan().timeline;
  const Duration instant = planned.streams[1].gate - planned.setup;
  ASSERT_GE(instant, microseconds(179));
  // By the GPU's timer; one that answers late cannot be read exactly.
  const Duration error = test::kDevicesAreInTime ? microseconds(10) : milliseconds(3);
  EXPECT_GE(measured.streams[1].start(), instant - error);
}

TEST_F(Cuda, EveryWayToWaitEnds) {
  for (const WaitKind waiting : {WaitKind::Spin, WaitKind::Yield, WaitKind::Block}) {
    CudaOptions options = test::host_gpus(station.machine);
    options.waiting = waiting;
    auto backend = make_cuda_backend(station.machine, station.kernels, *station.clock, options);
    ASSERT_TRUE(backend.has_value()) << backend.error().text();
    Executor executor(station.machine, **backend, *station.clock);
    auto batch = executor.prepare(station.planned({kernel_stream("s", station.at("gpu0"), "spin", 2'000'000)}), {{}});
    ASSERT_TRUE(batch.has_value());
    for (int run = 0; run < 3; ++run) {
      const auto result = executor.run(*batch);
      ASSERT_TRUE(result.has_value());
      EXPECT_GE(result->finish - result->start, milliseconds(2));
    }
  }
}

// ---- kernels

TEST_F(Cuda, BuiltInKernelsComputeWhatTheHostDoes) {
  for (const std::size_t size : {0U, 1U, 3U, 4U, 1000U, 1'000'003U}) {
    const auto bytes = pattern(size, size);
    const Buffer source = station.allocate(station.at("mem0"), size),
                 input = station.allocate(station.at("gpu0"), size);
    const Buffer sum = station.allocate(station.at("gpu0"), 8);
    station.write(source.view(), bytes);
    auto stream = copy_stream("s", station.at("mem0"), station.at("gpu0"), static_cast<std::int64_t>(size));
    stream.kernel = Kernel{station.at("gpu0"), microseconds(100), milliseconds(100), "checksum"};
    auto batch = station.prepare({stream}, {{source.view(), input.view(), {}, sum.view(), {}}});
    station.run(batch);
    std::array<std::byte, 8> expected{};
    station.kernels.find("checksum")->host({bytes, expected, {}, {}});
    EXPECT_EQ(station.read(sum.view()), std::vector<std::byte>(expected.begin(), expected.end())) << size;
  }
}

TEST_F(Cuda, KernelsThatTakeLongerThanDeclaredAreCounted) {
  add("slow", test::device_slow());
  auto batch = station.prepare({kernel_stream("fine", station.at("gpu0"), "spin", 100'000),
                                kernel_stream("slow", station.at("gpu1"), "slow", 100'000)},
                               {{}, {}});
  const auto result = station.executor.run(batch);
  ASSERT_TRUE(result.has_value());
  const Duration slow = batch.measured().streams[1].kernel->end - batch.measured().streams[1].kernel->start;
  EXPECT_GE(slow, microseconds(299));
  EXPECT_GE(result->overruns, 1);
}

TEST_F(Cuda, CallablesThatDoMoreThanEnqueueAreFound) {
  for (const auto& [name, kernel] : {std::pair("allocates", test::device_allocates()),
                                     {"waits", test::device_waits()},
                                     {"default", test::device_uses_default_stream()},
                                     {"pins", test::device_pins()}}) {
    add(name, kernel);
    const auto refused =
        station.executor.prepare(station.planned({kernel_stream("s", station.at("gpu0"), name)}), {{}});
    ASSERT_FALSE(refused.has_value()) << name;
    EXPECT_EQ(refused.error().code, ErrorCode::Kernel);
    EXPECT_EQ(refused.error().message.find("kernel '" + std::string(name) + "' of stream 's' does more than enqueue"),
              0U)
        << refused.error().message;
  }
}

class ImpatientCuda : public Cuda {
 protected:
  ImpatientCuda() : Cuda(test::make_cuda<GateKind::MemoryWait, test::kDeviceWait, 2>) {}
};

TEST_F(ImpatientCuda, ACallableThatDoesNotReturnIsNamed) {
  const std::string message = refusal_of([](const KernelLaunch&, DeviceStream) {
    for (;;) std::this_thread::sleep_for(milliseconds(100));
  });
  EXPECT_EQ(
      message,
      "kernel 'users' of stream 's' has not returned within 5 s when it was prepared; --watchdog sets that limit");
}

TEST_F(Cuda, HostKernelsWithoutAFormForGpusAreRefused) {
  EXPECT_EQ(station.refusal({kernel_stream("s", station.at("gpu0"), "host_only")}, {{}}).find("stream 's' wants"), 0U);
  add("host_only", {});
  EXPECT_EQ(station.refusal({kernel_stream("s", station.at("gpu0"), "host_only")}, {{}}),
            "kernel 'host_only' of stream 's' has no form for GPUs; add one to the kernel, or let it run on a cpu");
}

// Five in a row, of which nothing is noted but the first start and the last end: 1500 us where 550 are declared.
TEST_F(Cuda, KernelsInARowAreJudgedTogether) {
  add("slow", test::device_slow());
  for (const auto& [kernel, overruns] : {std::pair("spin", 0), {"slow", 1}}) {
    const Chunks chunks(station, 5, 4096);
    auto streams = chunks.streams;
    for (CommandStream& stream : streams)
      stream.kernel = Kernel{station.at("gpu0"), microseconds(100), microseconds(110), kernel};
    auto batch = station.prepare(streams, chunks.bindings);
    station.run(batch);
    const auto result = station.executor.run(batch);
    ASSERT_TRUE(result.has_value());
    expect_overruns(result->overruns, overruns, kernel);
  }
}

// A long kernel is judged by itself: the four others' time does not hide that it took 1500 us where 500 are declared.
TEST_F(Cuda, LongKernelsAreJudgedAlone) {
  add("slow", test::device_slow());
  const Chunks chunks(station, 5, 4096);
  auto streams = chunks.streams;
  for (CommandStream& stream : streams)
    stream.kernel = Kernel{station.at("gpu0"), microseconds(50), milliseconds(5), "spin"};
  streams[2].kernel = Kernel{station.at("gpu0"), microseconds(500), microseconds(500), "slow"};
  auto batch = station.prepare(streams, chunks.bindings);
  const auto result = station.executor.run(batch);
  ASSERT_TRUE(result.has_value());
  expect_overruns(result->overruns, 1);
}

// ---- faults; each in a process of its own, since the GPU is lost to it

/// Runs one kernel behind two copies, prints what its batch and the one after it end in, and leaves in order.
template <GateKind gate = GateKind::MemoryWait>
void run_broken(DeviceKernel kernel) {
  bool fine = false;
  {
    Station station(std::make_unique<test::DeviceClock>(), test::make_cuda<gate, test::kDeviceWait, 2>, real_machine());
    static_cast<void>(station.kernels.add(
        "broken", [](const KernelLaunch&) {}, std::move(kernel)));
    const Buffer input = station.allocate(station.at("gpu0"), 64);
    const Chunks chunks(station, 2, 4096);
    auto streams = chunks.streams;
    auto bindings = chunks.bindings;
    streams[1].name = "s";
    streams[1].kernel = Kernel{station.at("gpu0"), Duration{10}, Duration{10}, "broken", Capture::Never};
    bindings[1].kernel_input = input.view();
    auto broken = station.executor.prepare(station.planned(streams), bindings, "batch 7");
    auto after = station.prepare({kernel_stream("t", station.at("gpu1"), "spin")}, {{}});
    const auto result = station.executor.run(*broken);
    const auto next = station.executor.run(after);
    std::fprintf(stderr, "%s | %s\n", result ? "fine" : result.error().message.c_str(),
                 next ? "fine" : next.error().message.c_str());
    fine = result.has_value();
  }
  std::exit(fine ? 0 : 3);
}

TEST(CudaDeathTest, AFaultIsToldWithTheBatchAndTheKernel) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      run_broken(test::device_fault()), testing::ExitedWithCode(3),
      "batch 7: kernel 'broken' of stream 's' has broken the GPU: cudaErrorIllegalAddress.* \\| .*a GPU was lost");
}

TEST(CudaDeathTest, AKernelThatHangsIsGivenUpAndNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_broken(test::device_hang()), testing::ExitedWithCode(3),
              "batch 7: kernel 'broken' of stream 's' has not returned within .* \\| .*a GPU was lost");
}

TEST(CudaDeathTest, AKernelThatHangsBehindATimerIsGivenUpAndNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_broken<GateKind::DeviceTimer>(test::device_hang()), testing::ExitedWithCode(3),
              "batch 7: kernel 'broken' of stream 's' has not returned within .* \\| .*a GPU was lost");
}

// ---- whatever the gate

struct GateRow {
  const char* name;
  Station::MakeBackend make_backend;
};
void PrintTo(const GateRow& row, std::ostream* out) { *out << row.name; }

class EveryGate : public testing::TestWithParam<GateRow> {
 protected:
  EveryGate() : station(std::make_unique<test::DeviceClock>(), GetParam().make_backend, real_machine()) {}

  Station station;
};

INSTANTIATE_TEST_SUITE_P(
    Table, EveryGate,
    testing::Values(GateRow{"PollingKernel", test::make_cuda<GateKind::PollingKernel, test::kBusyWait>},
                    GateRow{"MemoryWait", test::make_cuda<GateKind::MemoryWait, test::kBusyWait>},
                    GateRow{"HostTimed", test::make_cuda<GateKind::HostTimed, test::kBusyWait>},
                    GateRow{"DeviceTimer", test::make_cuda<GateKind::DeviceTimer, test::kBusyWait>},
                    GateRow{"PollingKernelBlock", test::make_cuda<GateKind::PollingKernel, WaitKind::Block>},
                    GateRow{"MemoryWaitBlock", test::make_cuda<GateKind::MemoryWait, WaitKind::Block>},
                    GateRow{"HostTimedBlock", test::make_cuda<GateKind::HostTimed, WaitKind::Block>},
                    GateRow{"DeviceTimerBlock", test::make_cuda<GateKind::DeviceTimer, WaitKind::Block>}),
    [](const auto& row) { return std::string(row.param.name); });

// 1000 copies of 4 KiB are three calls, of which two lie ahead of the gate.
TEST_P(EveryGate, RunsOfCopiesMoveEveryByte) {
  const Chunks chunks(station, 1000, 1024);
  auto batch = station.prepare(chunks.streams, chunks.bindings);
  for (int run = 0; run < 3; ++run) {
    station.write(chunks.source.view(), pattern(chunks.sent.size(), static_cast<std::uint64_t>(run)));
    station.executor.arm(batch);
    station.run(batch);
    EXPECT_EQ(station.read(chunks.destination.view()), pattern(chunks.sent.size(), static_cast<std::uint64_t>(run)));
  }
}

// Of 20 copies and kernels two instants within are noted; the rest is shared out, so that nothing overlaps, all lies in
// the batch, and equal copies take the same time.
TEST_P(EveryGate, TimesThatWereNotNotedAreSharedOut) {
  const Chunks chunks(station, 20, 65536);
  auto streams = chunks.streams;
  for (CommandStream& stream : streams)
    stream.kernel = Kernel{station.at("gpu0"), microseconds(20), milliseconds(1), "spin"};
  auto batch = station.prepare(streams, chunks.bindings);
  for (int run = 0; run < 3; ++run) station.run(batch);
  const Timeline measured = batch.measured();
  EXPECT_EQ(find_violation(station.machine, station.batch(streams), measured), std::nullopt);
  const auto length = [&](std::size_t s) {
    return static_cast<double>((measured.streams[s].transfer->end - measured.streams[s].transfer->start).count());
  };
  EXPECT_GT(length(0), 0);
  for (std::size_t s = 1; s < 20; ++s) {
    // Plans are rounded: 1 ns of 1311.
    EXPECT_NEAR(length(s), length(0), 20 + 1e-3 * length(0)) << s;
    EXPECT_GE(measured.streams[s].kernel->start, measured.streams[s - 1].kernel->end - Duration{1});
  }
}

// To measure them every copy is noted: two of twenty times the size show.
TEST_P(EveryGate, EveryCopyIsNotedWhereThatIsAsked) {
  const Chunks chunks(station, 12, 1 << 20);
  auto streams = chunks.streams;
  for (std::size_t s = 0; s < streams.size(); ++s)
    if (s != 3 && s != 7) streams[s].transfer->size = Bytes{65536};
  const Batch batch = station.batch(streams);
  auto prepared = station.backend->prepare({plan(planners().front(), batch), "a batch", chunks.bindings, Marks::Each});
  ASSERT_TRUE(prepared.has_value()) << prepared.error().text();
  // The shortest of several runs: a host that is busy holds up any copy of one.
  std::vector<Duration> length(streams.size(), Duration::max());
  for (int run = 0; run < 6; ++run) {
    (*prepared)->arm();
    (*prepared)->submit(station.clock->now());
    (*prepared)->wait();
    (*prepared)->review();
    const Timeline measured = (*prepared)->measured();
    EXPECT_EQ(find_violation(station.machine, batch, measured), std::nullopt);
    for (std::size_t s = 0; s < length.size(); ++s)
      length[s] = std::min(length[s], measured.streams[s].end() - measured.streams[s].start());
  }
  EXPECT_GT(length[3], length[2]);
  EXPECT_GT(length[7], length[8]);
}

// b, of 1 ms, is to start 4 ms after a, of 5, so that they end together. It says itself when it started, on the host's
// clock: never before its instant. Armed ahead, armed long ago, and not armed.
TEST_P(EveryGate, NothingStartsBeforeItsInstant) {
  // A timer cannot be read exactly where the GPU is late to answer.
  constexpr Duration kError = test::kDevicesAreInTime ? Duration{0} : milliseconds(3);
  Duration started{};
  const HostKernel mark = [&](const KernelLaunch&) { started = station.clock->now(); };
  ASSERT_TRUE(station.kernels.add("started", mark, test::device_mark(mark)).has_value());
  auto batch = station.prepare({kernel_stream("a", station.at("gpu0"), "spin", 5'000'000),
                                uncaptured(kernel_stream("b", station.at("gpu1"), "started", 1'000'000))},
                               {{}, {}});
  const Duration planned = batch.plan().timeline.streams[1].gate - batch.plan().timeline.setup;
  ASSERT_GE(planned, milliseconds(4) - Duration{1});
  for (int run = 0; run < 60; ++run) {
    if (run % 3 != 0) station.executor.arm(batch);
    std::this_thread::sleep_for(run == 31 ? milliseconds(1500) : milliseconds(1));
    const auto result = station.executor.run(batch);
    ASSERT_TRUE(result.has_value()) << result.error().text();
    EXPECT_GE(started, result->start + planned - kError) << run;
    EXPECT_LE(started, result->finish) << run;
    // By the GPU's timer, or by an event that is set to the host's clock by a word that comes before it: just before,
    // or one look of the queue (7 us).
    EXPECT_GE(batch.measured().streams[1].start(), planned - microseconds(10) - kError) << run;
  }
}

// The kernel of one lane waits for the copies of another, and its overrun is its own.
TEST_P(EveryGate, LanesWaitForRunsOfOthers) {
  const Chunks chunks(station, 30, 65536);
  auto streams = chunks.streams;
  auto bindings = chunks.bindings;
  streams[4].kernel = Kernel{station.at("gpu1"), microseconds(100), milliseconds(1), "spin"};
  streams[9].kernel = Kernel{station.at("gpu0"), microseconds(100), milliseconds(1), "spin"};
  auto batch = station.prepare(streams, bindings);
  constexpr int kRuns = 20;
  int in_order = 0;  // a host that stands reads the times of some runs wrongly
  for (int run = 0; run < kRuns; ++run) {
    station.executor.arm(batch);
    const auto result = station.executor.run(batch);
    ASSERT_TRUE(result.has_value()) << result.error().text();
    expect_overruns(result->overruns, 0);
    const Timeline measured = batch.measured();
    in_order += measured.streams[4].kernel->start + milliseconds(1) >= measured.streams[29].transfer->end ? 1 : 0;
  }
  EXPECT_GT(in_order, kRuns / 2);
  EXPECT_EQ(station.read(chunks.destination.view()), chunks.sent);
}

// What our chains are compared with moves the same bytes.
TEST_P(EveryGate, PlainQueuesMoveEveryByte) {
  for (const auto& [count, kernel] : {std::pair(1000, 0), {50, 1000}}) {
    const Chunks chunks(station, count, 512);
    std::vector<PlainStep> steps;
    for (const StreamBinding& binding : chunks.bindings)
      steps.push_back({binding.source, binding.destination, Duration{kernel}});
    auto chain = station.backend->baselines()->plain_queue(std::move(steps));
    ASSERT_TRUE(chain.has_value()) << chain.error().text();
    for (int run = 0; run < 3; ++run) {
      const auto times = (*chain)->run();
      ASSERT_TRUE(times.has_value()) << times.error().text();
      EXPECT_GT(times->on_the_gpu, Duration{0});
      EXPECT_GT(times->on_the_host, Duration{0});
    }
    EXPECT_EQ(station.read(chunks.destination.view()), chunks.sent);
  }
}

// ---- machine and host

// Never behind a closed gate: the driver would wait there.
TEST_F(Cuda, MemoryThatIsNotWhereTheMachineSaysIsRefused) {
  std::vector<std::byte> pageable(4096);
  const Buffer host = station.allocate(station.at("mem0"), 4096), device = station.allocate(station.at("gpu0"), 4096);
  const BufferView not_pinned{station.at("mem0"), pageable.data(), Bytes{4096}};
  const BufferView not_there{station.at("gpu0"), host.view().data, Bytes{4096}};
  const BufferView not_host{station.at("mem0"), device.view().data, Bytes{4096}};
  const auto up = copy_stream("up", station.at("mem0"), station.at("gpu0"), 4096);
  const auto down = copy_stream("down", station.at("gpu0"), station.at("mem0"), 4096);
  const std::string pin =
      "; allocate it through the backend, pin all of it with cudaHostRegister, or let it lie in a memory that the "
      "machine calls pageable";
  EXPECT_EQ(station.refusal({up}, {bound(not_pinned, device.view())}),
            "the source buffer of stream 'up' is host memory that is not pinned" + pin);
  EXPECT_EQ(station.refusal({down}, {bound(device.view(), not_pinned)}),
            "the destination buffer of stream 'down' is host memory that is not pinned" + pin);
  EXPECT_EQ(
      station.refusal({up}, {bound(host.view(), not_there)})
          .find("the destination buffer of stream 'up' is pinned host memory; allocate it through the backend, or "
                "by cudaMalloc on GPU "),
      0U);
  EXPECT_EQ(station.refusal({up}, {bound(not_host, device.view())})
                .find("the source buffer of stream 'up' is memory of GPU "),
            0U);
  const BufferView input{station.at("gpu0"), pageable.data(), Bytes{4096}};
  EXPECT_EQ(station.refusal({kernel_stream("k", station.at("gpu0"), "spin")}, {{{}, {}, input, {}, {}}})
                .find("the kernel input buffer of stream 'k' is host memory that is not pinned; "),
            0U);
  EXPECT_EQ(station.refusal({up}, {bound(host.view(), device.view())}), "");
}

TEST_F(Cuda, MachinesThatDoNotFitThisHostAreRefused) {
  const auto refusal = [&](const CudaOptions& options) {
    auto backend = make_cuda_backend(station.machine, station.kernels, *station.clock, options);
    return backend ? std::string() : backend.error().message;
  };
  const std::string id = discover_host()->devices[0].bus_id;
  CudaOptions options;
  options.may_share = true;
  EXPECT_EQ(refusal(options).find("'gpu0' of the machine has no bus_id and no uuid"), 0U) << refusal(options);
  options.bind = {{"gpu0", id}, {"gpu1", "0000:ff:1f.7"}};
  EXPECT_EQ(refusal(options).find("'gpu1' is 0000:ff:1f.7, which this host has not"), 0U) << refusal(options);
  options.bind = {{"gpu7", id}};
  EXPECT_EQ(refusal(options).find("--bind gpu7=" + id + ": the machine"), 0U) << refusal(options);
  options.bind = {{"gpu0", id}, {"gpu1", id}};
  EXPECT_EQ(refusal(options), "");
  options.may_share = false;
  EXPECT_NE(refusal(options), "");
  VirtualClock jumping;
  EXPECT_FALSE(
      make_cuda_backend(station.machine, station.kernels, jumping, test::host_gpus(station.machine)).has_value());
}

/// A backend that opens some GPUs of the machine.
std::unique_ptr<DeviceBackend> part_of_the_machine(const Topology& machine, const KernelRegistry& kernels, Clock& clock,
                                                   std::vector<VertexId> gpus) {
  CudaOptions options = test::host_gpus(machine);
  options.gpus = std::move(gpus);
  return make_cuda_backend(machine, kernels, clock, options).value();
}

std::vector<int> cores_of_this_thread() {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

// The last core that this thread may use is the conductor's, and the one before it that of the next backend's: a thread
// that spins on the same core would take turns with it. Afterwards they are this thread's again.
TEST(CudaPart, KeepsOffTheConductorsCore) {
  const std::vector<int> before = cores_of_this_thread();
  if (before.size() < 6) GTEST_SKIP() << "two conductors want a host of six cores";
  const Topology machine = test::two_sides();
  const KernelRegistry kernels = KernelRegistry::with_builtins();
  test::DeviceClock clock;
  const auto left = part_of_the_machine(machine, kernels, clock, {*machine.find_vertex("gpu0")});
  EXPECT_EQ(cores_of_this_thread(), std::vector(before.begin(), before.end() - 1));
  {
    const auto right = part_of_the_machine(machine, kernels, clock, {});
    EXPECT_EQ(cores_of_this_thread(), std::vector(before.begin(), before.end() - 2));
  }
  EXPECT_EQ(cores_of_this_thread(), std::vector(before.begin(), before.end() - 1));
}

// A camera has no memory of CUDA's, and no copy from it goes into a queue, not even one without bytes.
TEST(CudaDevices, AreLeftToTheirDrivers) {
  const Topology machine = test::make_machine(R"(  vertices:
    mem0: {kind: memory}
    hub0: {kind: hub}
    gpu0: {kind: gpu}
    camera0: {kind: device}
  links:
    - {from: mem0, to: hub0, bandwidth: 3 GB/s, back: 3 GB/s}
    - {from: hub0, to: gpu0, bandwidth: 3 GB/s, back: 3 GB/s}
    - {from: camera0, to: hub0, bandwidth: 1 GB/s}
)");
  const KernelRegistry kernels = KernelRegistry::with_builtins();
  test::DeviceClock clock;
  const auto backend = test::make_cuda<GateKind::PollingKernel>(machine, kernels, clock);
  const VertexId camera = *machine.find_vertex("camera0");
  const auto refused = backend->allocate(camera, Bytes{4096});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(
      refused.error().message,
      "'camera0' is a device, whose own driver moves its bytes; leave its copies out of the batch and declare them "
      "under 'background' of the machine, or take the sim backend");
  Executor executor(machine, *backend, clock);
  auto batch = Batch::make(machine, {copy_stream("frame", camera, machine.gpus()[0], 0)}).value();
  const auto prepared = executor.prepare(plan(planners().front(), batch), {{}});
  ASSERT_FALSE(prepared.has_value());
  EXPECT_EQ(prepared.error().message, refused.error().message);
}

// gpu0 belongs to somebody else: no memory there and no kernel. Host work alone finds the queue of a GPU that is open,
// and where none is there is a sentence.
TEST(CudaPart, HasOnlyTheGpusThatItOpens) {
  const Topology machine = test::two_sides();
  const KernelRegistry kernels = KernelRegistry::with_builtins();
  test::DeviceClock clock;
  const VertexId gpu0 = *machine.find_vertex("gpu0"), gpu1 = *machine.find_vertex("gpu1");
  const auto planned = [&](CommandStream stream) {
    return plan(planners().front(), Batch::make(machine, {std::move(stream)}).value());
  };
  const auto refusal = [&](Executor& executor, CommandStream stream) {
    const auto prepared = executor.prepare(planned(std::move(stream)), {{}});
    return prepared ? std::string() : prepared.error().message;
  };
  {
    const auto backend = part_of_the_machine(machine, kernels, clock, {gpu1});
    Executor executor(machine, *backend, clock);
    EXPECT_TRUE(backend->allocate(gpu1, Bytes{4096}).has_value());
    const auto refused = backend->allocate(gpu0, Bytes{4096});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().message,
              "'gpu0' is none of the GPUs that this backend opened; it belongs to another one");
    EXPECT_EQ(refusal(executor, kernel_stream("s", gpu0, "spin", 1000)), refused.error().message);
    auto work = executor.prepare(planned(kernel_stream("s", *machine.find_vertex("cpu0"), "checksum", 1000)), {{}});
    ASSERT_TRUE(work.has_value()) << work.error().text();
    EXPECT_TRUE(executor.run(*work).has_value());
  }
  const auto none = part_of_the_machine(machine, kernels, clock, {});
  Executor executor(machine, *none, clock);
  EXPECT_EQ(refusal(executor, kernel_stream("s", *machine.find_vertex("cpu0"), "checksum", 1000)).find("host work "),
            0U);
}

// Two GPUs of one memory at once, 2 + 2 + 2 ms of every 50 on each, with a backend, a clock and a thread of its own: no
// job of either fails.
TEST(CudaPart, PartitionsRunSideBySide) {
  if (discover_host()->devices.size() < 2) GTEST_SKIP() << "two backends want two GPUs";
  const Topology machine = test::two_sides();
  const KernelRegistry kernels = KernelRegistry::with_builtins();
  TaskSet set{machine, Policy::Edf, {}};
  for (const char* gpu : {"gpu0", "gpu1"}) {
    const VertexId mem = *machine.find_vertex("mem0"), device = *machine.find_vertex(gpu);
    CommandStream up = copy_stream("up", mem, device, 2'000'000);
    up.kernel = Kernel{device, milliseconds{1}, milliseconds{2}, "checksum"};
    Task& task = set.tasks.emplace_back();
    task.name = gpu;
    task.period = task.deadline = milliseconds{50};
    task.steps = {Batch::make(machine, {up}).value(),
                  Batch::make(machine, {copy_stream("down", device, mem, 2'000'000)}).value()};
  }
  const AdmissionVerdict verdict = AdmissionController(planners().front()).decide(set);
  ASSERT_TRUE(verdict.admitted.has_value());
  ASSERT_EQ(verdict.partitions.size(), 2U);
  std::vector<test::DeviceClock> clocks(2);
  std::vector<std::unique_ptr<DeviceBackend>> backends;
  std::vector<std::unique_ptr<Executor>> executors;
  std::vector<Executor*> table;
  std::vector<std::unique_ptr<PatternProgram>> patterns;
  std::vector<TaskProgram*> programs;
  for (std::size_t i = 0; i < 2; ++i) {
    backends.push_back(part_of_the_machine(machine, kernels, clocks[i], gpus_of(set, verdict.partitions[i])));
    executors.push_back(std::make_unique<Executor>(machine, *backends[i], clocks[i]));
    table.push_back(executors[i].get());
    patterns.push_back(std::make_unique<PatternProgram>(machine, set.tasks[i], 1));
    programs.push_back(patterns[i].get());
  }
  RunOptions options;
  options.jobs = 40;
  const auto record = run_tasks(table, *verdict.admitted, programs, options);
  ASSERT_TRUE(record.has_value()) << record.error().text();
  EXPECT_EQ(record->jobs.size(), 40U);
  for (const JobRecord& job : record->jobs) {
    const bool dropped = job.error && job.error->message.find("no buffer set was free") == 0;  // the host was late
    EXPECT_TRUE(!job.error || dropped) << job.error->text();
  }
}

// Streams that wait for a word go on, by themselves and by kernels, alone and beside copies, and are free behind that.
TEST_F(Cuda, WaitsForAWordAreTimed) {
  Baselines& baselines = *station.backend->baselines();
  for (const GateKind gate : {GateKind::MemoryWait, GateKind::PollingKernel}) {
    for (const bool beside_copies : {false, true}) {
      const auto probe = baselines.wait_probe(station.at("gpu0"), gate, beside_copies);
      ASSERT_TRUE(probe.has_value()) << probe.error().text();
      EXPECT_GE((*probe)->most_streams(), 4);
      for (const int streams : {1, 3, (*probe)->most_streams()}) {
        const auto took = (*probe)->react(microseconds(20), streams);
        ASSERT_TRUE(took.has_value()) << took.error().text();
        EXPECT_GT(*took, Duration{0});
      }
      EXPECT_FALSE(baselines.wait_probe(station.at("gpu0"), gate, false).has_value()) << "it has all streams";
    }
  }
  auto batch = station.prepare({kernel_stream("s", station.at("gpu0"), "spin", 1000)}, {{}});
  station.run(batch);
}

// 3 iterations by the host and 3 by fused kernels are as many by streams.
TEST_F(Cuda, AStencilRunsBesideTheBackend) {
  StencilSpec spec;
  spec.edge = spec.layers = 4;
  std::vector<std::vector<std::uint64_t>> fields;
  for (const auto& modes :
       {std::array{ControlMode::Host, ControlMode::Kernel}, std::array{ControlMode::Stream, ControlMode::Stream}}) {
    const auto stencil = station.backend->baselines()->stencil(spec, {station.at("gpu0")});
    ASSERT_TRUE(stencil.has_value()) << stencil.error().text();
    ASSERT_TRUE((*stencil)->fill(1).has_value());
    for (const ControlMode mode : modes) ASSERT_TRUE((*stencil)->run(mode, 3).has_value());
    fields.push_back((*stencil)->field().value());
  }
  EXPECT_EQ(fields[0], fields[1]);
}

TEST_F(Cuda, APingPongRunsBesideTheBackend) {
  const auto ping_pong = station.backend->baselines()->ping_pong({}, {station.at("gpu0"), station.at("gpu0")});
  ASSERT_TRUE(ping_pong.has_value()) << ping_pong.error().text();
  for (const PingPongMode mode : kPingPongModes) {
    const auto took = (*ping_pong)->run({mode, Bytes{100}, Duration{}, 5, true});
    EXPECT_TRUE(took.has_value()) << took.error().text();
  }
}

// ---- jobs that overlap

/// Fills each image with the number of its job and compares the reports.
class NumberedImages final : public TaskProgram {
 public:
  NumberedImages(const Topology& machine, const Task& task) : machine_(machine), buffers_(machine, task, 3) {}
  Expected<std::vector<StreamBinding>> bind(DeviceBackend& backend, const Batch& batch, std::size_t number,
                                            std::size_t set) override {
    auto bound = buffers_.bind(backend, batch, number, set);
    StreamBinding& binding = bound->front();
    if (number == 0) images_[set] = binding.source;
    if (number > 0) binding.source = {on_gpu_[set].where, on_gpu_[set].data, binding.source.size};
    const bool is_report = machine_.vertex(binding.destination.where).kind == VertexKind::Memory;
    (is_report ? reports_ : on_gpu_)[set] = binding.destination;
    return bound;
  }
  void on_ready(const Job& job) override {
    std::ranges::fill(images_[job.buffer_set].bytes(), static_cast<std::byte>(job.index + 1));
  }
  void on_finished(const Job& job) override {
    const auto is_right = [&](std::byte byte) { return byte == static_cast<std::byte>(job.index + 1); };
    right += std::ranges::all_of(reports_[job.buffer_set].bytes(), is_right) ? 1 : 0;
  }
  int right = 0;

 private:
  const Topology& machine_;
  PatternProgram buffers_;
  std::map<std::size_t, BufferView> images_, on_gpu_, reports_;
};

/// An image up to each GPU, a kernel, the image back, every 10 ms within 25: three jobs at a time. The kernel takes
/// 6 ms, so that they overlap.
TaskSet pipelines(const Topology& machine) {
  TaskSet set{machine, Policy::Edf, {}};
  set.overlap = Overlap::On;
  const VertexId mem = *machine.find_vertex("mem0");
  for (const char* gpu : {"gpu0", "gpu1"}) {
    const VertexId device = *machine.find_vertex(gpu);
    CommandStream up = copy_stream("up", mem, device, 1'000'000);
    up.kernel = Kernel{device, milliseconds{6}, milliseconds{7}, "spin"};
    Task& task = set.tasks.emplace_back();
    task.name = gpu;
    task.period = milliseconds{10};
    task.deadline = milliseconds{25};
    task.steps = {Batch::make(machine, {up}).value(), HostStep{microseconds{50}},
                  Batch::make(machine, {copy_stream("down", device, mem, 1'000'000)}).value()};
  }
  return set;
}

class CudaOverlap : public testing::TestWithParam<WaitKind> {
 protected:
  /// Runs jobs of a set of two tasks: the bytes of each come back, and none fails.
  static RunRecord run_images(const Topology& machine, const TaskSet& set, std::uint64_t jobs) {
    const AdmissionVerdict verdict = AdmissionController(planners().front()).decide(set);
    if (!verdict.admitted) return ADD_FAILURE() << verdict.reasons.front(), RunRecord{};
    test::DeviceClock clock;
    const KernelRegistry kernels = KernelRegistry::with_builtins();
    CudaOptions cuda = test::host_gpus(machine);
    cuda.waiting = GetParam();
    auto backend = make_cuda_backend(machine, kernels, clock, cuda);
    if (!backend) return ADD_FAILURE() << backend.error().text(), RunRecord{};
    Executor executor(machine, **backend, clock);
    NumberedImages images[] = {{machine, set.tasks[0]}, {machine, set.tasks[1]}};
    TaskProgram* const programs[] = {&images[0], &images[1]};
    RunOptions options;
    options.jobs = jobs;
    auto record = run_tasks(executor, *verdict.admitted, programs, options);
    if (!record) return ADD_FAILURE() << record.error().text(), RunRecord{};
    int done = 0;
    for (const JobRecord& job : record->jobs) {
      const bool dropped = job.error && job.error->message.find("no buffer set was free") == 0;  // the host was late
      EXPECT_TRUE(!job.error || dropped) << job.error->text();
      done += job.error ? 0 : 1;
    }
    EXPECT_GT(done, 0);
    EXPECT_EQ(images[0].right + images[1].right, done);
    return *std::move(record);
  }
};

INSTANTIATE_TEST_SUITE_P(Waiting, CudaOverlap, testing::Values(test::kBusyWait, WaitKind::Block),
                         [](const auto& waiting) { return waiting.param == WaitKind::Block ? "Block" : "Busy"; });

// The bytes of each job come back, and none fails.
TEST_P(CudaOverlap, RunsJobsBesideEachOther) {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus < 2) GTEST_SKIP() << "skipped: 2 GPUs are needed";
  const Topology machine = real_machine();
  const RunRecord record = run_images(machine, pipelines(machine), 60);
  EXPECT_EQ(record.jobs.size(), 60U);
}

// A kernel of 400 ms, and a host that looks right behind its start and 500 ms later. A host that sleeps until it is
// woken is not held up meanwhile, but for what it comes too late: it would ask after 420 ms by itself. So of the time
// that passed, at least the kernel's is not the host's.
TEST(CudaOverlapBlock, APauseThatIsPlannedIsNotTheHosts) {
  Station station(std::make_unique<test::DeviceClock>(), test::make_cuda<GateKind::PollingKernel, WaitKind::Block>,
                  real_machine());
  auto kernel = station.prepare_overlapping(kernel_stream("s", station.at("gpu0"), "spin", 400'000'000), {});
  ASSERT_TRUE(kernel.has_value()) << kernel.error().text();
  const Duration issued = station.clock->now();
  ASSERT_TRUE(station.executor.issue(*kernel).has_value());
  EXPECT_FALSE(station.executor.query(*kernel));
  std::this_thread::sleep_for(milliseconds{500});
  const auto result = station.executor.wait_for(*kernel);
  ASSERT_TRUE(result.has_value()) << result.error().text();
  EXPECT_LE(result->held_up, station.clock->now() - issued - milliseconds{400});
}

// Up to gpu0, through a memory to gpu1 and back, beside jobs that do the same the other way around: the bytes of each
// job come back.
TEST_P(CudaOverlap, CopiesThroughAMemoryBesideOthers) {
  const Topology machine = test::two_sides();
  const VertexId mem = *machine.find_vertex("mem0");
  const VertexId gpus[] = {*machine.find_vertex("gpu0"), *machine.find_vertex("gpu1")};
  TaskSet set{machine, Policy::Edf, {}};
  set.overlap = Overlap::On;
  for (const std::size_t first : {0U, 1U}) {
    const VertexId here = gpus[first], there = gpus[1 - first];
    Task& task = set.tasks.emplace_back();
    task.name = machine.vertex(here).name;
    task.period = milliseconds{20};
    task.deadline = milliseconds{50};
    for (const auto& [from, to] : {std::pair(mem, here), {here, there}, {there, mem}})
      task.steps.emplace_back(Batch::make(machine, {copy_stream("s", from, to, 1'000'000)}).value());
  }
  run_images(machine, set, 40);
}

TEST_F(Cuda, HostWorkDoesNotOverlap) {
  const auto made = station.prepare_overlapping(kernel_stream("s", station.at("cpu0"), "checksum"), {});
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().message.find("kernel 'checksum' of stream 's' is"), 0U) << made.error().message;
}

// ---- memory

TEST_F(Cuda, MoreMemoryThanThereIsIsRefusedWithTheAmount) {
  cuda::MemoryPool::instance().trim();  // nothing is kept, so that nothing is said of it
  const auto refused = station.backend->allocate(station.at("gpu0"), Bytes{std::int64_t{1} << 50});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::Machine);
  EXPECT_EQ(refused.error().message.find("1 PiB more do not fit on gpu0: ") == 0 ||
                refused.error().message.find("1048576 GiB more do not fit on gpu0: ") == 0,
            true)
      << refused.error().message;
  EXPECT_EQ(refused.error().message.find("given back"), std::string::npos) << refused.error().message;
}

// Copies up, across and down, 10,000 times, a sample of them compared byte for byte. In the end nothing is missing.
TEST_F(Cuda, TenThousandBatchesLeaveNothingBehind) {
  const std::size_t size = 100'000;
  const auto round = [&](int runs) {
    const Buffer from = station.allocate(station.at("mem0"), size), to = station.allocate(station.at("mem0"), size);
    const Buffer a = station.allocate(station.at("gpu0"), size), b = station.allocate(station.at("gpu1"), size);
    const auto s = static_cast<std::int64_t>(size);
    auto up =
        station.prepare({copy_stream("up", station.at("mem0"), station.at("gpu0"), s)}, {bound(from.view(), a.view())});
    auto across = station.prepare({copy_stream("across", station.at("gpu0"), station.at("gpu1"), s)},
                                  {bound(a.view(), b.view())});
    auto down =
        station.prepare({copy_stream("down", station.at("gpu1"), station.at("mem0"), s)}, {bound(b.view(), to.view())});
    int wrong = 0;
    for (int run = 0; run < runs; run += 3) {
      const bool sampled = run % 100 < 3;
      if (sampled) station.write(from.view(), pattern(size, static_cast<std::uint64_t>(run)));
      for (PreparedBatch* batch : {&up, &across, &down}) wrong += station.executor.issue(*batch) ? 0 : 1;
      for (PreparedBatch* batch : {&up, &across, &down}) wrong += station.executor.synchronize(*batch) ? 0 : 1;
      if (sampled) wrong += station.read(to.view()) == pattern(size, static_cast<std::uint64_t>(run)) ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0);
  };
  round(30);  // what the driver takes once
  const std::size_t before = test::free_device_memory();
  round(test::rounds(10'000));
  EXPECT_EQ(test::free_device_memory(), before);
}

}  // namespace
}  // namespace tutti::internal
