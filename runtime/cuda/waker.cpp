#include "runtime/cuda/waker.hpp"

#include <algorithm>
#include <chrono>
#include <climits>
#include <thread>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace tutti::internal::cuda {
namespace {

/// How long a waker that goes waits for streams that have work left. They have none, or never end.
constexpr Duration kPatience = std::chrono::milliseconds{500};
/// A sleep without an end is cut into such pieces.
constexpr Duration kLongestSleep = std::chrono::hours{1};

/// The word as the kernel takes it.
std::uint32_t* futex_at(std::atomic<std::uint32_t>& word) {
  static_assert(sizeof word == sizeof(std::uint32_t) && std::atomic<std::uint32_t>::is_always_lock_free);
  return reinterpret_cast<std::uint32_t*>(&word);
}

timespec as_timespec(Duration time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {seconds.count(), (time - seconds).count()};
}

}  // namespace

/// Either this thread sees that the other one is about to sleep, or the other one sees the call: both stores come
/// before both loads.
void Waker::call() {
  calls_.fetch_add(1);
  if (asleep_.load()) syscall(SYS_futex, futex_at(calls_), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void Waker::sleep_for(std::uint32_t calls, Duration longest) {
  if (longest <= Duration{0} || calls_.load() != calls) return;
  const timespec time = as_timespec(std::min(longest, kLongestSleep));
  asleep_.store(true);
  syscall(SYS_futex, futex_at(calls_), FUTEX_WAIT_PRIVATE, calls, &time, nullptr, 0);
  asleep_.store(false);
}

cudaError_t Waker::call_from(cudaStream_t stream) {
  enqueued_.fetch_add(1, std::memory_order_relaxed);  // first: the call may come at once
  const cudaError_t status = cudaLaunchHostFunc(stream, called_by_stream, this);
  if (status != cudaSuccess) enqueued_.fetch_sub(1, std::memory_order_relaxed);
  return status;
}

void Waker::called_by_stream(void* waker) {
  auto& called = *static_cast<Waker*>(waker);
  called.call();
  called.made_.fetch_add(1, std::memory_order_release);  // the last access
}

void Waker::Retire::operator()(Waker* waker) const {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  const auto all_made = [&] { return waker->made_.load(std::memory_order_acquire) == waker->enqueued_.load(); };
  while (!all_made() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::microseconds{50});
  if (all_made()) delete waker;
}

}  // namespace tutti::internal::cuda
