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

/// A copy of ordinary memory as a command of a stream. Whoever enqueues it keeps it until the stream is past it.
struct PageableCopy {
  class PageableServer* server = nullptr;
  std::byte* host = nullptr;
  std::byte* device = nullptr;
  std::size_t bytes = 0;
  HostSignal<Count> done{};  ///< the run whose copy is made; the stream is held until then
  Count run = 0;
  std::function<void()> failed;                  ///< called before `done` is set, by the server's thread
  const std::atomic<bool>* abandoned = nullptr;  ///< no copy begins any more
};

/// Copies ordinary memory to or from one GPU in one direction, for streams that call for it where they come to it.
///
/// The stream's call, in a thread of the driver, only hands the copy on to the server's thread, which copies by double
/// queuing in a stream of its own and then sets the signal that holds the calling stream. All threads sleep where no
/// copy is under way.
class PageableServer {
 public:
  /// @param stream  of the GPU, in which nothing waits for a gate and no one else enqueues
  /// @errors Machine: no room for pinned buffers, no thread, a driver without what copies need.
  [[nodiscard]] static Expected<std::unique_ptr<PageableServer>> make(int device, CopyDirection direction,
                                                                      cudaStream_t stream,
                                                                      const CopierOptions& options);
  PageableServer(const PageableServer&) = delete;  // streams know it by its address
  PageableServer& operator=(const PageableServer&) = delete;
  /// @pre no stream has a copy of it in its queue that it may still come to
  ~PageableServer();

  /// Enqueues a copy: the stream calls for it and is held until it is made. Allocates nothing.
  [[nodiscard]] Expected<void> enqueue(cudaStream_t stream, PageableCopy& copy);

 private:
  PageableServer(int device, CopyDirection direction, cudaStream_t stream)
      : device_(device), direction_(direction), stream_(stream) {}
  static void called_by_stream(void* copy);
  void serve();
  void make_copy(PageableCopy& copy);

  const int device_;
  const CopyDirection direction_;
  const cudaStream_t stream_;
  std::unique_ptr<DeviceCopier> copier_;

  std::mutex mutex_;
  std::condition_variable called_;
  std::vector<PageableCopy*> waiting_;  // in the order of the calls
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace tutti::internal::cuda
