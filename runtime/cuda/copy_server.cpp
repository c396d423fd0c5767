#include "runtime/cuda/copy_server.hpp"

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

Expected<std::unique_ptr<CopyServer>> CopyServer::start() {
  std::unique_ptr<CopyServer> made(new CopyServer);
  made->expected_.reserve(kMostExpected);
  try {
    const WithoutSignals quiet;
    made->thread_ = std::thread([server = made.get()] { server->serve(); });
  } catch (const std::system_error&) {
    return machine_error("the system starts no thread for copies by the host");
  }
  return made;
}

CopyServer::~CopyServer() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  news_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void CopyServer::expect(ServedCopy& copy) {
  {
    const std::lock_guard lock(mutex_);
    expected_.push_back(&copy);
  }
  news_.notify_one();
}

void CopyServer::forget(const ServedCopy& copy) {
  std::unique_lock lock(mutex_);
  std::erase(expected_, &copy);
  made_.wait(lock, [&] { return making_ != &copy; });
}

Expected<void> CopyServer::enqueue(const Driver& driver, cudaStream_t stream, const ServedCopy& copy, Count run) {
  if (auto ok = set_in_stream(driver, stream, copy.asked, run); !ok) return ok;
  return hold_by_kernel(stream, copy.done, run);
}

void CopyServer::serve() {
  auto awake_until = std::chrono::steady_clock::now() + kAwake;
  std::unique_lock lock(mutex_);
  while (true) {
    if (expected_.empty()) {
      news_.wait(lock, [&] { return closing_ || !expected_.empty(); });
      awake_until = std::chrono::steady_clock::now() + kAwake;
    }
    if (closing_) return;
    ServedCopy* const copy = next_asked();
    making_ = copy;
    lock.unlock();
    if (copy != nullptr) {
      if (!copy->abandoned->load()) copy->make();
      copy->done.set(copy->run);
      awake_until = std::chrono::steady_clock::now() + kAwake;
    } else if (std::chrono::steady_clock::now() < awake_until) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
    lock.lock();
    if (copy == nullptr) continue;
    making_ = nullptr;
    made_.notify_all();
  }
}

/// Takes the first copy that its stream has come to, or that was abandoned, which its stream may never come to.
ServedCopy* CopyServer::next_asked() {
  const auto found = std::ranges::find_if(expected_, [](const ServedCopy* copy) {
    return static_cast<std::int32_t>(copy->asked.value() - copy->run) >= 0 || copy->abandoned->load();
  });
  if (found == expected_.end()) return nullptr;
  ServedCopy* const copy = *found;
  expected_.erase(found);
  return copy;
}

}  // namespace tutti::internal::cuda
