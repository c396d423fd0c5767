#include "runtime/cuda/pageable_server.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "runtime/pageable/pin_threads.hpp"

namespace tutti::internal::cuda {
namespace {

/// Copies that may be expected at once without an allocation: those of the batches that are submitted.
constexpr std::size_t kMostExpected = 4096;

/// How long the thread looks without a pause, and then between two looks: copies that come late take long anyway.
constexpr std::chrono::milliseconds kAwake{1};
constexpr std::chrono::microseconds kNap{20};

}  // namespace

Expected<std::unique_ptr<PageableServer>> PageableServer::make(int device, CopyDirection direction, cudaStream_t stream,
                                                               const CopierOptions& options) {
  const DeviceGuard guard(device);
  const auto driver = find_copy_driver();
  if (!driver) return tl::unexpected(driver.error());
  std::unique_ptr<PageableServer> made(new PageableServer(device, direction, stream));
  made->copier_ = DeviceCopier::make(*driver, options);
  if (!made->copier_)
    return machine_error("the host pins no buffers for copies of ordinary memory, or starts no thread for them");
  made->expected_.reserve(kMostExpected);
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
  news_.notify_one();
  if (thread_.joinable()) thread_.join();
  const DeviceGuard guard(device_);
  copier_.reset();
}

void PageableServer::expect(PageableCopy& copy) {
  {
    const std::lock_guard lock(mutex_);
    expected_.push_back(&copy);
  }
  news_.notify_one();
}

Expected<void> PageableServer::enqueue(const Driver& driver, cudaStream_t stream, const PageableCopy& copy, Count run) {
  if (auto ok = set_in_stream(driver, stream, copy.asked, run); !ok) return ok;
  return hold_by_kernel(stream, copy.done, run);
}

void PageableServer::serve() {
  if (cudaSetDevice(device_) != cudaSuccess) static_cast<void>(cudaGetLastError());
  auto awake_until = std::chrono::steady_clock::now() + kAwake;
  std::unique_lock lock(mutex_);
  while (true) {
    if (expected_.empty()) {
      news_.wait(lock, [&] { return closing_ || !expected_.empty(); });
      awake_until = std::chrono::steady_clock::now() + kAwake;
    }
    if (closing_) return;
    PageableCopy* const copy = next_asked();
    lock.unlock();
    if (copy != nullptr) {
      make_copy(*copy);
      awake_until = std::chrono::steady_clock::now() + kAwake;
    } else if (std::chrono::steady_clock::now() < awake_until) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
    lock.lock();
  }
}

/// Takes the first copy that its stream has come to, or that was abandoned, which its stream may never come to.
PageableCopy* PageableServer::next_asked() {
  const auto found = std::ranges::find_if(expected_, [](const PageableCopy* copy) {
    return static_cast<std::int32_t>(copy->asked.value() - copy->run) >= 0 || copy->abandoned->load();
  });
  if (found == expected_.end()) return nullptr;
  PageableCopy* const copy = *found;
  expected_.erase(found);
  return copy;
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
