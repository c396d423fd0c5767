#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "model/base/units.hpp"
#include "runtime/cuda/status.hpp"

namespace tutti::internal::cuda {

/// Wakes the one thread that sleeps on it, at an instant or by a call: of any thread, or of a stream that has done its
/// work so far.
///
/// A stream calls a function of the host for it, in a thread of the driver. That function only stores and wakes, and
/// the waker outlives it: see `Retire`.
class Waker {
 public:
  Waker() = default;
  Waker(const Waker&) = delete;  // streams know it by its address
  Waker& operator=(const Waker&) = delete;

  /// Calls so far. What was stored before a call is seen by the thread that reads the call here.
  [[nodiscard]] std::uint32_t calls() const { return calls_.load(); }
  /// Wakes the sleeping thread; costs no system call where none sleeps.
  void call();
  /// Enqueues a call behind the work that a stream has so far. Allocates nothing.
  [[nodiscard]] cudaError_t call_from(cudaStream_t stream);

  /// Returns after a call that is not among `calls`, at once where it has come before; or now and then without a
  /// reason.
  void sleep(std::uint32_t calls) { sleep_for(calls, kForever); }
  /// Like `sleep`, but no longer than this time.
  void sleep_for(std::uint32_t calls, Duration longest);

  /// Deletes a waker behind the calls of its streams; leaves it behind where a stream never comes to its call, or later
  /// than a moment, since its GPU is lost.
  struct Retire {
    void operator()(Waker* waker) const;
  };

 private:
  static constexpr Duration kForever = Duration::max();

  static void called_by_stream(void* waker);

  std::atomic<std::uint32_t> calls_{0};
  std::atomic<bool> asleep_{false};
  std::atomic<std::uint64_t> enqueued_{0}, made_{0};  // calls of streams
};

using OwnWaker = std::unique_ptr<Waker, Waker::Retire>;

}  // namespace tutti::internal::cuda
