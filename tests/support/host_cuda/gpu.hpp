#pragma once
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include <cuda_runtime_api.h>

#include "tests/support/host_cuda/host_cuda.hpp"

struct CUgraphNode_st;

namespace tutti::internal::host_cuda {

class Gpu;
struct HardwareQueue;

/// Multiprocessors of a GPU, and how many at least are set apart from the others.
inline constexpr int kSms = 132, kFewestSms = 8;

struct Capture;

}  // namespace tutti::internal::host_cuda

/// A node of a graph. Its address is its handle.
struct CUgraphNode_st {
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  tutti::internal::host_cuda::Operation operation{};
  void* to = nullptr;  ///< of a copy
  const void* from = nullptr;
  bool computes = false;  ///< a kernel that may hang
  std::vector<CUgraphNode_st*> before{};
};

namespace tutti::internal::host_cuda {

/// What streams record while they are captured: the one that began, and those that joined it by its events.
struct Capture {
  CUstream_st* stream = nullptr;
  std::deque<CUgraphNode_st> nodes{};
  std::vector<CUstream_st*> joined{};
  bool invalid = false;
};

}  // namespace tutti::internal::host_cuda

/// A stream. It lives until it is destroyed and its operations have ended.
struct CUstream_st : std::enable_shared_from_this<CUstream_st> {
  tutti::internal::host_cuda::Gpu* gpu = nullptr;
  tutti::internal::host_cuda::HardwareQueue* queue = nullptr;
  bool blocking = false;                       ///< it synchronizes with the default stream
  int sms = tutti::internal::host_cuda::kSms;  ///< multiprocessors for what it launches or records
  bool destroyed = false;                      ///< the GPU's lock guards it
  std::atomic<std::uint64_t> enqueued{0}, ended{0};
  tutti::internal::host_cuda::Instant end = 0;  ///< of its last operation; the GPU's thread alone uses it
  std::atomic<tutti::internal::host_cuda::Capture*> capture{nullptr};
  std::vector<CUgraphNode_st*> last{};  ///< nodes that the next one of a capture comes behind
};

/// An event. Operations that use it share it.
struct CUevent_st {
  tutti::internal::host_cuda::Gpu* gpu = nullptr;
  bool timed = true;
  std::shared_ptr<CUevent_st> self;
  std::atomic<std::uint64_t> recorded{0};  ///< calls that record it
  std::atomic<std::uint64_t> reached{0};   ///< the last of these that its stream has come to
  std::atomic<tutti::internal::host_cuda::Instant> at{0};
  tutti::internal::host_cuda::Capture* capture = nullptr;  ///< in which it was recorded last
  std::vector<CUgraphNode_st*> behind{};                   ///< nodes of that capture that it comes behind
};

/// Nodes in the order of the calls.
struct CUgraph_st {
  std::deque<CUgraphNode_st> nodes;
};
struct CUgraphExec_st {
  std::vector<CUgraphNode_st> nodes;
};

namespace tutti::internal::host_cuda {

/// Operations of all streams that share it, in the order of the calls.
struct HardwareQueue {
  struct Entry {
    std::shared_ptr<CUstream_st> stream;
    Operation operation;
    Instant enqueued;
  };
  /// Behind a closed gate the driver takes so many, then the call waits.
  static constexpr std::size_t kCapacity = 1020;

  std::mutex mutex;
  std::deque<Entry> entries;
  int streams = 0;  ///< that use it; the GPU's lock guards it
};

/// Calls functions of the host in the order in which streams come to them, in a thread of its own.
class HostCalls {
 public:
  void add(std::function<void()> call);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::function<void()>> calls_;
  bool started_ = false;
};

/// A GPU: its queues, and the thread that executes what they hold. It is never destroyed, and neither is its thread.
class Gpu {
 public:
  explicit Gpu(int ordinal);

  [[nodiscard]] int ordinal() const { return ordinal_; }
  [[nodiscard]] Instant now() const;

  /// @param blocking  it synchronizes with the default stream
  CUstream_st* make_stream(bool blocking);
  void destroy(CUstream_st* stream);
  [[nodiscard]] CUstream_st* default_stream();

  /// Puts an operation behind all others of a stream's queue. Waits while the queue is full.
  void enqueue(CUstream_st& stream, Operation operation);
  /// The status that all its calls return; cudaSuccess: it works.
  [[nodiscard]] cudaError_t fault() const { return static_cast<cudaError_t>(fault_.load()); }
  void break_with(cudaError_t status);

  /// Streams and the number of operations that they have by now.
  using Work = std::vector<std::pair<std::shared_ptr<CUstream_st>, std::uint64_t>>;
  [[nodiscard]] Work work_so_far();

  HostCalls host_calls;
  std::atomic<double> copy_rate{kCopyRate};
  std::atomic<std::size_t> memory{std::size_t{1} << 30};
  std::atomic<std::size_t> memory_used{0};
  std::atomic<bool> hangs_next{false};
  /// Captures under way of streams that synchronize with the default stream: it takes no calls then, of any thread.
  std::atomic<int> blocking_captures{0};
  std::atomic<std::uint64_t> releases{0};
  /// Kernels that have begun on so many multiprocessors: those that compute, and those that only wait or mark.
  std::array<std::atomic<std::uint64_t>, kSms + 1> computing_on{}, waiting_on{};
  std::set<int> peers;  ///< whose memory it reaches; the lock of `memory.cpp` guards it

 private:
  void run();
  /// @return whether an operation ended
  bool advance(HardwareQueue& queue, bool& unfinished);
  HardwareQueue& queue_with_least_streams();
  void forget_destroyed();

  int ordinal_;
  std::int64_t offset_;
  double drift_;  // of its timer, relative
  std::mutex mutex_;
  bool started_ = false;
  std::vector<std::shared_ptr<CUstream_st>> streams_;
  std::shared_ptr<CUstream_st> default_stream_;
  std::array<HardwareQueue, 32> queues_;  // of which CUDA_DEVICE_MAX_CONNECTIONS are in use
  std::atomic<std::uint32_t> news_{0};
  std::atomic<int> fault_{cudaSuccess};
};

/// @pre the ordinal is below `kMostDevices`
[[nodiscard]] Gpu& gpu(int ordinal);

/// A call that waits for GPUs, for as long as this lives.
class WaitingCall {
 public:
  WaitingCall() { count().fetch_add(1); }
  WaitingCall(const WaitingCall&) = delete;  // it stands for one call
  WaitingCall& operator=(const WaitingCall&) = delete;
  ~WaitingCall() { count().fetch_sub(1); }

  static std::atomic<int>& count();
};

/// What a loop does between two looks: other threads get the processor.
class Pause {
 public:
  void operator()();
  void reset() { rounds_ = 0; }

 private:
  unsigned rounds_ = 0;
};

}  // namespace tutti::internal::host_cuda
