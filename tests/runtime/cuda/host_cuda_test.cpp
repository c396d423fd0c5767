// The CUDA backend where something goes wrong, on GPUs that are executed on the host (tests/support/host_cuda).
#include "tests/support/host_cuda/host_cuda.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>

#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/core/baselines.hpp"
#include "runtime/cuda/base/copies.hpp"
#include "runtime/cuda/gates/signal.hpp"
#include "runtime/cuda/memory/memory_pool.hpp"
#include "tests/runtime/cuda/device_kernels.hpp"
#include "tests/runtime/small_machine.hpp"
#include "tests/support/two_sides.hpp"

extern "C" void set_nvml_processes(unsigned count);

namespace tutti::internal {
namespace {

using std::chrono::milliseconds;
using test::bound;
using test::copy_stream;
using test::kernel_stream;
using test::kPolling;
using test::pattern;
using test::Station;
using test::uncaptured;

std::unique_ptr<Clock> device_clock() { return std::make_unique<test::DeviceClock>(); }

/// A copy from mem0 to gpu0 on the small machine, and the buffers that it uses.
struct Upload {
  explicit Upload(Station& station, std::size_t size = 4096)
      : source(station.allocate(station.at("mem0"), size)),
        destination(station.allocate(station.at("gpu0"), size)),
        batch(station.copying(source.view(), destination.view())) {}

  Buffer source, destination;
  PreparedBatch batch;  // goes first
};

/// Ends a process that has not ended by itself after a minute.
void limit_time() { alarm(60); }

void print(const Expected<BatchResult>& result) {
  std::fprintf(stderr, "%s\n", result ? "fine" : result.error().message.c_str());
}

// ---- a call that fails

struct FailedCall {
  const char* function;
  GateKind gate;
  WaitKind waiting = test::kBusyWait;
};
void PrintTo(const FailedCall& call, std::ostream* out) { *out << call.function; }

class EnqueuingFails : public testing::TestWithParam<FailedCall> {};

INSTANTIATE_TEST_SUITE_P(Calls, EnqueuingFails,
                         testing::Values(FailedCall{"cudaSetDevice", GateKind::PollingKernel},
                                         FailedCall{"cudaMemcpyBatchAsync", GateKind::PollingKernel},
                                         FailedCall{"cudaEventRecord", GateKind::PollingKernel},
                                         FailedCall{"cudaLaunchKernel", GateKind::PollingKernel},
                                         FailedCall{"cuStreamWriteValue32", GateKind::HostTimed},
                                         FailedCall{"cuStreamWriteValue32", GateKind::PollingKernel},
                                         FailedCall{"cuStreamWaitValue32", GateKind::MemoryWait},
                                         FailedCall{"cuStreamWriteValue32", GateKind::HostTimed, WaitKind::Block},
                                         FailedCall{"cuStreamWriteValue32", GateKind::PollingKernel, WaitKind::Block},
                                         FailedCall{"cudaLaunchHostFunc", GateKind::MemoryWait, WaitKind::Block},
                                         FailedCall{"cudaLaunchHostFunc", GateKind::HostTimed, WaitKind::Block}));

// What could not be enqueued never ends; the run is given up once the driver says that all the rest is done. The next
// run is whole.
TEST_P(EnqueuingFails, TheRunIsReportedAndTheNextOneIsFine) {
  const auto& [function, gate, waiting] = GetParam();
  constexpr auto kBlock = WaitKind::Block;
  constexpr std::array kMakers{test::make_cuda<GateKind::PollingKernel, test::kBusyWait>,
                               test::make_cuda<GateKind::MemoryWait, test::kBusyWait>,
                               test::make_cuda<GateKind::HostTimed, test::kBusyWait>};
  constexpr std::array kSleepers{test::make_cuda<GateKind::PollingKernel, kBlock>,
                                 test::make_cuda<GateKind::MemoryWait, kBlock>,
                                 test::make_cuda<GateKind::HostTimed, kBlock>};
  Station station(device_clock(), (waiting == kBlock ? kSleepers : kMakers)[static_cast<std::size_t>(gate)]);
  Upload upload(station);
  const auto sent = pattern(4096, 3);
  station.write(upload.source.view(), sent);
  host_cuda::fail_next(function, cudaErrorInvalidValue);
  const auto failed = station.executor.run(upload.batch);
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, ErrorCode::Machine);
  EXPECT_NE(failed.error().message.find("failed"), std::string::npos) << failed.error().message;
  station.run(upload.batch);
  EXPECT_EQ(station.read(upload.destination.view()), sent);
}

class HostCuda : public testing::Test {
 protected:
  ~HostCuda() override {
    host_cuda::set_device_count(4);
    host_cuda::set_driver_version(CUDART_VERSION);
    host_cuda::set_peer_access(true);
    host_cuda::set_memory_operations(true);
    host_cuda::set_graphs_expand(false);
    set_nvml_processes(0);
    for (int i = 0; i < 4; ++i) host_cuda::device(i).copy_rate(host_cuda::kCopyRate);
  }

  /// Why there is no backend for a machine.
  static std::string refusal(GateKind gate = GateKind::PollingKernel, const Topology& machine = test::small_machine()) {
    const KernelRegistry kernels = KernelRegistry::with_builtins();
    test::DeviceClock clock;
    CudaOptions options = test::host_gpus(machine);
    options.gate = gate;
    const auto backend = make_cuda_backend(machine, kernels, clock, options);
    return backend ? "" : backend.error().message;
  }
};

TEST_F(HostCuda, MemoryThatTheDriverRefusesIsReportedAndCanBeHadLater) {
  Station station(device_clock(), kPolling);
  for (const auto& [function, where] :
       {std::pair("cudaMalloc", "gpu0"), {"cudaMemGetInfo", "gpu0"}, {"cudaHostRegister", "mem0"}}) {
    cuda::MemoryPool::instance().trim();
    host_cuda::fail_next(function, cudaErrorMemoryAllocation);
    const Bytes size{48 << 20};
    EXPECT_FALSE(station.backend->allocate(station.at(where), size).has_value()) << function;
    EXPECT_TRUE(station.backend->allocate(station.at(where), size).has_value()) << function;
  }
}

TEST_F(HostCuda, AStreamThatTheDriverRefusesLeavesNoBackend) {
  host_cuda::fail_next("cudaStreamCreateWithFlags", cudaErrorMemoryAllocation);
  EXPECT_NE(refusal(), "");
  EXPECT_EQ(refusal(), "");
}

TEST_F(HostCuda, HostWorkThatThrowsFailsItsBatch) {
  Station station(device_clock(), kPolling);
  const auto thrower = [](const KernelLaunch&) { throw std::runtime_error("no wafer"); };
  ASSERT_TRUE(station.kernels.add("thrower", thrower).has_value());
  auto batch = station.prepare({kernel_stream("s", station.at("cpu0"), "thrower")}, {{}});
  const auto failed = station.executor.run(batch);
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, ErrorCode::Kernel);
  EXPECT_NE(failed.error().message.find("no wafer"), std::string::npos) << failed.error().message;
}

// A copy has two events: at its start and at its end.
TEST_F(HostCuda, ABatchThatTheDriverRefusesLeavesNothingBehind) {
  Station station(device_clock(), kPolling);
  const Upload upload(station);
  for (const auto& [function, before] :
       {std::pair("cudaPointerGetAttributes", 0), {"cudaEventCreateWithFlags", 0}, {"cudaEventCreateWithFlags", 1}}) {
    host_cuda::fail_next(function, cudaErrorInvalidValue, before);
    const auto refused =
        station.executor.prepare(station.planned({copy_stream("s", station.at("mem0"), station.at("gpu0"), 4096)}),
                                 {bound(upload.source.view(), upload.destination.view())});
    ASSERT_FALSE(refused.has_value()) << function;
    EXPECT_NE(refused.error().message.find(function), std::string::npos) << refused.error().message;
  }
  Upload again(station);
  station.run(again.batch);
}

// ---- a lost GPU and a kernel that hangs; each in a process of its own, which must end by itself

/// A copy that takes some hours is under way when its GPU goes.
template <WaitKind waiting>
void lose_while_running() {
  limit_time();
  {
    Station station(device_clock(), test::make_cuda<GateKind::PollingKernel, waiting>);
    Upload first(station), armed(station);
    host_cuda::device(0).copy_rate(1e-9);
    static_cast<void>(station.executor.issue(first.batch));
    station.executor.arm(armed.batch);
    host_cuda::device(0).lose();
    print(station.executor.synchronize(first.batch));
    print(station.executor.run(armed.batch));
    std::fprintf(stderr, "%s\n", station.backend->allocate(station.at("gpu0"), Bytes{1 << 20}) ? "fine" : "refused");
  }
  std::exit(0);
}

TEST(HostCudaDeathTest, AGpuThatIsLostIsReportedAndNothingWaitsForIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const auto lose : {lose_while_running<test::kBusyWait>, lose_while_running<WaitKind::Block>})
    EXPECT_EXIT(lose(), testing::ExitedWithCode(0),
                "the copy of stream 'copy' has broken the GPU: cudaErrorUnknown.*\n"
                ".*a GPU was lost before\nrefused");
}

/// The host's clock, which a test sets ahead.
class AdvancedClock final : public Clock {
 public:
  [[nodiscard]] std::string_view name() const override { return clock_.name(); }
  [[nodiscard]] Duration now() const override {
    looks_.fetch_add(1);
    return clock_.now() + Duration{ahead_.load()};
  }
  void wait_until(Duration at) override { clock_.wait_until(at - Duration{ahead_.load()}); }
  [[nodiscard]] bool runs_by_itself() const override { return true; }

  void advance(Duration by) { ahead_.fetch_add(by.count()); }
  /// Returns when others have read the clock so often again.
  void wait_for_looks(int count) const {
    for (const int before = looks_.load(); looks_.load() < before + count;)
      std::this_thread::sleep_for(milliseconds(1));
  }

 private:
  test::DeviceClock clock_;
  std::atomic<Duration::rep> ahead_{0};
  mutable std::atomic<int> looks_{0};
};

/// A kernel has ended, and the conductor has seen it, when its GPU goes during a copy that takes some hours.
void lose_beside_an_ended_kernel() {
  limit_time();
  {
    Station station(std::make_unique<AdvancedClock>(), test::make_cuda<GateKind::PollingKernel, test::kBusyWait>);
    const auto& clock = dynamic_cast<AdvancedClock&>(*station.clock);
    const Buffer source = station.allocate(station.at("gpu0"), 4096), sink = station.allocate(station.at("mem0"), 4096);
    auto batch = station.prepare({kernel_stream("ended", station.at("gpu0"), "spin", 1000),
                                  copy_stream("down", station.at("gpu0"), station.at("mem0"), 4096)},
                                 {{}, bound(source.view(), sink.view())});
    host_cuda::device(0).copy_rate(1e-9);
    static_cast<void>(station.executor.issue(batch));
    constexpr int kOfTheCopy = 3;  // itself, its signal, its event
    while (host_cuda::device(0).unfinished() > kOfTheCopy) std::this_thread::sleep_for(milliseconds(1));
    clock.wait_for_looks(10);
    host_cuda::device(0).lose();
    print(station.executor.synchronize(batch));
  }
  std::exit(0);
}

TEST(HostCudaDeathTest, AKernelThatHasEndedHasNotBrokenItsGpu) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(lose_beside_an_ended_kernel(), testing::ExitedWithCode(0),
              "the copy of stream 'down' has broken the GPU");
}

/// Nobody has noticed yet that the GPU is gone: two batches are armed on it.
template <GateKind gate, WaitKind waiting = test::kBusyWait>
void lose_while_armed() {
  limit_time();
  {
    Station station(device_clock(), test::make_cuda<gate, waiting>);
    Upload first(station), second(station);
    station.executor.arm(first.batch);
    station.executor.arm(second.batch);
    host_cuda::device(0).lose();
    print(station.executor.run(first.batch));
  }
  std::exit(0);
}

TEST(HostCudaDeathTest, BatchesThatAreArmedOnALostGpuGo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const auto lose : {lose_while_armed<GateKind::PollingKernel>, lose_while_armed<GateKind::MemoryWait>,
                          lose_while_armed<GateKind::HostTimed>, lose_while_armed<GateKind::DeviceTimer>,
                          lose_while_armed<GateKind::PollingKernel, WaitKind::Block>,
                          lose_while_armed<GateKind::DeviceTimer, WaitKind::Block>})
    EXPECT_EXIT(lose(), testing::ExitedWithCode(0), "cudaErrorUnknown");
}

/// Buffers go after their backend, while the kernel still hangs. Then others compute on another GPU.
template <WaitKind waiting>
void outlive_a_hang() {
  limit_time();
  Buffer left;
  {
    Station station(device_clock(), test::make_cuda<GateKind::PollingKernel, waiting, 2>);
    left = station.allocate(station.at("gpu0"), 100'000'000);
    auto batch = station.prepare({kernel_stream("s", station.at("gpu0"), "spin")}, {{}});
    host_cuda::device(0).hang_next_kernel();
    print(station.executor.run(batch));
  }
  left = Buffer();
  const auto machine = test::make_machine(R"(  vertices:
    mem0: {kind: memory}
    gpu3: {kind: gpu, bus_id: "7e57:04:00.0"}
  links:
    - {from: mem0, to: gpu3, bandwidth: 1 GB/s, back: 1 GB/s}
)");
  const auto on_the_other = [](const Topology& topology, const KernelRegistry& kernels, Clock& clock) {
    return make_cuda_backend(topology, kernels, clock, {}).value();
  };
  Station other(device_clock(), on_the_other, machine);
  auto batch = other.prepare({kernel_stream("s", other.at("gpu3"), "spin")}, {{}});
  print(other.executor.run(batch));
  std::fprintf(stderr, "%d operations hang\n", static_cast<int>(host_cuda::device(0).unfinished() > 0));
  host_cuda::device(0).release();  // what was given up goes on: nobody waits for it, and it calls nobody that is gone
  while (host_cuda::device(0).unfinished() > 0) std::this_thread::sleep_for(milliseconds(1));
  std::exit(0);
}

TEST(HostCudaDeathTest, BuffersOutliveABackendWhoseGpuHangs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const auto outlive : {outlive_a_hang<test::kBusyWait>, outlive_a_hang<WaitKind::Block>})
    EXPECT_EXIT(outlive(), testing::ExitedWithCode(0),
                "kernel 'spin' of stream 's' has not returned within .*\nfine\n1 operations hang");
}

std::atomic<int> late_calls{0};

/// A batch of gpu1 is armed when gpu0 hangs. It goes while its copy, which takes a while, is in a queue with host work
/// behind it, and so does the kernel.
void abandon_host_work() {
  limit_time();
  {
    const auto make = [](const Topology& machine, const KernelRegistry& kernels, Clock& clock) {
      CudaOptions options = test::host_gpus(machine);
      options.watchdog = {2, milliseconds(10)};
      return make_cuda_backend(machine, kernels, clock, options).value();
    };
    Station station(device_clock(), make);
    static_cast<void>(station.kernels.add("late", [](const KernelLaunch&) { late_calls.fetch_add(1); }));
    const Buffer source = station.allocate(station.at("gpu1"), 4096), sink = station.allocate(station.at("mem0"), 4096);
    CommandStream stream = copy_stream("result", station.at("gpu1"), station.at("mem0"), 4096);
    stream.kernel = Kernel{station.at("cpu0"), Duration{10}, Duration{10}, "late"};
    auto armed = station.prepare({stream}, {bound(source.view(), sink.view())});
    auto hung = station.prepare({kernel_stream("s", station.at("gpu0"), "spin")}, {{}});
    host_cuda::device(1).copy_rate(4e-6);  // in a second
    host_cuda::device(0).hang_next_kernel();
    station.executor.arm(armed);
    print(station.executor.run(hung));
  }
  while (host_cuda::device(1).unfinished() > 0) std::this_thread::sleep_for(milliseconds(1));
  std::fprintf(stderr, "%d calls\n", late_calls.load());
  std::exit(0);
}

TEST(HostCudaDeathTest, HostWorkInQueuesOfALostBackendIsNotDone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(abandon_host_work(), testing::ExitedWithCode(0), "has not returned within .*\n0 calls");
}

constexpr Watchdog kPatient{3, std::chrono::hours(1)};

/// A kernel that shall take 100 s hangs. By the clock it is given up after 3900 s, and not a second sooner.
void hang_until_the_limit() {
  limit_time();
  {
    const auto make = [](const Topology& machine, const KernelRegistry& kernels, Clock& clock) {
      CudaOptions options = test::host_gpus(machine);
      options.watchdog = kPatient;
      options.waiting = WaitKind::Spin;  // a thread that sleeps does not see the clock jump
      return make_cuda_backend(machine, kernels, clock, options).value();
    };
    Station station(std::make_unique<AdvancedClock>(), make);
    auto& clock = dynamic_cast<AdvancedClock&>(*station.clock);
    auto batch = station.prepare({kernel_stream("s", station.at("gpu0"), "spin", 100'000'000'000)}, {{}});
    host_cuda::device(0).hang_next_kernel();
    static_cast<void>(station.executor.issue(batch));
    clock.wait_for_looks(1000);
    clock.advance(std::chrono::seconds(3800));
    clock.wait_for_looks(1000);
    std::fprintf(stderr, "%s\n", station.backend->busy() ? "under way" : "too soon");
    clock.advance(std::chrono::seconds(100));
    print(station.executor.synchronize(batch));
  }
  std::exit(0);
}

TEST(HostCudaDeathTest, AKernelThatHangsIsGivenUpAtTheLimitOfTheWatchdog) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      hang_until_the_limit(), testing::ExitedWithCode(0),
      "under way\n.*kernel 'spin' of stream 's' has not returned within 3900 s, the limit of --watchdog 3x.3600s "
      "where 100 s were planned");
}

/// A short watchdog, on the host's clock. The kernel that hangs was to take 20 ms.
void hang_while_the_conductor_sleeps() {
  limit_time();
  {
    const auto make = [](const Topology& machine, const KernelRegistry& kernels, Clock& clock) {
      CudaOptions options = test::host_gpus(machine);
      options.watchdog = {2, milliseconds(10)};
      options.waiting = WaitKind::Block;
      return make_cuda_backend(machine, kernels, clock, options).value();
    };
    Station station(std::make_unique<RealClock>(WaitKind::Block), make);
    auto batch = station.prepare({kernel_stream("s", station.at("gpu0"), "spin", 20'000'000)}, {{}});
    host_cuda::device(0).hang_next_kernel();
    print(station.executor.run(batch));
  }
  std::exit(0);
}

TEST(HostCudaDeathTest, AKernelThatHangsWhileTheConductorSleepsIsGivenUp) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(hang_while_the_conductor_sleeps(), testing::ExitedWithCode(0),
              "kernel 'spin' of stream 's' has not returned within 50 ms, the limit of --watchdog 2x.10ms where 20 ms");
}

// ---- who waits, and how

/// The host's clock, which counts how often it is read.
class CountedClock final : public Clock {
 public:
  [[nodiscard]] std::string_view name() const override { return clock_.name(); }
  [[nodiscard]] Duration now() const override {
    readings_.fetch_add(1, std::memory_order_relaxed);
    return clock_.now();
  }
  void wait_until(Duration at) override { clock_.wait_until(at); }
  [[nodiscard]] bool runs_by_itself() const override { return true; }
  [[nodiscard]] int readings() const { return readings_; }

 private:
  test::DeviceClock clock_;
  mutable std::atomic<int> readings_{0};
};

class NobodySpins : public testing::TestWithParam<GateKind> {
 protected:
  static std::unique_ptr<DeviceBackend> make_sleeping(const Topology& machine, const KernelRegistry& kernels,
                                                      Clock& clock) {
    CudaOptions options = test::host_gpus(machine);
    options.gate = GetParam();
    options.waiting = WaitKind::Block;
    return make_cuda_backend(machine, kernels, clock, options).value();
  }
};
INSTANTIATE_TEST_SUITE_P(Gates, NobodySpins, testing::ValuesIn(kGateKinds), [](const auto& gate) {
  std::string name;
  for (const char letter : to_string(gate.param))
    if (letter != '_') name += letter;
  return name;
});

// Kernels of 100, 60 and 20 ms, which end together: three gates, and a batch that is armed meanwhile. A thread that
// spins reads the clock at each look. Only for a run behind its plan does one look every 20 ms, and read it some times.
TEST_P(NobodySpins, WhileABatchRuns) {
  Station station(std::make_unique<CountedClock>(), make_sleeping);
  const auto& clock = dynamic_cast<CountedClock&>(*station.clock);
  auto batch = station.prepare({kernel_stream("a", station.at("gpu0"), "spin", 100'000'000),
                                kernel_stream("b", station.at("gpu1"), "spin", 60'000'000),
                                kernel_stream("c", station.at("gpu2"), "spin", 20'000'000)},
                               {{}, {}, {}});
  Upload next(station);
  station.run(batch);
  station.executor.arm(batch);
  const int before = clock.readings();
  ASSERT_TRUE(station.executor.issue(batch).has_value());
  if (GetParam() != GateKind::DeviceTimer) station.executor.arm(next.batch);  // a timer is read by asking for it
  const auto result = station.executor.wait_for(batch);
  const int readings = clock.readings() - before;
  ASSERT_TRUE(result.has_value()) << result.error().text();
  EXPECT_LE(readings, 60 + 10 * ((result->finish - result->start) / milliseconds(20)));
  station.expect_fine(station.executor.run(next.batch));
}

// Two kernels that were to take 100 s, one from 50 ms on, end at once: whoever sleeps until the plan is over, past the
// second gate or an end, ends with the alarm.
TEST_P(NobodySpins, GatesAndEndsAreMetInTime) {
  limit_time();
  Station station(std::make_unique<CountedClock>(), make_sleeping);
  ASSERT_TRUE(station.kernels.add(
      "quick", [](const KernelLaunch&) {}, [](const KernelLaunch&, DeviceStream) {}));
  auto batch = station.prepare({kernel_stream("a", station.at("gpu0"), "quick", 100'000'000'000),
                                kernel_stream("b", station.at("gpu1"), "quick", 99'950'000'000)},
                               {{}, {}});
  ASSERT_GE(batch.plan().timeline.streams[1].gate - batch.plan().timeline.streams[0].gate, milliseconds(49));
  for (int run = 0; run < 3; ++run) {
    const auto result = station.executor.run(batch);
    ASSERT_TRUE(result.has_value()) << result.error().text();
    EXPECT_GE(result->finish - result->start, milliseconds(49));
  }
  alarm(0);
}

// Seen by the clock, the kernel ends 10 s after the opening of its gate, and takes no time on its GPU. Its conductor
// may sleep for the 100 s that were planned, so no look of it was late, and what is left is the host's.
TEST_F(HostCuda, AnEndThatASleeperMayHaveSeenLateCountsAsHeldUp) {
  Station station(std::make_unique<AdvancedClock>(), test::make_cuda<GateKind::PollingKernel, WaitKind::Block>);
  auto& clock = dynamic_cast<AdvancedClock&>(*station.clock);
  const HostKernel jump = [&](const KernelLaunch&) { clock.advance(std::chrono::seconds(10)); };
  ASSERT_TRUE(station.kernels.add("jump", jump, test::device_mark(jump)).has_value());
  auto batch = station.prepare({uncaptured(kernel_stream("s", station.at("gpu0"), "jump", 100'000'000'000))}, {{}});
  const auto result = station.executor.run(batch);
  ASSERT_TRUE(result.has_value()) << result.error().text();
  EXPECT_GE(result->held_up, std::chrono::seconds(9));
}

// The second kernel's gate is to open after 50 s, and the clock jumps by 100 meanwhile. It is as late as the clock
// says, and not later than the run's end.
TEST_F(HostCuda, AGateThatOpensLateIsMeasured) {
  Station station(std::make_unique<AdvancedClock>(), test::make_cuda<GateKind::PollingKernel, test::kBusyWait>);
  auto& clock = dynamic_cast<AdvancedClock&>(*station.clock);
  const HostKernel jump = [&](const KernelLaunch&) { clock.advance(std::chrono::seconds(100)); };
  ASSERT_TRUE(station.kernels.add("jump", jump, test::device_mark(jump)).has_value());
  ASSERT_TRUE(station.kernels.add(
      "quick", [](const KernelLaunch&) {}, [](const KernelLaunch&, DeviceStream) {}));
  auto batch = station.prepare({uncaptured(kernel_stream("a", station.at("gpu0"), "jump", 200'000'000'000)),
                                kernel_stream("b", station.at("gpu1"), "quick", 150'000'000'000)},
                               {{}, {}});
  const auto result = station.executor.run(batch);
  ASSERT_TRUE(result.has_value()) << result.error().text();
  EXPECT_GE(result->gates_late, std::chrono::seconds(50));
  EXPECT_LE(result->gates_late, result->finish - result->start - std::chrono::seconds(50) + Duration{1});
}

// ---- lanes

// 40 runs of a lane each would use up all of 28, were none given back. What is armed stands in a queue of its GPU.
TEST_F(HostCuda, LanesAreGivenBackAfterEachRun) {
  Station station(device_clock(), kPolling);
  Upload upload(station);
  for (int run = 0; run < 40; ++run) station.run(upload.batch);
  while (host_cuda::device(0).unfinished() > 0) std::this_thread::sleep_for(milliseconds(1));
  station.executor.arm(upload.batch);
  EXPECT_GT(host_cuda::device(0).unfinished(), 0U);
  station.run(upload.batch);
}

// The copy's gate is in host memory. For the copy's end the kernel polls its own GPU, which the other one reaches.
TEST_F(HostCuda, ALaneWaitsForAPeerInTheMemoryOfItsOwnGpu) {
  Station station(device_clock(), kPolling);
  const Buffer source = station.allocate(station.at("gpu0"), 4096), there = station.allocate(station.at("gpu1"), 4096);
  CommandStream stream = copy_stream("across", station.at("gpu0"), station.at("gpu1"), 4096);
  stream.kernel = Kernel{station.at("gpu1"), Duration{10}, Duration{10}, "spin"};
  auto batch = station.prepare({stream}, {bound(source.view(), there.view())});
  const int before = host_cuda::polls_of_host_memory();
  station.run(batch);
  EXPECT_EQ(host_cuda::polls_of_host_memory() - before, 1);
}

// ---- what the host has

TEST_F(HostCuda, GpusAreFoundWithTheirLinksAndPeers) {
  const auto host = discover_host();
  ASSERT_TRUE(host.has_value()) << host.error().message;
  ASSERT_EQ(host->devices.size(), 4U);
  const DeviceFacts& second = host->devices[1];
  EXPECT_EQ(second.bus_id, "7e57:02:00.0");
  EXPECT_EQ(second.uuid, "GPU-71717171-7171-7171-7171-717171717171");
  EXPECT_EQ(second.memory.count, std::int64_t{1} << 30);
  EXPECT_EQ(second.peer_access, (std::vector<bool>{true, false, true, true}));
  EXPECT_EQ(second.nvlink, second.peer_access);
  EXPECT_EQ(second.link, (PcieLink{4, 16}));
  EXPECT_EQ(second.link_at_best, (PcieLink{5, 16}));
  EXPECT_EQ(current_link(second.bus_id), second.link);
}

TEST_F(HostCuda, HostsWithoutAWorkingDriverAreTold) {
  host_cuda::set_driver_version(0);
  EXPECT_EQ(discover_host().error().message.find("there is no GPU driver on this host"), 0U);
  host_cuda::set_driver_version(CUDART_VERSION);
  host_cuda::fail_next("cudaGetDeviceCount", cudaErrorInsufficientDriver);
  EXPECT_EQ(discover_host().error().message.find("the GPU driver serves CUDA "), 0U);
  host_cuda::fail_next("cudaGetDeviceCount", cudaErrorUnknown);
  EXPECT_EQ(discover_host().error().message.find("the GPU driver does not start (cudaErrorUnknown: "), 0U);
  host_cuda::set_device_count(0);
  EXPECT_EQ(discover_host().error().message.find("the GPU driver finds no GPU"), 0U);
}

TEST_F(HostCuda, AMachineThatTheHostIsNotIsRefused) {
  host_cuda::set_peer_access(false);
  const std::string peers = refusal();
  EXPECT_EQ(peers.find("'gpu0' and 'gpu1' reach each other in the machine"), 0U) << peers;
  EXPECT_EQ(refusal(GateKind::PollingKernel, test::two_sides()), "");  // whose GPUs do not
  host_cuda::set_peer_access(true);
  host_cuda::set_memory_operations(false);
  EXPECT_NE(refusal(GateKind::MemoryWait).find("cannot wait for memory; give --gate polling_kernel"),
            std::string::npos);
}

// 3000 kernels of a graph one by one are more than a queue takes behind a closed gate.
TEST_F(HostCuda, RunsWithoutGatesWhereGraphsAreLaunchedOneByOne) {
  host_cuda::set_graphs_expand(true);
  Station station(device_clock(), kPolling);
  ASSERT_TRUE(station.kernels
                  .add(
                      "counts", [](const KernelLaunch&) {}, test::device_counts(3000))
                  .has_value());
  const Buffer output = station.allocate(station.at("gpu0"), 64);
  auto batch =
      station.prepare({test::kernel_stream("a", station.at("gpu0"), "counts")}, {{{}, {}, {}, output.view(), {}}});
  station.run(batch);
  int count = 0;
  std::memcpy(&count, station.read(output.view()).data(), sizeof count);
  EXPECT_EQ(count, 3000);
  const auto notes = station.backend->notes();
  EXPECT_TRUE(std::ranges::any_of(notes, [](const std::string& note) {
    return note.starts_with("the launch of a kernel, or of a graph, waits here");
  }));
}

TEST_F(HostCuda, OtherProgramsOnAGpuAreReported) {
  Station station(device_clock(), kPolling);
  set_nvml_processes(3);
  const auto sentences = station.backend->foreign_load();
  ASSERT_EQ(sentences.size(), 3U);
  EXPECT_NE(sentences[0].find("process"), std::string::npos) << sentences[0];
}

/// The environment of the driver, for as long as this lives.
struct Connections {
  explicit Connections(const char* count) { setenv("CUDA_DEVICE_MAX_CONNECTIONS", count, 1); }
  Connections(const Connections&) = delete;  // it stands for the variable
  Connections& operator=(const Connections&) = delete;
  ~Connections() { setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1); }
};

// With 8 queues some of 29 streams share one, and a stream waits for the gates of those before it in its queue. One
// stream a queue is kept, of which one is that of service; on a loaded host a free one may be taken for held up.
TEST_F(HostCuda, StreamsThatWaitForEachOtherAreNotUsed) {
  const Connections eight("8");
  Station station(device_clock(), kPolling);
  const auto notes = station.backend->notes();
  const auto of_streams = [](const std::string& note) {
    return note.find(" streams of a GPU do not wait") != note.npos;
  };
  ASSERT_EQ(std::ranges::count_if(notes, of_streams), 3);
  EXPECT_LE(std::atoi(std::ranges::find_if(notes, of_streams)->c_str() + 5), 7);
  Upload upload(station), another(station);
  station.executor.arm(upload.batch);
  station.run(another.batch);
  station.run(upload.batch);
}

TEST_F(HostCuda, AGpuWithOneQueueIsRefused) {
  const Connections one("1");
  EXPECT_EQ(refusal().find("all streams of GPU 0 wait for each other"), 0U);
}

// ---- GPUs that are executed on the host

// The driver waits for all GPUs, whichever the memory is of.
TEST_F(HostCuda, FreeingMemoryOfOneGpuWaitsForAllOthers) {
  Station station(device_clock(), kPolling);
  Upload armed(station);
  const cuda::DeviceGuard guard(3);
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 100), cudaSuccess);
  station.executor.arm(armed.batch);
  std::thread frees([&] { EXPECT_EQ(cudaFree(memory), cudaSuccess); });
  while (host_cuda::waiting_calls() == 0) std::this_thread::yield();
  station.run(armed.batch);
  frees.join();
  EXPECT_EQ(host_cuda::waiting_calls(), 0);
}

TEST_F(HostCuda, MemoryThatWasNotWrittenIsNotZero) {
  const cuda::DeviceGuard guard(0);
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 100), cudaSuccess);
  EXPECT_NE(static_cast<const unsigned char*>(memory)[99], 0);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

// Its peers aside, a GPU reaches its own memory and what is pinned.
TEST_F(HostCuda, AWordOfAnotherGpuIsOutOfReachWithoutPeerAccess) {
  const auto driver = cuda::find_driver().value();
  const auto stream = cuda::make_stream(0).value();
  const auto theirs = cuda::make_device_memory(1, 64).value();
  const cuda::Signal<cuda::Count> word(reinterpret_cast<cuda::Count*>(theirs.get()));
  EXPECT_FALSE(cuda::set_in_stream(driver, stream.get(), word, 1).has_value());
  const cuda::DeviceGuard guard(0);
  ASSERT_EQ(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
  EXPECT_TRUE(cuda::set_in_stream(driver, stream.get(), word, 1).has_value());
  EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  EXPECT_EQ(cudaDeviceDisablePeerAccess(1), cudaSuccess);
}

// ---- copies

// 1 MB at a tenth of a byte a ns: 10 ms, on the GPU's own clock, where 1 was planned.
TEST_F(HostCuda, SlowCopiesAreMeasured) {
  Station station(device_clock(), kPolling);
  Upload upload(station, 1'000'000);
  station.run(upload.batch);
  host_cuda::device(0).copy_rate(0.1);
  station.run(upload.batch);
  const TransferInterval measured = *upload.batch.measured().streams[0].transfer;
  EXPECT_NEAR(static_cast<double>((measured.end - measured.start).count()), 1e7, 1e4);
}

TEST_F(HostCuda, DriversWithoutBatchesOfCopiesCopyOneByOne) {
  host_cuda::set_driver_version(cuda::kFirstWithBatches - 10);
  Station station(device_clock(), kPolling);
  host_cuda::fail_next("cudaMemcpyBatchAsync", cudaErrorInvalidValue);  // is never called
  const auto sent = pattern(3000, 1);
  const Buffer source = station.allocate(station.at("mem0"), 3000), there = station.allocate(station.at("gpu0"), 3000);
  station.write(source.view(), sent);
  station.copy(source.view(), there.view());
  EXPECT_EQ(station.read(there.view()), sent);
  host_cuda::set_driver_version(CUDART_VERSION);
  Station with_batches(device_clock(), kPolling);
  Upload upload(with_batches);
  EXPECT_FALSE(with_batches.executor.run(upload.batch).has_value());
}

// One and two words that lie at words; a kernel for all others. Nothing beside the bytes changes.
TEST_F(HostCuda, AStreamItselfWritesInlineCopiesOfOneOrTwoWords) {
  constexpr std::int64_t kSize = 24;
  Station station(device_clock(), kPolling);
  const Buffer source = station.allocate(station.at("mem0"), kSize),
               there = station.allocate(station.at("gpu0"), kSize);
  for (const auto& [size, offset, by_stream] : {std::tuple(4, 8, true),
                                                {8, 8, true},
                                                {8, 4, true},
                                                {4, 6, false},
                                                {8, 9, false},
                                                {3, 8, false},
                                                {6, 8, false},
                                                {12, 8, false}}) {
    SCOPED_TRACE(testing::Message() << size << " bytes at " << offset);
    const auto sent = pattern(kSize, 5), before = pattern(kSize, 8);
    station.write(source.view(), sent);
    station.write(there.view(), before);
    CommandStream stream = copy_stream("word", station.at("mem0"), station.at("gpu0"), size);
    stream.transfer->method = CopyMethod::Inline;
    auto batch = station.prepare(
        {stream}, {bound(test::part_of(source.view(), 1, size), test::part_of(there.view(), offset, size))});
    host_cuda::count_calls("cuStreamBatchMemOp");
    station.run(batch);
    EXPECT_EQ(host_cuda::counted_calls("cuStreamBatchMemOp"), by_stream ? 1 : 0);
    auto expected = before;
    std::copy_n(sent.begin() + 1, size, expected.begin() + offset);
    EXPECT_EQ(station.read(there.view()), expected);
  }
}

// A kernel hangs for a while on gpu0; what is submitted behind it has a lane on gpu0 and one on gpu1, which each wait
// for its one lane, by an event. What is armed ahead does not know what it follows, and what is submitted alone follows
// nothing.
TEST_F(HostCuda, ARunThatIsSubmittedBehindAnotherOneWaitsForItsLanes) {
  Station station(device_clock(), test::make_cuda<GateKind::DeviceTimer, test::kBusyWait>);
  auto before = station.prepare({kernel_stream("s", station.at("gpu0"), "spin")}, {{}});
  auto batch = station.prepare(
      {kernel_stream("a", station.at("gpu0"), "spin"), kernel_stream("b", station.at("gpu1"), "spin")}, {{}, {}});
  const auto run = [&](bool behind, bool armed) {
    host_cuda::count_calls("cudaStreamWaitEvent");
    if (armed) station.executor.arm(batch);
    if (behind) {
      host_cuda::device(0).hang_next_kernel();
      EXPECT_TRUE(station.executor.issue(before).has_value());
    }
    EXPECT_TRUE(station.executor.issue(batch).has_value());
    host_cuda::device(0).release();
    if (behind) station.expect_fine(station.executor.synchronize(before));
    station.expect_fine(station.executor.synchronize(batch));
    return host_cuda::counted_calls("cudaStreamWaitEvent");
  };
  EXPECT_EQ(run(true, false), 2);
  EXPECT_EQ(run(true, true), 0);
  EXPECT_EQ(run(false, false), 0);
  EXPECT_EQ(run(true, false), 2);
}

// From gpu0 to gpu2 in chunks of 1000 bytes, in and out of host memory: 2 * 10 copies of 10,000 bytes, and 2 * 11 of
// 500 more.
TEST_F(HostCuda, StagedCopiesAreAsManyAsTheirChunks) {
  Station station(device_clock(), kPolling);
  for (const auto& [size, copies] : {std::pair(10'000, 20), {10'500, 22}}) {
    const auto bytes = static_cast<std::size_t>(size);
    const Buffer source = station.allocate(station.at("gpu0"), bytes),
                 there = station.allocate(station.at("gpu2"), bytes);
    station.write(source.view(), pattern(bytes, 6));
    auto batch = station.copying(source.view(), there.view());
    host_cuda::count_calls("cudaMemcpyAsync");
    station.run(batch);
    EXPECT_EQ(host_cuda::counted_calls("cudaMemcpyAsync"), copies) << size;
    EXPECT_EQ(station.read(there.view()), pattern(bytes, 6)) << size;
  }
}

// What our batches are compared with: one call a GPU, and kernels behind it. They read what the copies brought.
TEST_F(HostCuda, TheBaselineMovesTheSameBytes) {
  Station station(device_clock(), kPolling);
  const auto baseline = station.backend->baselines()->memcpy_batch();
  ASSERT_TRUE(baseline.has_value()) << baseline.error().text();
  Executor executor(station.machine, **baseline, *station.clock);
  const auto sent = pattern(5000, 4);
  const Buffer source = station.allocate(station.at("mem0"), 5000), up = station.allocate(station.at("gpu0"), 5000),
               sum = station.allocate(station.at("gpu0"), 8), across = station.allocate(station.at("gpu1"), 5000);
  station.write(source.view(), sent);
  auto streams = std::vector{copy_stream("up", station.at("mem0"), station.at("gpu0"), 5000),
                             copy_stream("across", station.at("gpu0"), station.at("gpu1"), 5000),
                             kernel_stream("beside", station.at("gpu1"), "spin", 1000)};
  streams[0].kernel = Kernel{station.at("gpu0"), Duration{10}, Duration{10}, "checksum"};
  streams[1].kernel = Kernel{station.at("gpu1"), Duration{10}, Duration{10}, "spin"};
  auto batch = executor.prepare(station.planned(streams),
                                {{source.view(), up.view(), {}, sum.view(), {}}, bound(up.view(), across.view()), {}});
  ASSERT_TRUE(batch.has_value()) << batch.error().text();
  for (int run = 0; run < 3; ++run) {
    const auto result = executor.run(*batch);
    ASSERT_TRUE(result.has_value()) << result.error().text();
    EXPECT_GE(result->finish, result->start);
  }
  std::array<std::byte, 8> expected{};
  station.kernels.find("checksum")->host({sent, expected, {}, {}});
  EXPECT_EQ(station.read(up.view()), sent);
  EXPECT_EQ(station.read(sum.view()), std::vector<std::byte>(expected.begin(), expected.end()));
  EXPECT_EQ(batch->measured().streams.size(), 3U);
}

// 100 kB at 1 byte/ns: 100 us on the GPU, and the time between two calls.
TEST_F(HostCuda, APlainCopyIsTimed) {
  Station station(device_clock(), kPolling);
  const Buffer source = station.allocate(station.at("mem0"), 100'000),
               there = station.allocate(station.at("gpu0"), 100'000);
  host_cuda::device(0).copy_rate(1);
  const auto times = station.backend->baselines()->time_plain_copy(source.view(), there.view());
  ASSERT_TRUE(times.has_value()) << times.error().text();
  EXPECT_GE(times->on_the_gpu, std::chrono::microseconds(99));
  EXPECT_GE(times->on_the_host, std::chrono::microseconds(99));
  EXPECT_FALSE(station.backend->baselines()->time_plain_copy(source.view(), source.view()).has_value());
}

}  // namespace
}  // namespace tutti::internal
