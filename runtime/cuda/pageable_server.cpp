#include "runtime/cuda/pageable_server.hpp"

#include <system_error>

#include "runtime/pageable/pin_threads.hpp"

namespace tutti::internal::cuda {
namespace {

/// Calls that may wait at once; more of them would be streams of a GPU.
constexpr std::size_t kMostWaiting = 64;

}  // namespace

Expected<std::unique_ptr<PageableServer>> PageableServer::make(int device, CopyDirection direction, cudaStream_t stream,
                                                               const CopierOptions& options) {
  const DeviceGuard guard(device);
  CopyDriver driver{};
  if (!driver.look_up(find_in_driver))
    return machine_error(
        "the GPU driver lacks a function that copies of ordinary memory need; install one for CUDA 12");
  std::unique_ptr<PageableServer> made(new PageableServer(device, direction, stream));
  made->copier_ = DeviceCopier::make(driver, options);
  if (!made->copier_)
    return machine_error("the host pins no buffers for copies of ordinary memory, or starts no thread for them");
  made->waiting_.reserve(kMostWaiting);
  try {
    const WithoutSignals quiet;
    made->thread_ = std::thread([server = made.get()] { server->serve(); });
  } catch (const std::system_error&) {
    return machine_error("the system starts no thread for copies of ordinary memory");
  }
  return made;
}

PageableServer::~PageableServer() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  called_.notify_one();
  if (thread_.joinable()) thread_.join();
  const DeviceGuard guard(device_);
  copier_.reset();
}

Expected<void> PageableServer::enqueue(cudaStream_t stream, PageableCopy& copy) {
  if (auto ok = check(cudaLaunchHostFunc(stream, called_by_stream, &copy), "cudaLaunchHostFunc"); !ok) return ok;
  return hold_by_kernel(stream, copy.done, copy.run);
}

void PageableServer::called_by_stream(void* called) {
  auto& copy = *static_cast<PageableCopy*>(called);
  PageableServer& server = *copy.server;
  const std::lock_guard lock(server.mutex_);
  server.waiting_.push_back(&copy);
  server.called_.notify_one();
}

void PageableServer::serve() {
  if (cudaSetDevice(device_) != cudaSuccess) static_cast<void>(cudaGetLastError());
  std::unique_lock lock(mutex_);
  while (true) {
    called_.wait(lock, [&] { return closing_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    PageableCopy& copy = *waiting_.front();
    waiting_.erase(waiting_.begin());
    lock.unlock();
    make_copy(copy);
    lock.lock();
  }
}

void PageableServer::make_copy(PageableCopy& copy) {
  if (!copy.abandoned->load()) {
    const auto device = reinterpret_cast<CUdeviceptr>(copy.device);
    const CopyEnd end = copier_->copy(direction_, copy.host, device, copy.bytes, stream_);
    if (answer(cudaStreamSynchronize(stream_)) != cudaSuccess || end != CopyEnd::Done) copy.failed();
  }
  copy.done.set(copy.run);  // last: the copy may be gone then
}

}  // namespace tutti::internal::cuda
