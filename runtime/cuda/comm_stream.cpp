#include "runtime/cuda/comm_stream.hpp"

#include <functional>
#include <utility>

#include "runtime/cuda/handles.hpp"

namespace tutti::internal::cuda {
namespace {

class CommStream final : public comm::Stream {
 public:
  CommStream(const Driver& driver, cuda::Stream stream) : driver_(driver), stream_(std::move(stream)) {}

  Expected<void> set(comm::WordValue word) override {
    return check(driver_.write_value(stream_.get(), address(word), word.value, CU_STREAM_WRITE_VALUE_DEFAULT),
                 "cuStreamWriteValue32");
  }
  Expected<void> wait(comm::WordValue word) override {
    return check(driver_.wait_value(stream_.get(), address(word), word.value, CU_STREAM_WAIT_VALUE_GEQ),
                 "cuStreamWaitValue32");
  }
  Expected<void> copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    if (bytes == 0) return {};
    return check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_.get()), "cudaMemcpyAsync");
  }
  Expected<void> call(std::function<void()> work, Duration /*takes*/) override {
    auto held = std::make_unique<std::function<void()>>(std::move(work));
    const auto run = [](void* argument) {
      const std::unique_ptr<std::function<void()>> mine(static_cast<std::function<void()>*>(argument));
      (*mine)();
    };
    // The driver has it from now on.
    return check(cudaLaunchHostFunc(stream_.get(), run, held.get()), "cudaLaunchHostFunc").map([&] {
      static_cast<void>(held.release());
    });
  }
  Expected<bool> is_idle() override {
    const cudaError_t status = answer(cudaStreamQuery(stream_.get()));
    if (status == cudaErrorNotReady) return false;
    return check(status, "cudaStreamQuery").map([] { return true; });
  }
  std::optional<DeviceStream> on_device() const override { return stream_.get(); }

 private:
  static CUdeviceptr address(const comm::WordValue& word) { return reinterpret_cast<CUdeviceptr>(word.word); }

  Driver driver_;
  cuda::Stream stream_;
};

}  // namespace

Expected<std::unique_ptr<comm::Stream>> make_comm_stream(int device) {
  return find_driver().and_then([&](const Driver& driver) {
    return make_stream(device).map([&](cuda::Stream&& stream) -> std::unique_ptr<comm::Stream> {
      return std::make_unique<CommStream>(driver, std::move(stream));
    });
  });
}

}  // namespace tutti::internal::cuda
