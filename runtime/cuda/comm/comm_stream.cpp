#include "runtime/cuda/comm/comm_stream.hpp"

#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/cuda/base/handles.hpp"
#include "runtime/cuda/base/kernels.hpp"
#include "runtime/cuda/lanes/lane_pool.hpp"

namespace tutti::internal::cuda {
namespace {

/// Streams of each GPU that do not wait for each other's words: made and tried at the first use of the GPU, and lent.
class LentStreams {
 public:
  /// It is never destroyed: the driver may end before the program's own objects do.
  static LentStreams& instance() {
    static LentStreams* const streams = new LentStreams;
    return *streams;
  }

  Expected<cudaStream_t> lend(int device) {
    const std::lock_guard lock(mutex_);
    return pool_of(device).and_then([&](LanePool* pool) { return idle_one(device, *pool); });
  }
  void take_back(int device, cudaStream_t stream) {
    const std::lock_guard lock(mutex_);
    pools_.at(device).take_back(stream);
  }
  Expected<cudaStream_t> service(int device) {
    const std::lock_guard lock(mutex_);
    return pool_of(device).map([](const LanePool* pool) { return pool->service(); });
  }

 private:
  Expected<LanePool*> pool_of(int device) {
    if (const auto found = pools_.find(device); found != pools_.end()) return &found->second;
    return check_device(device)
        .and_then([] { return find_driver(); })
        .and_then([&](const Driver& driver) { return LanePool::make(device, driver, GateKind::MemoryWait); })
        .map([&](LanePool&& pool) { return &pools_.emplace(device, std::move(pool)).first->second; });
  }
  /// One that was given back may still hold work of its last owner, or wait for a word.
  static Expected<cudaStream_t> idle_one(int device, LanePool& pool) {
    std::vector<cudaStream_t> busy;
    cudaStream_t found = nullptr;
    while (found == nullptr && pool.free() > 0) {
      const cudaStream_t stream = pool.lend();
      answer(cudaStreamQuery(stream)) == cudaErrorNotReady ? busy.push_back(stream) : void(found = stream);
    }
    for (const cudaStream_t stream : busy) pool.take_back(stream);
    if (found == nullptr)
      return machine_error(
          fmt::format("GPU {} has no more streams that do not wait for each other; use fewer at once", device));
    return found;
  }

  std::mutex mutex_;
  std::map<int, LanePool> pools_;  // by device
};

bool is_pinned(const std::byte* memory) {
  cudaPointerAttributes attributes{};
  return answer(cudaPointerGetAttributes(&attributes, memory)) == cudaSuccess && attributes.type == cudaMemoryTypeHost;
}

class CommStream final : public comm::Stream {
 public:
  CommStream(const Driver& driver, int device, cudaStream_t stream)
      : driver_(driver), device_(device), stream_(stream) {}
  CommStream(const CommStream&) = delete;  // it gives its stream back
  CommStream& operator=(const CommStream&) = delete;
  ~CommStream() override { LentStreams::instance().take_back(device_, stream_); }

  Expected<void> set(comm::WordValue word) override {
    return check(driver_.write_value(stream_, address(word), word.value, CU_STREAM_WRITE_VALUE_DEFAULT),
                 "cuStreamWriteValue32");
  }
  Expected<void> wait(comm::WordValue word) override {
    return check(driver_.wait_value(stream_, address(word), word.value, CU_STREAM_WAIT_VALUE_GEQ),
                 "cuStreamWaitValue32");
  }
  Expected<void> copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    if (bytes == 0) return {};
    if (is_pinned(to) && is_pinned(from)) return copy_by_kernel(to, from, bytes);
    return check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
  }
  Expected<void> call(std::function<void()> work, Duration /*takes*/) override {
    auto held = std::make_unique<std::function<void()>>(std::move(work));
    const auto run = [](void* argument) {
      const std::unique_ptr<std::function<void()>> mine(static_cast<std::function<void()>*>(argument));
      (*mine)();
    };
    // The driver has it from now on.
    return check(cudaLaunchHostFunc(stream_, run, held.get()), "cudaLaunchHostFunc").map([&] {
      static_cast<void>(held.release());
    });
  }
  Expected<bool> is_idle() override {
    const cudaError_t status = answer(cudaStreamQuery(stream_));
    if (status == cudaErrorNotReady) return false;
    return check(status, "cudaStreamQuery").map([] { return true; });
  }
  std::optional<DeviceStream> on_device() const override { return stream_; }

 private:
  /// From memory of the host to memory of the host, CUDA's own copy holds the calling thread until it has ended.
  Expected<void> copy_by_kernel(std::byte* to, const std::byte* from, std::size_t bytes) {
    const DeviceGuard guard(device_);
    launch_copy(stream_, to, from, bytes);
    return check(cudaGetLastError(), "launch_copy");
  }
  static CUdeviceptr address(const comm::WordValue& word) { return reinterpret_cast<CUdeviceptr>(word.word); }

  Driver driver_;
  int device_;
  cudaStream_t stream_;
};

}  // namespace

Expected<std::unique_ptr<comm::Stream>> make_comm_stream(int device) {
  return find_driver().and_then([&](const Driver& driver) {
    return LentStreams::instance().lend(device).map([&](cudaStream_t stream) -> std::unique_ptr<comm::Stream> {
      return std::make_unique<CommStream>(driver, device, stream);
    });
  });
}

Expected<cudaStream_t> stream_without_waits(int device) { return LentStreams::instance().service(device); }

}  // namespace tutti::internal::cuda
