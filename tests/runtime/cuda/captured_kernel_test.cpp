// What kernels of users do, as real programs do it: they are called when they are prepared, and launched as graphs.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/cuda/base/handles.hpp"
#include "runtime/cuda/lanes/graph_check.hpp"
#include "tests/runtime/cuda/device_kernels.hpp"
#include "tests/runtime/cuda/one_kernel.hpp"
#include "tests/runtime/small_machine.hpp"

namespace tutti::internal {
namespace {

using std::chrono::milliseconds;
using test::copy_stream;
using test::kernel_stream;
using test::kPolling;
using test::Station;
using test::uncaptured;

class CapturedKernel : public test::OneKernel {
 protected:
  /// Why a kernel cannot be prepared; empty where it can.
  std::string refusal_of(DeviceKernel kernel, Capture capture = Capture::Once) {
    const std::string name = "users" + std::to_string(added++);
    add(name, std::move(kernel));
    const auto prepared = prepare(name, capture);
    if (prepared) return "";
    EXPECT_EQ(prepared.error().code, ErrorCode::Kernel);
    const std::string begin = "kernel '" + name + "' of stream 's' ", message = prepared.error().message;
    EXPECT_EQ(message.find(begin), 0U) << message;
    return message.substr(std::min(begin.size(), message.size()));
  }

  int added = 0;
};

INSTANTIATE_TEST_SUITE_P(Gates, CapturedKernel,
                         testing::Values(kPolling, test::make_cuda<GateKind::DeviceTimer>,
                                         test::make_cuda<GateKind::HostTimed>));

// A network, or a loop over time: more kernels than a queue takes ahead of its gate.
TEST_P(CapturedKernel, IsOneOperationWhateverItLaunches) {
  add("counts", test::device_counts(3000));
  auto batch = prepare("counts");
  ASSERT_TRUE(batch.has_value()) << batch.error().text();
  EXPECT_EQ(word(), 0) << "its first run is on memory of its own";
  const int before = word();
  station.run(*batch);
  station.executor.arm(*batch);
  station.run(*batch);
  EXPECT_EQ(word() - before, 6000);
}

TEST_P(CapturedKernel, IsCalledWhenItIsPreparedAlone) {
  std::atomic<int> calls = 0;
  add("counts", [&calls, counts = test::device_counts(1)](const KernelLaunch& launch, DeviceStream stream) {
    ++calls;
    counts(launch, stream);
  });
  auto batch = prepare("counts");
  ASSERT_TRUE(batch.has_value()) << batch.error().text();
  EXPECT_EQ(calls, 2) << "once to run, once to be recorded";
  for (int run = 0; run < 5; ++run) station.run(*batch);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(word(), 5);
}

TEST_P(CapturedKernel, IsCalledInEachRunWhereItIsNeverCaptured) {
  std::atomic<int> calls = 0;
  add("counts", [&calls, counts = test::device_counts(1)](const KernelLaunch& launch, DeviceStream stream) {
    ++calls;
    counts(launch, stream);
  });
  auto batch = prepare("counts", Capture::Never);
  ASSERT_TRUE(batch.has_value()) << batch.error().text();
  EXPECT_EQ(calls, 1);
  for (int run = 0; run < 5; ++run) station.run(*batch);
  EXPECT_EQ(calls, 6);
}

// Libraries load, plan and allocate when they are called first.
TEST_P(CapturedKernel, MayDoWhatItLikesInItsFirstRun) {
  bool first = true;
  add("lazy", [&first, allocates = test::device_allocates(), waits = test::device_waits(),
               counts = test::device_counts(1)](const KernelLaunch& launch, DeviceStream stream) {
    if (std::exchange(first, false)) {
      allocates(launch, stream);
      waits(launch, stream);
    }
    counts(launch, stream);
  });
  auto batch = prepare("lazy");
  ASSERT_TRUE(batch.has_value()) << batch.error().text();
  station.run(*batch);
  EXPECT_EQ(word(), 1);
}

// Another thread of the program allocates all the while.
TEST_P(CapturedKernel, LetsOtherThreadsAllocate) {
  std::atomic<bool> done = false;
  std::atomic<int> allocated = 0;
  std::thread other([&] {
    const DeviceKernel allocates = test::device_allocates();
    for (; !done; ++allocated) allocates({}, nullptr);
  });
  while (allocated == 0) std::this_thread::yield();
  add("slow", [&, counts = test::device_counts(1)](const KernelLaunch& launch, DeviceStream stream) {
    const int before = allocated;
    while (allocated < before + 2) std::this_thread::yield();
    counts(launch, stream);
  });
  auto batch = prepare("slow");
  done = true;
  other.join();
  ASSERT_TRUE(batch.has_value()) << batch.error().text();
  station.run(*batch);
  EXPECT_EQ(word(), 1);
}

TEST_P(CapturedKernel, IsRefusedWhereItCopiesOrdinaryMemory) {
  std::vector<std::byte> ordinary(64);
  EXPECT_EQ(
      refusal_of(test::device_fetches(ordinary)),
      "enqueues, as operation 1 of 1, a copy into ordinary memory of the host, for which the call would wait until "
      "the gate opens; pin that memory (cudaHostAlloc, cudaHostRegister)");
  EXPECT_EQ(refusal_of(test::device_fetches(test::pinned(64))), "");
}

TEST_P(CapturedKernel, IsRefusedWhereItCallsTheHost) {
  const std::string refusal = refusal_of(test::device_mark([](const KernelLaunch&) {}));
  EXPECT_EQ(refusal.find("enqueues, as operation 1 of 1, a function of the host (cudaLaunchHostFunc)"), 0U) << refusal;
  EXPECT_NE(refusal.find("'capture: never'"), std::string::npos) << refusal;
}

TEST_P(CapturedKernel, IsRefusedWhereItIsTooLongForAQueueAndNeverCaptured) {
  EXPECT_EQ(
      refusal_of(test::device_counts(901), Capture::Never),
      "enqueues 901 operations, of which a queue takes 900 ahead of its gate; leave out 'capture: never', so that "
      "they are one");
  EXPECT_EQ(refusal_of(test::device_counts(900), Capture::Never), "");
}

TEST_P(CapturedKernel, IsRefusedWhereItThrows) {
  EXPECT_EQ(refusal_of([](const KernelLaunch&, DeviceStream) { throw std::runtime_error("no weights"); }),
            "failed: no weights; its batch's results are invalid");
}

TEST_P(CapturedKernel, ComesInALine) {
  const cuda::DeviceGuard guard(0);
  const cuda::Stream stream = cuda::make_stream(0).value();
  const DeviceKernel forks = test::device_forks(3, true);
  const KernelLaunch launch{{}, {output.view().data, 64}, {}, {}};
  forks(launch, stream.get());
  ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
  forks(launch, stream.get());
  cudaGraph_t captured = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream.get(), &captured), cudaSuccess);
  const cuda::Graph graph(captured);
  ASSERT_TRUE(cuda::put_in_line(captured).has_value());
  EXPECT_EQ(cuda::size_of_graph(captured), 13U);
  std::size_t edges = 0;
  std::vector<cudaGraphNode_t> from(12), to(12);
#if CUDART_VERSION >= 13000
  ASSERT_EQ(cudaGraphGetEdges(captured, nullptr, nullptr, nullptr, &edges), cudaSuccess);
  ASSERT_EQ(edges, 12U);
  ASSERT_EQ(cudaGraphGetEdges(captured, from.data(), to.data(), nullptr, &edges), cudaSuccess);
#else
  ASSERT_EQ(cudaGraphGetEdges(captured, nullptr, nullptr, &edges), cudaSuccess);
  ASSERT_EQ(edges, 12U);
  ASSERT_EQ(cudaGraphGetEdges(captured, from.data(), to.data(), &edges), cudaSuccess);
#endif
  EXPECT_EQ(std::set(from.begin(), from.end()).size(), 12U) << "one behind each";
  EXPECT_EQ(std::set(to.begin(), to.end()).size(), 12U) << "one before each";
}

// Copies and kernels in branches, in all lanes of the GPU at once: the last one that is armed is the first one to run.
TEST_P(CapturedKernel, EndsWhileTheGatesOfAllOtherLanesAreClosed) {
  add("mixed", test::device_forks(8, true));
  add("kernels", test::device_forks(16, false));
  std::vector<PreparedBatch> batches;
  for (int i = 0; i < 30; ++i) {
    auto batch = prepare(i % 2 == 0 ? "mixed" : "kernels");
    ASSERT_TRUE(batch.has_value()) << batch.error().text();
    batches.push_back(*std::move(batch));
  }
  for (int round = 1; round <= 2; ++round) {
    for (PreparedBatch& batch : batches) station.executor.arm(batch);
    for (std::size_t i = batches.size(); i-- > 0;) station.run(batches[i]);
    EXPECT_EQ(word(), round * 15 * (9 + 17));
  }
}

// ---- each in a process of its own, of which CUDA or a thread is lost

// As compute-sanitizer sets it, and debuggers. On a GPU the variable is read when the program uses CUDA first.
void run_with_blocking_launches() {
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  alarm(60);
  {
    Station station(std::make_unique<test::DeviceClock>(), kPolling);
    static_cast<void>(station.kernels.add(
        "counts", [](const KernelLaunch&) {}, test::device_counts(3)));
    const Buffer output = station.allocate(station.at("gpu0"), 64);
    auto batch = station.prepare(
        {kernel_stream("a", station.at("gpu0"), "counts"), kernel_stream("b", station.at("gpu1"), "spin", 100'000)},
        {{{}, {}, {}, output.view(), {}}, {}});
    station.run(batch);
    for (const std::string& note : station.backend->notes()) std::fprintf(stderr, "%s\n", note.c_str());
    std::fprintf(stderr, "%d\n", static_cast<int>(station.read(output.view()).front()));
  }
  std::exit(0);
}

TEST(CapturedKernelDeathTest, RunsWithoutGatesWhereLaunchesWait) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_with_blocking_launches(), testing::ExitedWithCode(0), "waits here(.|\n)*\n3\n");
}

/// The kernel's own code is called behind a closed gate, and does not come back.
template <GateKind gate>
void run_what_never_returns() {
  alarm(60);
  {
    Station station(std::make_unique<test::DeviceClock>(), test::make_cuda<gate, test::kDeviceWait, 2>);
    static_cast<void>(station.kernels.add(
        "stuck", [](const KernelLaunch&) {},
        [calls = std::make_shared<int>()](const KernelLaunch&, DeviceStream) {
          while (*calls > 0) std::this_thread::sleep_for(milliseconds(10));
          ++*calls;
        }));
    auto other = station.prepare({kernel_stream("t", station.at("gpu0"), "spin")}, {{}});
    auto batch = station.prepare({uncaptured(kernel_stream("s", station.at("gpu0"), "stuck"))}, {{}});
    station.executor.arm(other);
    const auto result = station.executor.run(batch);
    const auto next = station.executor.run(other);
    std::fprintf(stderr, "%s | %s\n", result ? "fine" : result.error().message.c_str(),
                 next ? "fine" : next.error().message.c_str());
  }
  std::exit(0);
}

TEST(CapturedKernelDeathTest, ACallThatDoesNotReturnIsLeftAlone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr auto kWords =
      "the call that enqueues kernel 'stuck' of stream 's' has not returned within .* \\| .*a GPU was lost";
  EXPECT_EXIT(run_what_never_returns<GateKind::PollingKernel>(), testing::ExitedWithCode(0), kWords);
  EXPECT_EXIT(run_what_never_returns<GateKind::DeviceTimer>(), testing::ExitedWithCode(0), kWords);
}

/// A kernel that does not end is found when it is prepared.
void prepare_what_never_ends() {
  alarm(60);
  {
    Station station(std::make_unique<test::DeviceClock>(),
                    test::make_cuda<GateKind::PollingKernel, test::kDeviceWait, 2>);
    static_cast<void>(station.kernels.add(
        "hangs", [](const KernelLaunch&) {}, test::device_hang()));
    const Buffer input = station.allocate(station.at("gpu0"), 64);
    const auto refused = station.executor.prepare(station.planned({kernel_stream("s", station.at("gpu0"), "hangs")}),
                                                  {{{}, {}, input.view(), {}, {}}});
    std::fprintf(stderr, "%s\n", refused ? "fine" : refused.error().message.c_str());
  }
  std::exit(0);
}

TEST(CapturedKernelDeathTest, AKernelThatDoesNotEndIsFoundWhenItIsPrepared) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(prepare_what_never_ends(), testing::ExitedWithCode(0),
              "kernel 'hangs' of stream 's' has not ended within 5 s when it was prepared");
}

}  // namespace
}  // namespace tutti::internal
