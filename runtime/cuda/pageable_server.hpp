#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/cuda/device_copier.hpp"
#include "runtime/cuda/signal.hpp"

namespace tutti::internal::cuda {

/// A copy of pageable memory as a command of a stream. Whoever enqueues it keeps it until the stream is past it.
struct PageableCopy {
  class PageableServer* server = nullptr;
  std::byte* host = nullptr;
  std::byte* device = nullptr;
  std::size_t bytes = 0;
  HostSignal<Count> asked{};                     ///< the run whose copy the stream has come to; set by the stream
  HostSignal<Count> done{};                      ///< the run whose copy is made; the stream is held until then
  Count run = 0;                                 ///< that is expected
  std::function<void()> failed;                  ///< called before `done` is set, by the server's thread
  const std::atomic<bool>* abandoned = nullptr;  ///< no copy begins any more
};

/// Copies pageable memory to or from one GPU in one direction, for streams that ask for it where they come to it.
///
/// The stream sets a signal and is held by another one. The server's thread looks at the signals of the copies that it
/// was told to expect, makes the copy by double queuing in a stream of its own, and lets the stream go on. It sleeps
/// where it expects none. (A call of the host by the stream, `cudaLaunchHostFunc`, would need no looking, but behind a
/// closed gate the driver takes fewer than 80 of them, each with a kernel behind it, and then waits.)
class PageableServer {
 public:
  /// @param stream  of the GPU, in which nothing waits for a gate and no one else enqueues
  /// @errors Machine: no room for pinned buffers, no thread, a driver without what copies need.
  [[nodiscard]] static Expected<std::unique_ptr<PageableServer>> make(int device, CopyDirection direction,
                                                                      cudaStream_t stream,
                                                                      const CopierOptions& options);
  PageableServer(const PageableServer&) = delete;  // its thread knows it by its address
  PageableServer& operator=(const PageableServer&) = delete;
  /// @pre no stream has a copy of it in its queue that it may still come to
  ~PageableServer();

  /// A stream will come to this copy: its run is submitted. Allocates nothing.
  void expect(PageableCopy& copy);
  /// Enqueues a copy: the stream asks for it and is held until it is made. Allocates nothing.
  [[nodiscard]] static Expected<void> enqueue(const Driver& driver, cudaStream_t stream, const PageableCopy& copy,
                                              Count run);

 private:
  PageableServer(int device, CopyDirection direction, cudaStream_t stream)
      : device_(device), direction_(direction), stream_(stream) {}
  void serve();
  [[nodiscard]] PageableCopy* next_asked();
  void make_copy(PageableCopy& copy);

  const int device_;
  const CopyDirection direction_;
  const cudaStream_t stream_;
  std::unique_ptr<DeviceCopier> copier_;

  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<PageableCopy*> expected_;  // in the order of the submissions
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace tutti::internal::cuda
