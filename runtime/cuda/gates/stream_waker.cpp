#include "runtime/cuda/gates/stream_waker.hpp"

#include <chrono>
#include <thread>

namespace tutti::internal::cuda {
namespace {

/// How long a waker that goes waits for streams that have work left. They have none, or never end.
constexpr std::chrono::milliseconds kPatience{500};

}  // namespace

cudaError_t StreamWaker::call_from(cudaStream_t stream) {
  enqueued_.fetch_add(1, std::memory_order_relaxed);  // first: the call may come at once
  const cudaError_t status = cudaLaunchHostFunc(stream, called_by_stream, this);
  if (status != cudaSuccess) enqueued_.fetch_sub(1, std::memory_order_relaxed);
  return status;
}

void StreamWaker::pass_to(Waker* other) {
  const std::lock_guard lock(passing_);
  other_ = other;
}

void StreamWaker::called_by_stream(void* waker) {
  auto& called = *static_cast<StreamWaker*>(waker);
  called.wake();
  {
    const std::lock_guard lock(called.passing_);
    if (called.other_ != nullptr) called.other_->wake();
  }
  called.made_.fetch_add(1, std::memory_order_release);  // the last access
}

void StreamWaker::Retire::operator()(StreamWaker* waker) const {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  const auto all_made = [&] { return waker->made_.load(std::memory_order_acquire) == waker->enqueued_.load(); };
  while (!all_made() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::microseconds{50});
  if (all_made()) delete waker;
}

}  // namespace tutti::internal::cuda
