#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "runtime/core/waker.hpp"
#include "runtime/cuda/base/status.hpp"

namespace tutti::internal::cuda {

/// A waker that streams call, too, where they have done their work so far.
///
/// A stream calls a function of the host for it, in a thread of the driver. That function only stores and wakes, and
/// the waker outlives it: see `Retire`.
class StreamWaker : public Waker {
 public:
  /// Enqueues a call behind the work that a stream has so far. Allocates nothing.
  [[nodiscard]] cudaError_t call_from(cudaStream_t stream);

  /// Hands calls on to another waker as well, until this is called again; null: to none.
  void pass_to(Waker* other);

  /// Deletes a waker behind the calls of its streams; leaves it behind where a stream never comes to its call, or later
  /// than a moment, since its GPU is lost.
  struct Retire {
    void operator()(StreamWaker* waker) const;
  };

 private:
  static void called_by_stream(void* waker);

  std::mutex passing_;
  Waker* other_ = nullptr;
  std::atomic<std::uint64_t> enqueued_{0}, made_{0};  // calls of streams
};

using OwnWaker = std::unique_ptr<StreamWaker, StreamWaker::Retire>;

}  // namespace tutti::internal::cuda
