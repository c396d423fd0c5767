// Signals between the host and a GPU. Part of the suite `gpu`.
#include "runtime/cuda/gates/signal.hpp"

#include <gtest/gtest.h>

namespace tutti::internal::cuda {
namespace {

class SignalTest : public testing::Test {
 protected:
  /// The stream must come to its end.
  void synchronize() const { ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess); }

  DeviceGuard guard{0};  // kernels are launched on the current GPU
  Driver driver = find_driver().value();
  Stream stream = make_stream(0).value();
  SignalBoard board = make_signal_board(3).value();
  HostSignal<Count> gate = board.take<Count>(), done = board.take<Count>();
};

TEST_F(SignalTest, EachHasACacheLineOfItsOwn) {
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(gate.on_gpu()) % 64, 0U);
  EXPECT_EQ(reinterpret_cast<std::byte*>(done.on_gpu()) - reinterpret_cast<std::byte*>(gate.on_gpu()), 64);
  EXPECT_EQ(gate.value(), 0U);
}

// The stream cannot pass the closed gate, so `done` keeps its 0 however long one waits; behind the gate it becomes 7.
TEST_F(SignalTest, HoldsAStreamUntilTheHostSetsIt) {
  Count run = 0;
  for (const GateKind kind : {GateKind::PollingKernel, GateKind::MemoryWait}) {
    ASSERT_TRUE(hold_stream(driver, kind, stream.get(), gate, ++run).has_value());
    ASSERT_TRUE(set_in_stream(driver, stream.get(), done, 6 + run).has_value());
    EXPECT_EQ(cudaStreamQuery(stream.get()), cudaErrorNotReady);
    EXPECT_EQ(done.value(), run == 1 ? 0U : 7U);
    gate.set(run);
    synchronize();
    EXPECT_EQ(done.value(), 6 + run);
  }
}

// 2 comes three steps behind 2^32 - 1, so a stream that waits for 2^32 - 1 goes on.
TEST_F(SignalTest, WaitersCompareWithWrapAround) {
  gate.set(2);
  for (const GateKind kind : {GateKind::PollingKernel, GateKind::MemoryWait})
    ASSERT_TRUE(hold_stream(driver, kind, stream.get(), gate, 0xffffffffU).has_value());
  synchronize();
}

TEST_F(SignalTest, OneOperationWaitsForSeveral) {
  const Awaited both[] = {{gate, 1}, {done, 1}};
  ASSERT_TRUE(hold_by_memory(driver, stream.get(), both).has_value());
  gate.set(1);
  EXPECT_EQ(cudaStreamQuery(stream.get()), cudaErrorNotReady);
  done.set(1);
  synchronize();
}

TEST_F(SignalTest, AKernelNotesWhenItLetsTheStreamGo) {
  const HostSignal<TimerValue> released = board.take<TimerValue>();
  gate.set(1);
  ASSERT_TRUE(hold_by_kernel(stream.get(), gate, 1, released).has_value());
  synchronize();
  EXPECT_NE(released.value(), 0U);
}

// One stream sets the signal in the GPU's memory, another waits for it and then sets `done`.
TEST_F(SignalTest, InDeviceMemoryJoinsTwoStreams) {
  const Stream other = make_stream(0).value();
  DeviceSignalBoard on_gpu = make_device_signal_board(0, 1, stream.get()).value();
  const Signal<Count> between = on_gpu.take<Count>();
  ASSERT_TRUE(hold_by_kernel(stream.get(), between, 5).has_value());
  ASSERT_TRUE(set_in_stream(driver, stream.get(), done, 1).has_value());
  EXPECT_EQ(cudaStreamQuery(stream.get()), cudaErrorNotReady);
  ASSERT_TRUE(set_in_stream(driver, other.get(), between, 5).has_value());
  synchronize();
  EXPECT_EQ(done.value(), 1U);
}

}  // namespace
}  // namespace tutti::internal::cuda
