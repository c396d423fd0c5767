// Which command has broken a GPU. Each fault is in a process of its own, since the GPU is lost to it.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/runtime/cuda/device_kernels.hpp"
#include "tests/runtime/small_machine.hpp"

namespace tutti::internal {
namespace {

using test::kernel_stream;
using test::Station;

constexpr int kKernels = 12, kLanes = 4;

/// A queue for the kernels of each GPU.
Topology four_gpus() {
  return test::make_machine(R"(  vertices:
    mem0: {kind: memory}
    gpu0: {kind: gpu}
    gpu1: {kind: gpu}
    gpu2: {kind: gpu}
    gpu3: {kind: gpu}
  links:
    - {from: mem0, to: gpu0, bandwidth: 50 GB/s, back: 50 GB/s}
    - {from: mem0, to: gpu1, bandwidth: 50 GB/s, back: 50 GB/s}
    - {from: mem0, to: gpu2, bandwidth: 50 GB/s, back: 50 GB/s}
    - {from: mem0, to: gpu3, bandwidth: 50 GB/s, back: 50 GB/s}
  peer_access: none
)");
}

enum class GpusOfHost : std::uint8_t { Several, One };

template <GpusOfHost gpus, bool serialize, GateKind gate = GateKind::PollingKernel>
std::unique_ptr<DeviceBackend> make_backend(const Topology& machine, const KernelRegistry& kernels, Clock& clock) {
  CudaOptions options = test::host_gpus(machine);
  options.serialize = serialize;
  options.watchdog.beyond = std::chrono::minutes(1);  // nothing hangs here, and a busy host takes seconds
  options.gate = gate;
  if (gpus == GpusOfHost::One)
    for (auto& [name, id] : options.bind) id = options.bind.front().second;
  return make_cuda_backend(machine, kernels, clock, options).value();
}

/// By gate: where the host keeps the time, and not the GPUs, it enqueues while the GPU breaks.
template <GpusOfHost gpus>
constexpr std::array kByGate{
    make_backend<gpus, false, GateKind::PollingKernel>, make_backend<gpus, false, GateKind::MemoryWait>,
    make_backend<gpus, false, GateKind::HostTimed>, make_backend<gpus, false, GateKind::DeviceTimer>};

/// Streams that an error names.
int streams_in(const std::string& message) {
  int count = 0;
  for (std::size_t at = 0; (at = message.find("of stream '", at)) != std::string::npos; ++at) ++count;
  return count;
}

/// Runs twelve kernels in four lanes, of which one is faulty, and says how many streams the error names; none where the
/// faulty one is not among them. A run without a fault goes before.
void break_gpu(Station::MakeBackend make, int faulty) {
  {
    Station station(std::make_unique<test::DeviceClock>(), make, four_gpus());
    static_cast<void>(station.kernels.add(
        "faulty", [](const KernelLaunch&) {}, test::device_fault()));
    std::vector<CommandStream> streams;
    for (int i = 0; i < kKernels; ++i)
      streams.push_back(
          kernel_stream(fmt::format("s{}", i), station.at(fmt::format("gpu{}", i % kLanes)), "spin", 1000));
    const std::vector<StreamBinding> bindings(kKernels);
    auto before = station.prepare(streams, bindings);
    station.run(before);
    streams[static_cast<std::size_t>(faulty)].kernel->name = "faulty";
    streams[static_cast<std::size_t>(faulty)].kernel->capture = Capture::Never;
    auto broken = station.prepare(streams, bindings);
    const auto result = station.executor.run(broken);
    const std::string message = result ? "fine" : result.error().message;
    const bool named = message.find(fmt::format("kernel 'faulty' of stream 's{}'", faulty)) != std::string::npos;
    const bool fault = message.find(" has broken the GPU: cudaErrorIllegalAddress") != std::string::npos;
    const bool hint = message.find("--serialize names the one") != std::string::npos;
    std::fprintf(stderr, "names %d streams%s\n%s\n", named && fault ? streams_in(message) : 0,
                 hint ? ", and --serialize" : "", message.c_str());
  }
  std::exit(0);
}

class FaultDeathTest : public testing::TestWithParam<int> {};

/// Each case is a program of its own, which takes seconds to start on real GPUs: those have one machine less, and four
/// kernels, with which every gate, every lane and every place in a lane has its turn.
constexpr bool kHasTime = !test::kDevicesAreInTime;
INSTANTIATE_TEST_SUITE_P(Kernels, FaultDeathTest,
                         testing::ValuesIn(kHasTime ? std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
                                                    : std::vector{0, 5, 6, 11}));
static_assert(kKernels == 12 && kLanes == 4);

// Where each GPU of the machine is one of the host, three kernels are in the faulty one's lane; else twelve may be it,
// less those of lanes that have ended.
TEST_P(FaultDeathTest, TheFaultyKernelIsAlwaysNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto gate = static_cast<std::size_t>(GetParam() + GetParam() / kLanes) % kGateKinds.size();
  const bool four = discover_host()->devices.size() >= kLanes;
  EXPECT_EXIT(break_gpu(kByGate<GpusOfHost::Several>[gate], GetParam()), testing::ExitedWithCode(0),
              four ? "names 3 streams, and --serialize\n" : "names ([3-9]|1[0-2]) streams, and --serialize\n");
  if (!kHasTime) return;
  EXPECT_EXIT(break_gpu(kByGate<GpusOfHost::One>[gate], GetParam()), testing::ExitedWithCode(0),
              "names ([3-9]|1[0-2]) streams, and --serialize\n");
}

TEST_P(FaultDeathTest, WhereTheHostWaitsAfterEachCommandItAloneIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(break_gpu(make_backend<GpusOfHost::Several, true>, GetParam()), testing::ExitedWithCode(0),
              "names 1 streams\n");
  if (!kHasTime) return;
  EXPECT_EXIT(break_gpu(make_backend<GpusOfHost::One, true>, GetParam()), testing::ExitedWithCode(0),
              "names 1 streams\n");
}

/// A copy that takes some ms and a faulty kernel, which may run beside each other. The copy is asked first.
template <bool serialize>
void break_gpu_beside_a_copy() {
  {
    constexpr std::size_t kSize = 64 << 20;
    Station station(std::make_unique<test::DeviceClock>(), make_backend<GpusOfHost::One, serialize>, four_gpus());
    static_cast<void>(station.kernels.add(
        "faulty", [](const KernelLaunch&) {}, test::device_fault()));
    const Buffer source = station.allocate(station.at("mem0"), kSize),
                 there = station.allocate(station.at("gpu0"), kSize);
    auto copy = station.prepare_overlapping(test::copy_stream("up", station.at("mem0"), station.at("gpu0"), kSize),
                                            test::bound(source.view(), there.view()));
    auto faulty = station.prepare_overlapping(test::uncaptured(kernel_stream("bad", station.at("gpu0"), "faulty")), {});
    static_cast<void>(station.executor.issue(*copy));
    static_cast<void>(station.executor.issue(*faulty));
    const auto first = station.executor.synchronize(*copy), second = station.executor.synchronize(*faulty);
    for (const auto& result : {first, second})
      std::fprintf(stderr, "%s\n", result ? "fine" : result.error().message.c_str());
  }
  std::exit(0);
}

TEST(FaultOfOverlapDeathTest, OperationsUnderWayAreNamedTogether) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // A real copy may have ended when its GPU says that it is broken.
  EXPECT_EXIT(break_gpu_beside_a_copy<false>(), testing::ExitedWithCode(0),
              test::kDevicesAreInTime
                  ? "kernel 'faulty' of stream 'bad'.* has broken the GPU"
                  : "the copy of stream 'up' or kernel 'faulty' of stream 'bad' .an operation. has broken the GPU");
  EXPECT_EXIT(break_gpu_beside_a_copy<true>(), testing::ExitedWithCode(0),
              "fine\nan operation: kernel 'faulty' of stream 'bad' has broken the GPU");
}

}  // namespace
}  // namespace tutti::internal
