#include "runtime/cuda/gates/signal.hpp"

#include <array>
#include <cstring>

namespace tutti::internal::cuda {
namespace {

/// What a stream writes at once.
using StreamWord = cuuint32_t;
constexpr std::size_t kMostStreamWords = 2;

/// An address as the driver's functions take it.
CUdeviceptr address_of(Signal<Count> signal) { return reinterpret_cast<CUdeviceptr>(signal.on_gpu()); }

}  // namespace

Expected<SignalBoard> make_signal_board(std::size_t signals) {
  return MemoryPool::instance().take_host(signals * kCacheLine).map([&](PooledMemory&& memory) {
    return SignalBoard(std::move(memory), signals);
  });
}

Expected<DeviceSignalBoard> make_device_signal_board(int device, std::size_t signals, cudaStream_t stream) {
  return MemoryPool::instance().take_device(device, signals * kCacheLine, stream).map([&](PooledMemory&& memory) {
    return DeviceSignalBoard(std::move(memory), signals);
  });
}

Expected<void> set_in_stream(const Driver& driver, cudaStream_t stream, Signal<Count> signal, Count value) {
  return check(driver.write_value(stream, address_of(signal), value, CU_STREAM_WRITE_VALUE_DEFAULT),
               "cuStreamWriteValue32");
}

Expected<void> hold_by_kernel(cudaStream_t stream, Signal<Count> signal, Count value, Signal<TimerValue> released) {
  launch_poll(stream, signal.on_gpu(), value, released.on_gpu());
  return check(cudaGetLastError(), "launch_poll");
}

Expected<void> hold_stream(const Driver& driver, GateKind kind, cudaStream_t stream, Signal<Count> signal,
                           Count value) {
  if (kind == GateKind::HostTimed) return {};
  if (kind != GateKind::MemoryWait) return hold_by_kernel(stream, signal, value);
  return check(driver.wait_value(stream, address_of(signal), value, CU_STREAM_WAIT_VALUE_GEQ), "cuStreamWaitValue32");
}

bool can_write_in_stream(const std::byte* to, std::size_t bytes) {
  return bytes > 0 && bytes <= kMostStreamWords * sizeof(StreamWord) && bytes % sizeof(StreamWord) == 0 &&
         reinterpret_cast<std::uintptr_t>(to) % sizeof(StreamWord) == 0;
}

Expected<void> write_in_stream(const Driver& driver, cudaStream_t stream, std::byte* to, const std::byte* from,
                               std::size_t bytes) {
  TUTTI_EXPECTS(can_write_in_stream(to, bytes), "a stream writes one or two whole words");
  std::array<CUstreamBatchMemOpParams, kMostStreamWords> writes{};
  const std::size_t words = bytes / sizeof(StreamWord);
  for (std::size_t i = 0; i < words; ++i) {
    auto& write = writes[i].writeValue;
    write.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    write.address = reinterpret_cast<CUdeviceptr>(to + i * sizeof(StreamWord));
    std::memcpy(&write.value, from + i * sizeof(StreamWord), sizeof(StreamWord));
    write.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
  }
  return check(driver.batch_operations(stream, static_cast<unsigned>(words), writes.data(), 0), "cuStreamBatchMemOp");
}

Expected<void> hold_by_memory(const Driver& driver, cudaStream_t stream, std::span<const Awaited> signals) {
  TUTTI_EXPECTS(signals.size() <= kMostAwaited, "one operation waits for at most kMostAwaited signals");
  std::array<CUstreamBatchMemOpParams, kMostAwaited> waits{};
  for (std::size_t i = 0; i < signals.size(); ++i) {
    auto& wait = waits[i].waitValue;
    wait.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    wait.address = address_of(signals[i].signal);
    wait.value = signals[i].value;
    wait.flags = CU_STREAM_WAIT_VALUE_GEQ;
  }
  return check(driver.batch_operations(stream, static_cast<unsigned>(signals.size()), waits.data(), 0),
               "cuStreamBatchMemOp");
}

}  // namespace tutti::internal::cuda
