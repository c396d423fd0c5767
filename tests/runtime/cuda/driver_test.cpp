// What the backend relies on the driver for, behind a closed gate above all: on GPUs, and on those that are executed on
// the host, which shall not differ.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "runtime/cuda/gates/signal.hpp"

namespace tutti::internal::cuda {
namespace {

constexpr std::size_t kSize = std::size_t{1} << 20;

/// A gate that holds a stream of the first GPU.
class DriverTest : public testing::Test {
 protected:
  void close() { ASSERT_TRUE(hold_by_kernel(gated.get(), gate, ++run).has_value()); }
  void open() {
    gate.set(run);
    ASSERT_EQ(cudaStreamSynchronize(gated.get()), cudaSuccess);
  }

  /// Makes a call behind the closed gate that waits for it.
  template <class Call>
  void expect_waits(const Call& call, const char* what) {
    close();
    std::atomic<bool> returned{false};
    cudaError_t status = cudaSuccess;
    std::thread caller([&] {
      const DeviceGuard on_the_same(0);
      status = call();
      returned = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_FALSE(returned) << what;
    open();
    caller.join();
    EXPECT_EQ(status, cudaSuccess) << what;
    EXPECT_EQ(cudaStreamSynchronize(gated.get()), cudaSuccess) << what;
  }

  DeviceGuard guard{0};
  Driver driver = find_driver().value();
  Stream gated = make_stream(0).value(), other = make_stream(0).value();
  SignalBoard board = make_signal_board(2).value();
  HostSignal<Count> gate = board.take<Count>(), done = board.take<Count>();
  Count run = 0;
};

/// Host memory in whole pages.
struct Pages {
  explicit Pages(std::size_t size) : data(std::aligned_alloc(4096, size)) {}
  Pages(const Pages&) = delete;  // it owns them
  Pages& operator=(const Pages&) = delete;
  ~Pages() { std::free(data); }

  void* data;
};

TEST_F(DriverTest, FreeingAndUnpinningWaitForTheGate) {
  const Pages pages(kSize);
  void *memory = nullptr, *pinned = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, kSize), cudaSuccess);
  ASSERT_EQ(cudaHostAlloc(&pinned, kSize, cudaHostAllocDefault), cudaSuccess);
  ASSERT_EQ(cudaHostRegister(pages.data, kSize, cudaHostRegisterDefault), cudaSuccess);
  expect_waits([&] { return cudaFree(memory); }, "cudaFree");
  expect_waits([&] { return cudaFreeHost(pinned); }, "cudaFreeHost");
  expect_waits([&] { return cudaHostUnregister(pages.data); }, "cudaHostUnregister");
}

TEST_F(DriverTest, CopiesWithinTheHostWaitForTheGate) {
  void* pinned = nullptr;
  ASSERT_EQ(cudaHostAlloc(&pinned, 2 * kSize, cudaHostAllocDefault), cudaSuccess);
  std::byte* const to = static_cast<std::byte*>(pinned) + kSize;
  expect_waits([&] { return cudaMemcpyAsync(to, pinned, kSize, cudaMemcpyDefault, gated.get()); }, "cudaMemcpyAsync");
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

// Were it otherwise, this would never end.
TEST_F(DriverTest, NothingElseDoes) {
  const Pages pages(kSize);
  void* memory = nullptr;
  close();
  EXPECT_EQ(cudaMalloc(&memory, kSize), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(pages.data, kSize, cudaHostRegisterDefault), cudaSuccess);
  {
    const Stream stream = make_stream(0).value();
    const Event event = make_event(0, cudaEventDefault).value();
    EXPECT_TRUE(zero(0, static_cast<std::byte*>(memory), kSize, stream.get()).has_value());
    EXPECT_EQ(cudaMemcpyAsync(memory, pages.data, kSize, cudaMemcpyDefault, stream.get()), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(event.get(), stream.get()), cudaSuccess);
    EXPECT_EQ(cudaEventSynchronize(event.get()), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(event.get(), gated.get()), cudaSuccess);
    EXPECT_EQ(cudaEventQuery(event.get()), cudaErrorNotReady);
  }
  EXPECT_EQ(cudaStreamQuery(gated.get()), cudaErrorNotReady);
  open();
  EXPECT_EQ(cudaHostUnregister(pages.data), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

// A queue takes at least what the backend puts into one ahead of its gate, and not 2000 operations.
TEST_F(DriverTest, AFullQueueHoldsTheCall) {
  const auto enqueue = [&](int count) {
    Expected<void> all;
    for (int i = 0; i < count && all; ++i) all = set_in_stream(driver, gated.get(), done, 1);
    return all ? cudaSuccess : cudaErrorUnknown;
  };
  close();
  EXPECT_EQ(enqueue(900), cudaSuccess);
  open();
  expect_waits([&] { return enqueue(2000); }, "2000 operations");
}

TEST_F(DriverTest, KnowsEveryByteOfItsMemory) {
  const Pages pages(kSize);
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, kSize), cudaSuccess);
  cudaPointerAttributes found{};
  for (const std::size_t at : {std::size_t{0}, kSize - 1}) {
    ASSERT_EQ(cudaPointerGetAttributes(&found, static_cast<std::byte*>(memory) + at), cudaSuccess);
    EXPECT_EQ(found.type, cudaMemoryTypeDevice);
    EXPECT_EQ(found.device, 0);
  }
  ASSERT_EQ(cudaPointerGetAttributes(&found, pages.data), cudaSuccess);
  EXPECT_EQ(found.type, cudaMemoryTypeUnregistered);
  ASSERT_EQ(cudaHostRegister(pages.data, kSize, cudaHostRegisterDefault), cudaSuccess);
  ASSERT_EQ(cudaPointerGetAttributes(&found, static_cast<std::byte*>(pages.data) + kSize - 1), cudaSuccess);
  EXPECT_EQ(found.type, cudaMemoryTypeHost);
  EXPECT_NE(cudaHostRegister(pages.data, kSize, cudaHostRegisterDefault), cudaSuccess) << "it is pinned";
  EXPECT_EQ(cudaHostUnregister(pages.data), cudaSuccess);
  EXPECT_NE(cudaHostUnregister(pages.data), cudaSuccess) << "it is not pinned any more";
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_NE(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "reported once";
}

// The second stream goes on when the event's stream has come to it, and not before.
TEST_F(DriverTest, StreamsWaitForWhatAnEventHadRecorded) {
  const Event event = make_event(0, cudaEventDisableTiming).value();
  close();
  ASSERT_EQ(cudaEventRecord(event.get(), gated.get()), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(other.get(), event.get(), 0), cudaSuccess);
  ASSERT_TRUE(set_in_stream(driver, other.get(), done, 7).has_value());
  EXPECT_EQ(cudaStreamQuery(other.get()), cudaErrorNotReady);
  EXPECT_EQ(done.value(), 0U);
  open();
  EXPECT_EQ(cudaStreamSynchronize(other.get()), cudaSuccess);
  EXPECT_EQ(done.value(), 7U);
}

TEST_F(DriverTest, HostFunctionsAreCalledInTheirTurn) {
  std::atomic<int> calls{0};
  const auto count = [](void* counter) { static_cast<std::atomic<int>*>(counter)->fetch_add(1); };
  close();
  ASSERT_EQ(cudaLaunchHostFunc(gated.get(), count, &calls), cudaSuccess);
  ASSERT_EQ(cudaLaunchHostFunc(other.get(), count, &calls), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(other.get()), cudaSuccess);
  EXPECT_EQ(calls, 1);
  open();
  EXPECT_EQ(calls, 2);
}

// A captured stream executes nothing.
TEST_F(DriverTest, WhatIsRecordedIsNotExecuted) {
  const Stream recorded = make_stream(0, cudaStreamDefault).value();
  ASSERT_EQ(cudaStreamBeginCapture(recorded.get(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
  launch_spin(recorded.get(), 1000);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(recorded.get(), &graph), cudaSuccess);
  EXPECT_NE(graph, nullptr);
  const Graph owned(graph);
  EXPECT_EQ(cudaStreamQuery(recorded.get()), cudaSuccess);
}

}  // namespace
}  // namespace tutti::internal::cuda
